"""Joints that broke."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..params import Params
from ..scene import Scene
from ..scene.bonds import can_break
from .base import Array, Ids, Of, StepTable, column


@dataclass(frozen=True)
class JointBreaks(StepTable):
    """Joints that broke, in the order of steps and numbers."""

    name: ClassVar[str] = "breaks"
    row_name: ClassVar[str] = "break"

    joint: Ids = column(np.int32, of=Of.JOINT)
    load: Array = column(float, 2)
    """(n, 2): force [N] and torque [N m] that the joint did in that step, in the mean."""

    @classmethod
    def asked_by(cls, scene: Scene, params: Params, first_body: int = 0, first_joint: int = 0) -> str | None:
        found = np.flatnonzero(can_break(scene.joints, first_joint))
        return f"scene {scene.name!r}: joint {first_joint + int(found[0])} can break" if len(found) else None
