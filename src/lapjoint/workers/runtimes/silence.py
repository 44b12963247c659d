"""How long workers of this machine have not answered, in time in which they could have.

What does not count: a pause of the whole program; time in which a worker waits for another one; and time in which it
wants a core and the machine gives it none. One that is stopped, blocks or runs in circles has no such excuse.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from ...waits import RunningTime
from .child import Child

EXAMINE_S = 1.0
"""From this silence on it is looked at whether a worker has a core [s]: one look takes 20 us."""
STARVED = 0.02
"""Time in which a worker has no core counts for so much at least: there is an end to everything."""


class Silence:
    """Of workers that were all asked now."""

    def __init__(self) -> None:
        self.running = RunningTime()
        self._since_s = self._noted_s = 0.0
        self._excused_s: dict[Child, float] = {}
        self._cores: dict[Child, CoreTime] = {}

    def of(self, child: Child) -> float:
        """[s]"""
        return self.running.seconds - self._since_s - self._excused_s.get(child, 0.0)

    def restart(self) -> None:
        """None of them could have answered before."""
        self._since_s = self._noted_s = self.running.seconds
        self._excused_s.clear()

    def note(self, waiting: Iterable[Child], blocking: Collection[Child]) -> None:
        """None of those that are waited for has answered until the last look; of these, all but `blocking` wait for
        others."""
        passed_s, self._noted_s = self.running.seconds - self._noted_s, self.running.seconds
        for child in waiting:
            usable_s = 0.0
            if child in blocking:
                usable_s = passed_s
                if self.of(child) > EXAMINE_S:
                    usable_s = self._cores.setdefault(child, CoreTime(child.pid)).usable_s(passed_s)
            if usable_s < passed_s:
                self._excused_s[child] = self._excused_s.get(child, 0.0) + passed_s - usable_s


class CoreTime:
    """Of a process of this machine."""

    def __init__(self, pid: int) -> None:
        self._stat = Path(f"/proc/{pid}/stat")
        self._used_s = -1.0

    def usable_s(self, passed_s: float) -> float:
        """How much of the time since the last call, so many seconds, the process could have used: all, unless it was
        ready to run and did not."""
        before, (is_ready, self._used_s) = self._used_s, self._look()
        if before < 0.0 or not is_ready:
            return passed_s
        return min(passed_s, max(self._used_s - before, STARVED * passed_s))

    def _look(self) -> tuple[bool, float]:
        """Whether it runs or is ready to, and the CPU time that it has used [s]."""
        try:
            words = self._stat.read_text().rpartition(")")[2].split()  # the name before it may have blanks
            return words[0] == "R", (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError):  # it has ended, or the system has no such file
            return False, -1.0
