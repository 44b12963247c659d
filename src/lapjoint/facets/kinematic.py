"""simulation.kinematic: static bodies that move, as they are told."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..scene.motions import GivenMotion, Motion
from ..whole import whole
from .base import Facet

Array = NDArray[np.float64]


class SimulationKinematic(Facet):
    """Kinematic bodies, by the numbers that they have as static bodies: `scene.kinematic_ids`."""

    _prefix = "kinematic."

    @property
    def states(self) -> Array:
        """States of kinematic bodies now, (n, 13), in the order of `scene.kinematic_ids`; velocities are those of the
        step that comes."""
        return self._core.kinematic.states(self._core.now.step_count)

    @property
    def static_poses(self) -> Array:
        """Positions and quaternions of all static bodies now, (static_count, 7); those of kinematic ones change."""
        return self._core.kinematic.static_poses(self._core.now.step_count)

    @property
    def motions(self) -> dict[int, GivenMotion]:
        """How each kinematic body moves now, by its number; a copy."""
        return self._core.kinematic.motions

    @whole
    def set_motion(self, static_ids: ArrayLike, motion: Motion | None) -> None:
        """Have kinematic bodies move so from the next step on, whatever they did: from where they are, unless it is
        Keyframes, which have poses in the world. Its time counts from now. None: they rest."""
        self._core.kinematic.set_motion(static_ids, motion, self._core.now.step_count)
        self._send()

    @whole
    def move_to(self, static_ids: ArrayLike, positions: ArrayLike, quaternions: ArrayLike | None = None) -> None:
        """Have kinematic bodies be at these poses at the end of the next step, and rest there. They move there in the
        step, as fast as that takes. Without quaternions they do not rotate."""
        self._core.kinematic.move_to(static_ids, positions, quaternions, self._core.now.step_count)
        self._send()

    def _send(self) -> None:
        self._core.now.commands.set_motions(self._core.kinematic.message())
