"""How long a worker may take before it counts as hung: a limit that follows its usual time."""

from __future__ import annotations

from collections import deque

MANY = 20
"""A worker hangs that takes so many times as long as the slowest of its recent steps."""
RECENT = 50
"""Steps that are recent."""
FIRST = 12
"""A fresh worker activates all its bodies in its first step: it has so many times the least limit."""
START_S = 120.0
"""What a worker may take to start, until it reports that it is there [s]."""


class AnswerLimits:
    """For every worker. `least_s` is the limit of those that are fast (`Params.hang_limit`)."""

    def __init__(self, least_s: float) -> None:
        self._least_s = least_s
        self._recent: dict[int, deque[float]] = {}

    def limit_s(self, worker: int) -> float:
        """How long to wait for this worker's answer [s]."""
        recent = self._recent.get(worker)
        return max(self._least_s, MANY * max(recent)) if recent else FIRST * self._least_s

    def answered(self, worker: int, seconds: float) -> None:
        """Take note of a step's wall time, from command to answer."""
        self._recent.setdefault(worker, deque(maxlen=RECENT)).append(seconds)

    def forget(self, worker: int) -> None:
        """A fresh worker takes its place."""
        self._recent.pop(worker, None)
