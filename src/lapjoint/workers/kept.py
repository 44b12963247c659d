"""Kept: the states of before a step, which workers keep of their own bodies, so that a step can be taken again.

A worker copies its rows of the table of states just before it writes its results there, and notes which command they
are of. So nobody copies the states of all bodies, and whatever becomes of a worker, the rows of before are there: in
the table, if it has not noted the command, else here.

That is so where server and workers share memory. Workers on other machines: see runtimes/copies.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .messages import Command, StepCommand

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

MOST_WORKERS = 1024


@dataclass
class Kept:
    """Memory that the server and the workers share."""

    states: Array
    """A row for each body, as in the table of states."""
    noted: NDArray[np.int64]
    """By worker: the number of the last command (StepCommand.number) of which it has begun to write results."""
    sent: dict[int, int] = field(default_factory=dict)
    """By worker: the number of the last command to step that the server has sent it."""

    @staticmethod
    def none() -> Kept:
        """Where nothing is kept."""
        return Kept(np.empty((0, 0)), np.empty(0, np.int64))

    def note_sent(self, commands: Sequence[Command | None]) -> None:
        """These are sent to the workers."""
        for worker, command in enumerate(commands):
            if isinstance(command, StepCommand):
                self.sent[worker] = command.number

    def before(self, worker: int, bodies: Ids, table: Array) -> Array:
        """States of a worker's own bodies before its last command to step, of which the table may have its results."""
        has_written = int(self.noted[worker]) == self.sent.get(worker)
        return np.asarray((self.states if has_written else table)[bodies])
