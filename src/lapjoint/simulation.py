"""Simulation: a scene in motion."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .engines import Contacts, make_engine
from .errors import PenetrationWarning
from .measures import joint_gaps, state_hash
from .params import Params
from .scene import Scene

Array = NDArray[np.float64]

DEEP = 0.1
"""Share of a body's bounding radius beyond which a penetration at the start is worth a warning."""


class Simulation:
    """One scene on one worker.

    >>> simulation = Simulation(scene, Params(iterations=100))
    >>> simulation.step(500)
    >>> simulation.states[:, 2].min()
    """

    def __init__(self, scene: Scene, params: Params | None = None) -> None:
        self.scene = scene
        self.params = (params or Params()).resolved(scene)
        self.step_count = 0
        self._engine = make_engine(scene, self.params)
        self._all = np.arange(scene.body_count, dtype=np.int32)
        self._engine.activate(self._all, scene.states)
        self._engine.detect()
        warn_of_penetration(scene, self._engine.contacts())

    def step(self, count: int = 1) -> None:
        """Go on by `count` timesteps."""
        self._engine.step(count)
        self.step_count += count

    @property
    def time(self) -> float:
        """Simulated seconds so far."""
        assert self.params.timestep is not None
        return self.step_count * self.params.timestep

    @property
    def states(self) -> Array:
        """States of all bodies now, (body_count, 13)."""
        return self._engine.get_states(self._all)

    @property
    def state_hash(self) -> str:
        """Sixteen hexadecimal digits that change with any bit of any state."""
        return state_hash(self.states)

    def contacts(self) -> Contacts:
        """Contacts of the last step, as it began."""
        return self._engine.contacts()

    def joint_gaps(self) -> Array:
        """Gap of every joint now [m]."""
        return joint_gaps(self.scene, self.states)

    def residual(self) -> float:
        """What the solver's last sweep still changed [m/s]."""
        return self._engine.residual()

    def add_forces(self, body_ids: ArrayLike, forces: ArrayLike, torques: ArrayLike | None = None) -> None:
        """External forces [N] and torques [N m] on bodies, for the next step only."""
        self._engine.add_forces(body_ids, forces, torques)


def warn_of_penetration(scene: Scene, contacts: Contacts) -> None:
    """Warn if bodies start deep inside each other, and name the worst pair."""
    if len(contacts) == 0:
        return
    radii = scene.bounding_radii()
    a, b = contacts.bodies.T
    smaller = np.where(b >= 0, np.minimum(radii[a], radii[np.maximum(b, 0)]), radii[a])
    share = contacts.depth / smaller
    worst = int(np.argmax(share))
    if share[worst] <= DEEP:
        return
    other = scene.body_title(b[worst]) if b[worst] >= 0 else f"static body {-1 - b[worst]}"
    count = int((share > DEEP).sum())
    warnings.warn(
        f"scene {scene.name!r}: {scene.body_title(a[worst])} starts {contacts.depth[worst]:.3g} m deep inside {other}"
        + (f" ({count} pairs are deep inside each other)" if count > 1 else "")
        + "; they will be pushed apart",
        PenetrationWarning,
        stacklevel=3,
    )
