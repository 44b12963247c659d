"""Arrays that get more rows: the room doubles when it runs out, so that new rows cost what they are, whatever there is
already."""

from __future__ import annotations

import weakref
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)

_rooms: weakref.WeakValueDictionary[int, NDArray[Any]] = weakref.WeakValueDictionary()


def grown(array: NDArray[Scalar], count: int, fill: Any = 0) -> NDArray[Scalar]:
    """The array with rows added at its end, filled, until it has `count`. The new ones may lie behind the old ones in
    the same memory: the caller uses the old array no more."""
    before = len(array)
    if count <= before:
        return array
    room = array.base
    if room is None or _rooms.get(id(room)) is not room or len(room) < count or room.ctypes.data != array.ctypes.data:
        room = np.empty((max(count, 2 * before, 16), *array.shape[1:]), array.dtype)
        room[:before] = array
        _rooms[id(room)] = room
    rows: NDArray[Scalar] = room[:count]
    rows[before:] = fill
    return rows
