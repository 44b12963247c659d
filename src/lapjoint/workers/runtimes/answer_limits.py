"""How long a worker may take before it counts as hung: a limit that follows its usual time, between bounds."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ..messages import Reply, StepReply, WorkerFailure

MANY = 20
"""A worker hangs that takes so many times as long as the slowest of its recent steps."""
RECENT = 50
"""Steps that are recent."""
MOST = 12
"""No limit is more than so many times the least one, and"""
PER_BODY_S = 3e-4
"""so much for each body of the scene [s]. A fresh worker activates all its bodies: it has that much. (On a machine with
nothing else to do it takes a hundredth of it.)"""
START_LEAST_S = 10.0
"""What a worker may take at least to start, until it reports that it is there [s]."""


class AnswerLimits:
    """For every worker. `least_s` is the limit of those that are fast (`Params.hang_limit`)."""

    def __init__(self, least_s: float, body_count: int) -> None:
        self._least_s = least_s
        self.body_count = body_count
        """Of the scene."""
        self._recent: dict[int, deque[float]] = {}

    @property
    def most_s(self) -> float:
        return MOST * self._least_s + PER_BODY_S * self.body_count

    @property
    def start_s(self) -> float:
        """How long to wait for a worker that starts [s]."""
        return max(START_LEAST_S, self.most_s)

    def limit_s(self, worker: int, steps: int = 1) -> float:
        """How long to wait for this worker's answer to so many steps [s]."""
        recent = self._recent.get(worker)
        return min(max(self._least_s, MANY * steps * max(recent)), self.most_s) if recent else self.most_s

    def note(self, answers: Sequence[Reply | WorkerFailure | None], steps: int = 1, paused_s: float = 0.0) -> None:
        """Take note of how long every worker took by itself for so many steps. What it waited for others in a step is
        not its own time, nor is a pause of the whole program: one that hangs would raise the limits of all."""
        for worker, answer in enumerate(answers):
            if isinstance(answer, StepReply):
                own_s = max(0.0, answer.times.own_s - paused_s) / steps
                self._recent.setdefault(worker, deque(maxlen=RECENT)).append(own_s)

    def forget(self, worker: int) -> None:
        """A fresh worker takes its place."""
        self._recent.pop(worker, None)
