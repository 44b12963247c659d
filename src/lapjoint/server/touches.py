"""Touches: who began to touch whom, who ceased to, and who hit whom at a speed, for as long as a simulation has run.

Workers report what they see: in the first of some steps all that touches, then what changes. They remember nothing, so
whoever has a body now can report for it. Who touches whom is known here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays.columns import Columns
from ..arrays.state import PartState
from ..engines import StepTable, TouchReports
from ..engines.step_tables import BEGIN, END, NEAR
from ..errors import LapjointError
from .step_log import StepLog

Array = NDArray[np.float64]
Ids = NDArray[np.int32]
Keys = NDArray[np.int64]

TOUCH_KINDS = ("begin", "end", "hit")


@dataclass(frozen=True)
class Touches(StepTable):
    """Touches of bodies with `touch_events` or a `hit_speed`, in the order of steps and bodies."""

    bodies: Ids
    """(n, 2). The second is -1 - s where it is the static body s."""
    kind: NDArray[np.uint8]
    """Its place in TOUCH_KINDS: two bodies begin to touch, cease to, or begin to at a speed of `hit_speed` or more."""
    speed: Array
    """(n,) with which they came nearer along the normal, as the step began [m/s]; 0 for an end."""

    @classmethod
    def none(cls) -> Touches:
        return cls(np.empty(0, np.int32), np.empty((0, 2), np.int32), np.empty(0, np.uint8), np.empty(0))

    @property
    def is_static(self) -> NDArray[np.bool_]:
        """Which rows are of a static body."""
        return self.bodies[:, 1] < 0

    def of(self, kind: str) -> Touches:
        """Those of one kind, by its name."""
        if kind not in TOUCH_KINDS:
            raise LapjointError(f"no touches are {kind!r}; known kinds: {', '.join(TOUCH_KINDS)}")
        return self.taken(self.kind == TOUCH_KINDS.index(kind))


class TouchLog:
    """All touches so far, and who touches whom now."""

    def __init__(self) -> None:
        self._log = StepLog(Touches)
        self._touching: Keys = np.empty(0, np.int64)  # ascending

    @property
    def all(self) -> Touches:
        return self._log.all

    @property
    def touching(self) -> Ids:
        """Pairs that touch now, (n, 2), of bodies whose touches are reported."""
        return _bodies_of(self._touching)

    def add(self, reported: TouchReports, bodies: Columns, step_count: int) -> None:
        """Add what workers reported of steps that were taken at once from `step_count` on."""
        keys, before = _keys_of(reported.bodies), self._touching
        is_first = reported.step == 0
        if is_first.all() and np.array_equal(np.sort(keys[reported.kind == BEGIN]), before):
            return  # as in most steps
        touch = is_first & (reported.kind == BEGIN)
        goes_on = np.isin(keys[is_first & (reported.kind == NEAR)], before)
        now = np.union1d(keys[touch], keys[is_first & (reported.kind == NEAR)][goes_on])
        ended = before[~np.isin(before, now)]
        # Later ones alternate, but the first of a pair may be known already: a worker cannot tell.
        later = np.flatnonzero(~is_first)
        later = later[np.lexsort((reported.step[later], keys[later]))]
        _, first = np.unique(keys[later], return_index=True)
        is_new = np.ones(len(later), bool)
        is_new[first] = (reported.kind[later[first]] == BEGIN) != np.isin(keys[later[first]], now)
        later = later[is_new]
        begins = np.concatenate([np.flatnonzero(touch & ~np.isin(keys, before)), later[reported.kind[later] == BEGIN]])
        ends = later[reported.kind[later] == END]
        self._log.add(
            self._wanted(
                TouchReports.joined(
                    [
                        reported.taken(begins),
                        reported.taken(ends),
                        _ends(ended, 0),
                    ]
                ),
                bodies,
            ),
            step_count,
        )
        last = later[np.append(np.diff(keys[later]) != 0, True)[: len(later)]]
        gone, come = (keys[last[reported.kind[last] == kind]] for kind in (END, BEGIN))
        self._touching = np.union1d(np.setdiff1d(now, gone), come)

    def remove(self, body_ids: Ids, bodies: Columns, step_count: int) -> None:
        """Bodies are about to be taken out, after so many steps: they cease to touch."""
        gone = np.isin(self.touching, body_ids).any(axis=1)
        if gone.any():
            self._log.add(self._wanted(_ends(self._touching[gone], 0), bodies), step_count)
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


def _ends(keys: Keys, step: int) -> TouchReports:
    count = len(keys)
    return TouchReports(
        np.full(count, step, np.int32), _bodies_of(keys), np.full(count, END, np.uint8), np.zeros(count)
    )


def _keys_of(bodies: Ids) -> Keys:
    """One number for each pair; static bodies come after all others."""
    a, b = bodies.astype(np.int64).T
    return np.asarray(a << 32 | np.where(b < 0, 2**31 - 1 - b, b))


def _bodies_of(keys: Keys) -> Ids:
    b = keys & (2**32 - 1)
    return np.stack([keys >> 32, np.where(b >= 2**31, 2**31 - 1 - b, b)], axis=1).astype(np.int32)
