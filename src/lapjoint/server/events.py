"""Events: what happened to bodies and joints of a scene in motion, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import LapjointError
from ..scene.living import NEVER, LivingScene
from ..step_tables.breaks import JointBreaks
from ..step_tables.hits import Hits

Ids = NDArray[np.int32]

KINDS = ("made", "removed", "broke", "hit")


@dataclass(frozen=True)
class Events:
    """A row for each event, in the order of step, kind and number."""

    step: Ids
    """How many steps had been taken before it, or before the one in which it happened."""
    kind: NDArray[np.uint8]
    """Its place in KINDS: a body was made, a body was removed, a joint broke, a contact hit."""
    number: Ids
    """Of the body, or of the joint; of a hit, its row in `hits`."""

    def __len__(self) -> int:
        return len(self.step)

    def of(self, kind: str) -> Events:
        """Those of one kind, by its name."""
        if kind not in KINDS:
            raise LapjointError(f"no events are {kind!r}; known kinds: {', '.join(KINDS)}")
        rows = self.kind == KINDS.index(kind)
        return Events(self.step[rows], self.kind[rows], self.number[rows])

    def since(self, step: int) -> Events:
        """Those from a step on."""
        first = int(np.searchsorted(self.step, step))
        return Events(self.step[first:], self.kind[first:], self.number[first:])


def find_events(scene: LivingScene, breaks: JointBreaks, hits: Hits) -> Events:
    """All events so far."""
    made = np.arange(scene.began_with[1], scene.body_count, dtype=np.int32)
    removed = np.flatnonzero(scene.last_step != NEVER).astype(np.int32)
    return order_events(
        made=(scene.first_step[made], made),
        removed=(scene.last_step[removed], removed),
        broke=(breaks.step, breaks.joint),
        hit=(hits.step, np.arange(len(hits), dtype=np.int32)),
    )


def order_events(**found: tuple[Ids, Ids]) -> Events:
    """Events of all kinds in their order, from the steps and numbers of each kind."""
    steps, numbers = zip(*(found[kind] for kind in KINDS), strict=True)
    kind = np.repeat(np.arange(len(KINDS), dtype=np.uint8), [len(rows) for rows in numbers])
    step, number = np.concatenate(steps), np.concatenate(numbers)
    order = np.lexsort((number, kind, step))
    return Events(step[order], kind[order], number[order])
