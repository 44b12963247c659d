"""Kept: the states of before a step, which workers keep of their own bodies, so that a step can be taken again.

A worker copies its rows of the table of states just before it writes its results there, and notes which command they
are of. So nobody copies the states of all bodies, and whatever becomes of a worker, the rows of before are there: in
the table, if it has not noted the command, else here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_WORKERS = 1024


@dataclass
class Kept:
    """Memory that the server and the workers share."""

    states: NDArray[np.float64]
    """A row for each body, as in the table of states."""
    noted: NDArray[np.int64]
    """By worker: the number of the last command (StepCommand.number) of which it has begun to write results."""

    @staticmethod
    def none() -> Kept:
        """Where nothing is kept."""
        return Kept(np.empty((0, 0)), np.empty(0, np.int64))
