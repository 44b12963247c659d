"""Energy that came from nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Array, Combine, Ids, Of, StepTable, column


@dataclass(frozen=True)
class Surges(StepTable):
    """Bodies of islands whose energy rose in a step beyond what anything explains, in the order of steps and bodies:
    those that have gained more than their part. An island of several workers has rows of each of them."""

    name: ClassVar[str] = "surges"
    row_name: ClassVar[str] = "surge"
    combine: ClassVar[Combine] = Combine.ALL
    kept: ClassVar[bool] = False  # they become incidents

    body: Ids = column(np.int32, of=Of.BODY)
    island: Ids = column(np.int32, of=Of.BODY)
    """(n,) the lowest body of the island, which contacts and joints connect."""
    energy: Array = column(float)
    """(n,) what the island has gained that nothing explains [J]."""
    limit: Array = column(float)
    """(n,) a tenth of gravity times mass times size, of all bodies of the island [J]: most that is no surge."""
