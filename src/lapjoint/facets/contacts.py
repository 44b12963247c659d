"""simulation.contacts: contacts of the last step."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays.checks import as_rows
from ..engines import ContactPoints, Contacts
from ..errors import LapjointError
from ..server.readings import Groups, checked_numbers, read_contact_forces, read_contact_points
from ..whole import whole
from .base import Facet, require_kept_forces

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


class SimulationContacts(Facet):
    """Contacts of the last step: which bodies touch, where, and with what forces."""

    _prefix = "contacts."

    def pairs(self) -> Contacts:
        """Pairs that touched in the last step, as it began."""
        return self._core.profile.contacts

    @property
    def touching(self) -> Ids:
        """Pairs that touch now, (n, 2), of bodies whose touches are reported; the second is -1 - s where it is the
        static body s."""
        return self._core.reports.touches.touching

    @whole
    def points(self, body_ids: ArrayLike | None = None) -> ContactPoints:
        """Contact points of the last step with their impulses, of all bodies or of these (-1 - s for the static body
        s), in the order of bodies. With Params.keep_forces."""
        core, what = self._core, "contacts.points"
        require_kept_forces(core, what)
        numbers = None if body_ids is None else checked_numbers(core.scene, body_ids, what)
        return read_contact_points(core.now, core.coupling.weights, core.runtime.step, numbers)

    @whole
    def forces(
        self,
        bodies_a: ArrayLike | None = None,
        bodies_b: ArrayLike | None = None,
        *,
        between: Groups | None = None,
        about: ArrayLike = (0.0, 0.0, 0.0),
    ) -> tuple[Array, Array]:
        """Force [N] and torque about a point [N m] that bodies a had from all their contacts with bodies b in the last
        step, in the mean: (3,) and (3,). A body is a number, or -1 - s for the static body s; b is all that are not in
        a unless given. `between` has many such pairs in place of one: (n, 3) and (n, 3). With Params.keep_forces."""
        core, what = self._core, "contacts.forces"
        require_kept_forces(core, what)
        if (between is None) == (bodies_a is None):
            raise LapjointError(f"{what}: expected either bodies_a or between")
        groups: Groups = [(bodies_a, bodies_b)] if bodies_a is not None else list(between or ())
        assert core.params.timestep is not None
        sums = read_contact_forces(core.now, core.coupling.weights, core.runtime.step, groups)
        forces = sums / core.params.timestep
        torques = forces[:, 3:] - np.cross(as_rows("about", about, 1, (3,), what), forces[:, :3])
        return (forces[:, :3], torques) if between is not None else (forces[0, :3], torques[0])
