"""Elastic: how many workers a load is worth, between two bounds."""

from __future__ import annotations

from math import ceil

from ..arrays.state import PartState
from ..params import Params

FULL_MS = 4.0
"""A worker's share of a step from which one more pays: what a worker costs in a step (its messages, the server's work
for it, bodies that are simulated twice) is about a millisecond."""
IDLE_MS = 2.0
"""A worker's share below which there are too many."""
LOOK_EVERY = 10
"""Steps between two looks at the load."""
NEVER = 1 << 30
PATIENCE = 5
"""Looks in a row that have to agree."""


class Elastic:
    """Decides how many workers there should be, from `params.workers` to `params.max_workers`; at most one per body."""

    def __init__(self, params: Params, body_count: int) -> None:
        self.least = params.workers
        self.most = min(params.max_workers or params.workers, max(body_count, 1))
        self._looks = 0

    def is_time_to_look(self, step_count: int) -> bool:
        return self.least < self.most and step_count % LOOK_EVERY == 0

    def most_steps(self, step_count: int) -> int:
        """How many steps there are until the next look."""
        return LOOK_EVERY - step_count % LOOK_EVERY if self.least < self.most else NEVER

    def state(self) -> PartState:
        return PartState(values={"least": self.least, "most": self.most, "looks": self._looks})

    def restore(self, state: PartState) -> None:
        self.least, self.most, self._looks = (state.values[name] for name in ("least", "most", "looks"))

    def wanted(self, worker_count: int, step_ms: float) -> int:
        """How many workers there should be, if all their steps together take `step_ms`."""
        share_ms = step_ms / worker_count
        fitting = min(max(ceil(step_ms / FULL_MS), self.least), self.most)
        passed = fitting > worker_count if share_ms > FULL_MS else fitting < worker_count and share_ms < IDLE_MS
        self._looks = self._looks + 1 if passed else 0
        if self._looks < PATIENCE:
            return worker_count
        self._looks = 0
        return fitting
