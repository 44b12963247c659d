"""Hands: what a user does to bodies with the mouse. Pulls act as forces within the simulation, never beside it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import rotation
from ...scene import Scene

Array = NDArray[np.float64]

STIFFNESS = 10.0
"""Natural frequency of the spring of a pull [rad/s], for a body that hangs on nothing."""
DAMPING = 1.0
"""Of that spring; 1 is critical."""
SPIN_DAMPING = 0.3
"""Share of that frequency at which a pulled body stops spinning; a hand holds a body, not a point of it."""
MOST_G = 40.0
"""Largest pull, in weights of the body."""


@dataclass
class Pull:
    """A damped spring from a point of a body to a place."""

    body: int
    grip: Array
    """Where the body is held, in its own frame [m]."""
    target: Array
    """m"""

    @staticmethod
    def at(body: int, state: Array, point: ArrayLike) -> Pull:
        """A pull that holds a body at a point of the world, and pulls nowhere yet."""
        place = np.asarray(point, float)
        return Pull(body, rotation.rotate(rotation.conjugate(state[3:7]), place - state[:3]), place)


@dataclass
class Pulls:
    """All active pulls: the one at the mouse, and those that were kept."""

    held: Pull | None = None
    kept: list[Pull] = field(default_factory=list)

    def all(self) -> list[Pull]:
        return [*self.kept, *([] if self.held is None else [self.held])]

    def let_go(self, keep: bool) -> None:
        """End the pull at the mouse, or keep it."""
        if self.held is not None and keep:
            self.kept.append(self.held)
        self.held = None

    def remove(self, body: int | None = None) -> int:
        """Remove the pulls on one body, or all; returns how many there were."""
        before = self.all()
        self.kept = [pull for pull in self.kept if body is not None and pull.body != body]
        if self.held is not None and body in (None, self.held.body):
            self.held = None
        return len(before) - len(self.all())

    def keep(self, alive: NDArray[np.bool_]) -> None:
        """Remove the pulls on bodies that are gone."""
        for body in {pull.body for pull in self.all()}:
            if body >= len(alive) or not alive[body]:
                self.remove(body)

    def forces(self, scene: Scene, states: Array, timestep: float, strength: float) -> tuple[Array, Array, Array]:
        """Bodies, forces [N] and torques [N m] of all pulls."""
        pulls = self.all()
        bodies = np.array([pull.body for pull in pulls], int)
        grips = np.array([pull.grip for pull in pulls]).reshape(-1, 3)
        targets = np.array([pull.target for pull in pulls]).reshape(-1, 3)
        mass, inertia = scene.bodies.mass[bodies], scene.bodies.inertia[bodies]
        force, torque = spring_forces(states[bodies], grips, targets, mass, inertia, timestep, strength)
        return bodies, force, torque


def spring_forces(
    states: Array,
    grips: Array,
    targets: Array,
    mass: Array,
    inertia: Array,
    timestep: float,
    strength: float = 1.0,
) -> tuple[Array, Array]:
    """Forces [N] and torques [N m] of damped springs that hold bodies at `grips` (own frame) and draw these points to
    `targets`. `inertia` are tensors in the bodies' frames; `strength` multiplies the force. Never so stiff that a
    timestep could not follow it."""
    frequency = min(STIFFNESS * np.sqrt(strength), 0.15 / timestep)
    arms = rotation.rotate(states[:, 3:7], grips)
    points = states[:, :3] + arms
    velocities = states[:, 7:10] + np.cross(states[:, 10:13], arms)
    acceleration = frequency**2 * (targets - points) - 2 * DAMPING * frequency * velocities
    size = np.linalg.norm(acceleration, axis=1, keepdims=True)
    acceleration *= np.minimum(1.0, 9.81 * MOST_G * strength / np.maximum(size, 1e-12))
    force = mass[:, None] * acceleration
    turns = rotation.to_matrix(states[:, 3:7])
    spin = np.einsum("nij,njk,nlk,nl->ni", turns, inertia, turns, states[:, 10:13])
    return force, np.cross(arms, force) - SPIN_DAMPING * frequency * spin
