"""Joints whose counted angles have come to other half turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Combine, Ids, Of, StepTable, column


@dataclass(frozen=True)
class HalfTurns(StepTable):
    """Joints whose counted angles are next to other half turns than when this was last reported, or set: after the last
    of the steps. Where several workers have a joint, they give the same angle."""

    name: ClassVar[str] = "half_turns"
    row_name: ClassVar[str] = "half_turn"
    combine: ClassVar[Combine] = Combine.FIRST
    kept: ClassVar[bool] = False  # the server counts on from them

    joint: Ids = column(np.int32, of=Of.JOINT)
    half_turns: Ids = column(np.int32)
