"""The progress of a study: which share of its work is done, and what is being done."""

from __future__ import annotations

from collections.abc import Callable

OnProgress = Callable[[str, float], None]
"""Gets what is being done and which share of all work is done, 0 to 1, after every step."""


class WorkMeter:
    """Adds up the work that is done and reports its share of the total."""

    def __init__(self, total: float, on_progress: OnProgress | None) -> None:
        self._total = total
        self._done = 0.0
        self._on_progress = on_progress or (lambda doing, share: None)

    def report(self, doing: str) -> None:
        self._on_progress(doing, self._done / self._total)

    def add(self, work: float, doing: str) -> None:
        self._done += work
        self.report(doing)
