"""Frame: a sample of a simulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Frame:
    """One sample of a simulation."""

    step_count: int
    time: float
    """s"""
    states: NDArray[np.float64]
