"""States of bodies as a user gives them: the layout of a row, and the check that every row is a state."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays.checks import LARGEST, short
from ..errors import LapjointError

Array = NDArray[np.float64]
STATE_SIZE = 13  # position 3, quaternion w x y z, linear velocity 3, angular velocity 3


def there(states: Array) -> NDArray[np.bool_]:
    """Which rows are of bodies that are there: those of bodies that were removed, or are not made yet, are zeros."""
    return np.asarray(states.any(axis=1))


class HasBodyTitles(Protocol):
    """What names bodies in messages: a Scene."""

    def body_title(self, body_id: int) -> str: ...


def checked_states(scene: HasBodyTitles, body_ids: ArrayLike, states: ArrayLike, what: str) -> Array:
    """`states` as one row for each body: given so, or one row for all. A row that is not finite, or whose quaternion is
    zero, raises a LapjointError that begins with `what` and names the body."""
    ids = np.asarray(body_ids).reshape(-1)
    try:
        given = np.asarray(states, np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.shape not in ((STATE_SIZE,), (1, STATE_SIZE), (len(ids), STATE_SIZE)):
        rows_too = f" or {len(ids)} rows" if len(ids) > 1 else ""
        raise LapjointError(f"{what}: state is {short(states)}, expected {STATE_SIZE} numbers{rows_too}")
    rows = np.ascontiguousarray(np.broadcast_to(given, (len(ids), STATE_SIZE)))
    for row in np.flatnonzero(~(np.abs(rows) <= LARGEST).all(axis=1)):
        raise LapjointError(
            f"{what}: {scene.body_title(int(ids[row]))}: state is {short(rows[row])}, expected finite numbers"
        )
    for row in np.flatnonzero(np.linalg.norm(rows[:, 3:7], axis=1) < 1e-6):
        raise LapjointError(
            f"{what}: {scene.body_title(int(ids[row]))}: the state's quaternion is {short(rows[row, 3:7])}, "
            "expected a rotation (w, x, y, z)"
        )
    return rows
