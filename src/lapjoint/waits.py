"""Waits: no longer than a limit, in time that this program runs.

A program can be paused as a whole, by `docker pause`, a batch system, or SIGSTOP to all its processes. Whoever it waits
for is paused with it, and can have done nothing meanwhile. So whoever waits looks at the clock often, and time that
passes between two looks counts for little more than it should have taken.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Any

from .errors import LapjointError

LOOK_S = 0.1
"""How often to look at the clock while waiting [s]."""
MOST_S = 3 * LOOK_S
"""What counts of the time between two looks at most [s]: what is longer is a pause."""


class RunningTime:
    """Time since it was made, without pauses: up to the last look."""

    def __init__(self) -> None:
        self.seconds = self.paused_s = 0.0
        self._looked_at = monotonic()

    def look(self) -> float:
        """Count the time since the last look; returns all that counts [s]."""
        now = monotonic()
        passed_s, self._looked_at = now - self._looked_at, now
        self.seconds += min(passed_s, MOST_S)
        self.paused_s += max(0.0, passed_s - MOST_S)
        return self.seconds


class Patience:
    """So many seconds, for one wait or for several together."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s, self._running = limit_s, RunningTime()

    @property
    def left_s(self) -> float:
        return max(0.0, self._limit_s - self._running.seconds)

    def wait(self, wait: Callable[[float], Any]) -> bool:
        """Whether `wait`, which is called with how long it may take [s], returns something true before the limit. It is
        called once at least, and again and again until then."""
        while not wait(min(LOOK_S, self.left_s)):
            self._running.look()
            if self.left_s == 0.0:
                return False
        return True


def wait_within(limit_s: float, wait: Callable[[float], Any]) -> bool:
    """As `Patience.wait`, for one wait."""
    return Patience(limit_s).wait(wait)


def join(thread: threading.Thread, limit_s: float, title: str) -> None:
    """Wait until a thread has ended. A LapjointError with its title, if that takes longer."""

    def has_ended(seconds: float) -> bool:
        thread.join(seconds)
        return not thread.is_alive()

    if not wait_within(limit_s, has_ended):
        raise LapjointError(f"{title} has not ended within {limit_s:.3g} s")
