"""Balls: bodies that a live view throws into a running simulation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...errors import LapjointError
from ...scene import Scene, Sphere
from ...simulation import Simulation

BALLS = 8
"""How many there are at once, at most, unless another number is given."""
MASS = 10.0
"""Of a ball, in masses of the scene's median body."""
RADIUS = 1.5
"""Of a ball, in bounding radii of the scene's median body."""


class Balls:
    """The balls of one simulation. At most so many are there at once: one more takes the place of the one thrown
    first."""

    def __init__(self, scene: Scene, most: int) -> None:
        self._most = most
        has_bodies = scene.body_count > 0
        self._shape = Sphere(RADIUS * float(np.median(scene.bounding_radii())) if has_bodies else 0.5)
        self._mass = MASS * float(np.median(scene.bodies.mass)) if has_bodies else None
        self._label = int(scene.bodies.label.max(initial=-1)) + 1
        self._thrown: list[int] = []

    def throw(self, simulation: Simulation, eye: ArrayLike, direction: ArrayLike, speed: float) -> int:
        """Add a ball that leaves the camera at that speed [m/s]; returns its number."""
        if self._most == 0:
            raise LapjointError("there are no balls to throw: --balls is 0")
        ahead = np.asarray(direction, float) / np.linalg.norm(direction)
        ball = simulation.bodies.add_one(
            self._shape,
            np.asarray(eye, float) + 2 * self._shape.radius * ahead,
            linear_velocity=speed * ahead,
            mass=self._mass,
            label=self._label,
        )
        there = [body for body in self._thrown if body < ball and simulation.alive[body]]
        over = max(len(there) + 1 - self._most, 0)
        simulation.bodies.remove(there[:over])
        self._thrown = [*there[over:], ball]
        return ball

    def restart(self) -> None:
        """Forget the balls that were thrown: the simulation has restarted."""
        self._thrown.clear()
