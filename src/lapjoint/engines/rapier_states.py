"""Reading states of Rapier's bodies. It has no bulk call; one call a body is the least, and gives a body as bytes.

Where in these bytes the state lies is found out when an engine starts, by a body in known states. If it is not found,
as with a version that packs bodies otherwise, states are read by four calls a body, at three times the cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..scene import STATE_SIZE
from .base import Array

TRIALS = (
    ((1.25, 2.25, 3.25), (0.5, -0.5, 0.5, 0.5), (4.25, 5.25, 6.25), (7.25, 8.25, 9.25)),
    ((-1.5, 12.75, 0.375), (0.5, 0.5, -0.5, 0.5), (-4.5, 0.875, 16.5), (2.625, -8.5, 19.25)),
)
"""Position, quaternion x y z w, velocities: exact in float32."""


class StateReader:
    """Reads bodies that have one collider and mass properties of their own."""

    def __init__(self, rapier: Any) -> None:
        self._size, self._columns = self._find(rapier)

    @property
    def is_fast(self) -> bool:
        return self._size > 0

    def read(self, bodies: Sequence[Any]) -> Array:
        """States, one row for each body."""
        if self._size and bodies:
            blob = b"".join([body.to_bytes() for body in bodies])
            if len(blob) == self._size * len(bodies):
                raw = np.frombuffer(blob, np.uint8).reshape(len(bodies), self._size)[:, self._columns]
                return np.ascontiguousarray(raw).view("<f4").astype(float)
        return read_slowly(bodies)

    def _find(self, rapier: Any) -> tuple[int, NDArray[np.intp]]:
        """Size of a body in bytes, and which of them are its state; nothing where that is not certain."""
        world = rapier.PhysicsWorld()
        mass = rapier.MassProperties((0.0, 0.0, 0.0), 1.0, (1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0))
        builder = rapier.RigidBody.dynamic().can_sleep(False).additional_mass_properties(mass)
        body = world.rigid_bodies[world.add_body(builder, [rapier.Collider.ball(0.5).density(0.0)])]
        columns: NDArray[np.intp] | None = None
        size = 0
        for place, turn, linear, angular in TRIALS:
            body.position, body.linvel, body.angvel = (place, turn), linear, angular
            blob = body.to_bytes()
            starts = [blob.find(np.array(part, "<f4").tobytes()) for part in (place, turn, linear, angular)]
            if min(starts) < 0 or (columns is not None and columns[0] != starts[0]):
                return 0, np.empty(0, np.intp)
            x, q, v, w = starts
            floats = [x, x + 4, x + 8, q + 12, q, q + 4, q + 8, *(v + 4 * k for k in range(3))]
            floats += [w + 4 * k for k in range(3)]
            columns = (np.array(floats)[:, None] + np.arange(4)).ravel()
            size = len(blob)
        # A step moves the body: where it is then, not where it was, must be in the same place. Properties are rounded
        # otherwise: Rapier normalizes rotations that it hands out.
        world.step()
        self._size, self._columns = size, np.asarray(columns)
        if not np.allclose(self.read([body]), read_slowly([body]), rtol=1e-6, atol=1e-6):
            return 0, np.empty(0, np.intp)
        return size, self._columns


def read_slowly(bodies: Sequence[Any]) -> Array:
    """States by the properties of each body."""
    rows = [
        (*body.translation.to_tuple(), *body.rotation.to_tuple(), *body.linvel.to_tuple(), *body.angvel.to_tuple())
        for body in bodies
    ]
    states = np.array(rows, float).reshape(-1, STATE_SIZE)
    return np.ascontiguousarray(states[:, [0, 1, 2, 6, 3, 4, 5, 7, 8, 9, 10, 11, 12]])
