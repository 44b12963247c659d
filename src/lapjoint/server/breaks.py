"""BreakLog: which joints have broken, when, and under what."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays.state import PartState
from ..engines import JointBreaks

Ids = NDArray[np.int32]


class BreakLog:
    """Joints that have broken so far, in the order of steps and numbers."""

    def __init__(self) -> None:
        self.all = JointBreaks.none()
        """`step` is how many steps had been taken before the one in which it broke."""

    def add(self, found: JointBreaks, step_count: int) -> None:
        """Add what broke in steps that were taken at once from `step_count` on."""
        order = np.lexsort((found.joint, found.step))
        self.all = JointBreaks(
            np.concatenate([self.all.step, found.step[order] + step_count]).astype(np.int32),
            np.concatenate([self.all.joint, found.joint[order]]).astype(np.int32),
            np.concatenate([self.all.load, found.load[order]]),
        )

    def state(self) -> PartState:
        return PartState(dict(vars(self.all)))

    def restore(self, state: PartState) -> None:
        self.all = JointBreaks(*(state.array(name) for name in ("step", "joint", "load")))
