"""Contacts that start to slide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..params import Params
from ..scene import Scene
from .base import Array, Ids, Of, StepTable, column


@dataclass(frozen=True)
class Slides(StepTable):
    """Contacts whose points were no faster across the normal than `Params.slide_speed` as a step began, and one of them
    faster as it ended, in the order of steps and bodies."""

    name: ClassVar[str] = "slides"
    row_name: ClassVar[str] = "slide"
    feature: ClassVar[str | None] = "slides"

    bodies: Ids = column(np.int32, 2, of=Of.CONTACT)
    """(n, 2). The second is -1 - s where it is the static body s."""
    point: Array = column(float, 3)
    """(n, 3) mean of the contact points as the step began, weighted by their impulses [m]."""
    normal: Array = column(float, 3)
    """(n, 3) the direction in which the first body is pushed; the mean in the same way."""
    speed: Array = column(float)
    """(n,) of the fastest point as the step ended, relative to the other body [m/s]."""

    @property
    def body_a(self) -> Ids:
        return self.bodies[:, 0]

    @property
    def body_b(self) -> Ids:
        return self.bodies[:, 1]

    @classmethod
    def asked_by(cls, scene: Scene, params: Params, first_body: int = 0, first_joint: int = 0) -> str | None:
        return f"slide_speed is {params.slide_speed}" if params.slide_speed is not None and first_body == 0 else None
