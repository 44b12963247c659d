"""What can be read of the last step: forces of joints, contact points with their impulses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


@dataclass(frozen=True)
class ContactPoints:
    """Contact points of one step, one row each, in the order of bodies. Impulses are on the first body, over the step;
    the second one has the opposite."""

    bodies: Ids
    """(n, 2). The second is -1 - s where it is the static body s."""
    point: Array
    """(n, 3) in the world, as the step began [m]."""
    normal: Array
    """(n, 3) the direction in which the first body is pushed."""
    depth: Array
    """(n,) as the step began [m]; negative where bodies are near but apart."""
    normal_impulse: Array
    """(n,) along the normal [N s]."""
    friction_impulse: Array
    """(n, 3) across the normal [N s]. Friction acts on the points of a contact as a whole: each has an even share."""
    angular_impulse: Array
    """(n, 3) of twist and rolling friction, besides [N m s]; the same."""

    @staticmethod
    def none() -> ContactPoints:
        """No contact points."""
        pairs, row, rows = np.empty((0, 2), np.int32), np.empty(0), np.empty((0, 3))
        return ContactPoints(pairs, rows, rows, row, row, rows, rows)

    def __len__(self) -> int:
        return len(self.bodies)

    @property
    def impulse(self) -> Array:
        """(n, 3) along the normal and of friction together [N s]."""
        return np.asarray(self.normal_impulse[:, None] * self.normal + self.friction_impulse)

    def taken(self, rows: Any) -> ContactPoints:
        """Some of the rows: a slice, a mask or their numbers."""
        return ContactPoints(*(column[rows] for column in vars(self).values()))

    @staticmethod
    def joined(parts: Iterable[ContactPoints]) -> ContactPoints:
        """The rows of all, in the order of bodies. Those of two bodies are all in one of the parts."""
        columns = zip(*(vars(part).values() for part in (ContactPoints.none(), *parts)), strict=True)
        found = ContactPoints(*map(np.concatenate, columns))
        a, b = found.bodies.T.astype(np.int64)
        return found.taken(np.lexsort((np.where(b < 0, 2**31 - 1 - b, b), a)))  # static bodies come after all others


@runtime_checkable
class ReadingEngine(Protocol):
    """What an engine offers besides whose forces can be read (features "joint forces" and "contact impulses"): of the
    last step of a call, with Params.keep_forces. What is between two workers is read from the first of them."""

    def contact_points(self) -> ContactPoints:
        """All contact points."""
        ...

    def joint_forces(self, joint_ids: ArrayLike) -> Array:
        """Force [N] and torque about the anchor [N m] on body a of each joint, in the mean, in the joint's frame on
        body b, (n, 6); zeros for one that is not here."""
        ...
