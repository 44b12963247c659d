"""Touches: who began to touch whom, who ceased to, and who hit whom at a speed, for as long as a simulation has run.

Workers report what they see: in the first of some steps all that touches, then what changes. They remember nothing, so
whoever has a body now can report for it. Who touches whom is known here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays.columns import Columns
from ..arrays.state import PartState
from ..step_tables.touches import BEGIN, END, NEAR, TOUCH_KINDS, Touches, TouchReports
from .step_log import StepLog

Array = NDArray[np.float64]
Ids = NDArray[np.int32]
Keys = NDArray[np.int64]


class TouchLog:
    """All touches so far, and who touches whom now."""

    def __init__(self) -> None:
        self._log = StepLog(Touches)
        self._touching: Keys = np.empty(0, np.int64)  # ascending

    @property
    def all(self) -> Touches:
        return self._log.all

    @property
    def is_any(self) -> bool:
        """Whether anybody touches whose touches are reported."""
        return len(self._touching) > 0

    @property
    def touching(self) -> Ids:
        """Pairs that touch now, (n, 2), of bodies whose touches are reported."""
        return _bodies_of(self._touching)

    def add(self, reported: TouchReports, bodies: Columns, step_count: int) -> None:
        """Add what workers reported of steps that were taken at once from `step_count` on."""
        keys, before = _keys_of(reported.bodies), self._touching
        is_first = reported.step == 0
        was_touching = _are_in(before, keys)
        touch = is_first & (reported.kind == BEGIN)
        now = np.sort(keys[touch | (is_first & (reported.kind == NEAR) & was_touching)])
        if is_first.all() and np.array_equal(now, before):
            return  # as in most steps
        # Later ones alternate, but the first of a pair may be known already: a worker cannot tell.
        later = np.flatnonzero(~is_first)
        later = later[np.lexsort((reported.step[later], keys[later]))]
        is_new = np.diff(keys[later], prepend=-1) == 0
        is_new |= (reported.kind[later] == BEGIN) != _are_in(now, keys[later])
        later = later[is_new]
        begins = np.concatenate([np.flatnonzero(touch & ~was_touching), later[reported.kind[later] == BEGIN]])
        ends = later[reported.kind[later] == END]
        ended = _ends(before[~_are_in(now, before)])
        found = TouchReports.joined([reported.taken(begins), reported.taken(ends), ended])
        self._log.add(self._wanted(found, bodies), step_count)
        last = later[np.diff(keys[later], append=-1) != 0]
        gone, come = (np.sort(keys[last[reported.kind[last] == kind]]) for kind in (END, BEGIN))
        now = now[~_are_in(gone, now)]
        self._touching = np.sort(np.concatenate([now, come[~_are_in(now, come)]]))

    def remove(self, body_ids: Ids, bodies: Columns, step_count: int) -> None:
        """Bodies are about to be taken out, after so many steps: they cease to touch."""
        gone = np.isin(self.touching, body_ids).any(axis=1)
        if gone.any():
            self._log.add(self._wanted(_ends(self._touching[gone]), bodies), step_count)
            self._touching = self._touching[~gone]

    @staticmethod
    def _wanted(found: TouchReports, bodies: Columns) -> Touches:
        """Of changes that happened, the rows that bodies want."""
        a, b = found.bodies.T
        with_body = b >= 0
        events = bodies.touch_events[a] | (bodies.touch_events[b] & with_body)
        speed = np.minimum(bodies.hit_speed[a], np.where(with_body, bodies.hit_speed[b], np.inf))
        hits = (found.kind == BEGIN) & (found.speed >= speed)
        kinds = np.full(int(hits.sum()), TOUCH_KINDS.index("hit"), np.uint8)
        rows = (found.taken(events), TouchReports(found.step[hits], found.bodies[hits], kinds, found.speed[hits]))
        return Touches(*vars(TouchReports.joined(rows)).values())

    def state(self) -> PartState:
        return PartState({**self._log.state().arrays, "touching": self.touching})

    def restore(self, state: PartState) -> None:
        self._log.restore(state)
        self._touching = np.sort(_keys_of(state.array("touching")))


def _ends(keys: Keys) -> TouchReports:
    """They have ended in the first step, or before it."""
    count = len(keys)
    return TouchReports(np.zeros(count, np.int32), _bodies_of(keys), np.full(count, END, np.uint8), np.zeros(count))


def _are_in(ascending: Keys, keys: Keys) -> NDArray[np.bool_]:
    """Which of the keys are among others."""
    if len(ascending) == 0:
        return np.zeros(len(keys), bool)
    place = np.minimum(np.searchsorted(ascending, keys), len(ascending) - 1)
    return np.asarray(ascending[place] == keys)


def _keys_of(bodies: Ids) -> Keys:
    """One number for each pair; static bodies come after all others."""
    a, b = bodies.astype(np.int64).T
    return np.asarray(a << 32 | np.where(b < 0, 2**31 - 1 - b, b))


def _bodies_of(keys: Keys) -> Ids:
    b = keys & (2**32 - 1)
    return np.stack([keys >> 32, np.where(b >= 2**31, 2**31 - 1 - b, b)], axis=1).astype(np.int32)
