"""Lives: in which frames bodies or joints are there, for reading."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..scene.living import NEVER

Ids = NDArray[np.int32]
Frames = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """Something that has happened to bodies or joints: before which frame, after how many steps, and to which."""

    frame: Frames
    step: Ids
    number: Ids

    @staticmethod
    def none() -> Rows:
        return Rows(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32))

    def up_to(self, frame: int) -> Rows:
        """Those that have happened up to a frame."""
        rows = self.frame <= frame
        return Rows(self.frame[rows], self.step[rows], self.number[rows])


class Lives:
    """Of bodies or of joints, by number: when each came and went."""

    def __init__(self, count: int, made: Rows, removed: Rows) -> None:
        """Raises a ValueError where there are no such numbers, or something goes before it has come."""
        self.made, self.removed = made, removed
        self.first_step, self.last_step = np.zeros(count, np.int32), np.full(count, NEVER, np.int32)
        """How many steps had been taken."""
        self._first_frame, self._end_frame = np.zeros(count, np.int64), np.full(count, NEVER, np.int64)
        if (made.number != np.arange(count - len(made.number), count)).any() or len(made.number) > count:
            raise ValueError(f"{made.number} are made, expected the last of {count}")
        if ((removed.number < 0) | (removed.number >= count)).any():
            raise ValueError(f"{removed.number} are removed, expected numbers below {count}")
        if len(np.unique(removed.number)) < len(removed.number):
            raise ValueError("something is removed twice")
        self.first_step[made.number], self.last_step[removed.number] = made.step, removed.step
        self._first_frame[made.number], self._end_frame[removed.number] = made.frame, removed.frame
        if (self.first_step < 0).any() or (self.last_step < self.first_step).any():
            raise ValueError("something is removed before it is made")
        if (self._end_frame < self._first_frame).any():
            raise ValueError("something is removed in a frame before it is made")

    def there(self, start: int, stop: int | None = None) -> NDArray[np.bool_]:
        """Who is there in a frame, or in any from `start` to before `stop`."""
        first, end = self._first_frame, self._end_frame
        return (first < (start + 1 if stop is None else stop)) & (end > start) & (first < end)

    def span(self, number: int) -> tuple[int, int]:
        """The first frame in which one is there, and the first after it in which it is not."""
        return int(self._first_frame[number]), int(self._end_frame[number])

    def runs(self, start: int, stop: int, width: int) -> list[tuple[int, int]]:
        """First and end of numbers, in whole blocks of this width, in which anybody is there in these frames."""
        there = self.there(start, stop)
        blocks = np.logical_or.reduceat(there, np.arange(0, len(there), width)) if len(there) else there
        edges = np.flatnonzero(np.diff(np.concatenate([[False], blocks, [False]]).astype(np.int8)))
        return [(width * low, min(width * high, len(there))) for low, high in edges.reshape(-1, 2).tolist()]
