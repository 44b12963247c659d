"""Pairs of bodies that touch: what workers see, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import LapjointError
from ..params import Params
from ..scene import Scene
from .base import Array, Ids, Of, StepTable, column

TOUCH_KINDS = ("begin", "end", "hit")
BEGIN, END, NEAR = range(3)


@dataclass(frozen=True)
class TouchReports(StepTable):
    """Pairs of bodies that touch in the first of some steps, and what changes in the later ones, in the order of steps
    and bodies. Who was touching before the first one is for the reader to know: see `Touches`."""

    name: ClassVar[str] = "touch_reports"
    row_name: ClassVar[str] = "touch_report"
    kept: ClassVar[bool] = False
    feature: ClassVar[str | None] = "touches"

    bodies: Ids = column(np.int32, 2, of=Of.CONTACT)
    """(n, 2). The second is -1 - s where it is the static body s."""
    kind: NDArray[np.uint8] = column(np.uint8, of=3)
    """BEGIN: they touch, and may not have before. END: they do no more. NEAR, of the first step alone: they do not, but
    are so near that a touch of before goes on."""
    speed: Array = column(float)
    """(n,) of BEGIN: with which they came nearer along the normal, as the step began [m/s]."""

    @classmethod
    def asked_by(cls, scene: Scene, params: Params, first_body: int = 0, first_joint: int = 0) -> str | None:
        bodies = scene.bodies
        found = np.flatnonzero(bodies.touch_events[first_body:] | np.isfinite(bodies.hit_speed[first_body:]))
        if len(found) == 0:
            return None
        body = first_body + int(found[0])
        option = "touch_events" if bodies.touch_events[body] else "a hit_speed"
        return f"scene {scene.name!r}: {scene.body_title(body)} has {option}"


@dataclass(frozen=True)
class Touches(StepTable):
    """Touches of bodies with `touch_events` or a `hit_speed`, in the order of steps and bodies."""

    name: ClassVar[str] = "touches"
    row_name: ClassVar[str] = "touch"

    bodies: Ids = column(np.int32, 2, of=Of.CONTACT)
    """(n, 2). The second is -1 - s where it is the static body s."""
    kind: NDArray[np.uint8] = column(np.uint8, of=len(TOUCH_KINDS))
    """Its place in TOUCH_KINDS: two bodies begin to touch, cease to, or begin to at a speed of `hit_speed` or more."""
    speed: Array = column(float)
    """(n,) with which they came nearer along the normal, as the step began [m/s]; 0 for an end."""

    @property
    def is_static(self) -> NDArray[np.bool_]:
        """Which rows are of a static body."""
        return self.bodies[:, 1] < 0

    def of(self, kind: str) -> Self:
        """Those of one kind, by its name."""
        if kind not in TOUCH_KINDS:
            raise LapjointError(f"no touches are {kind!r}; known kinds: {', '.join(TOUCH_KINDS)}")
        return self.taken(self.kind == TOUCH_KINDS.index(kind))

    @classmethod
    def asked_by(cls, scene: Scene, params: Params, first_body: int = 0, first_joint: int = 0) -> str | None:
        return TouchReports.asked_by(scene, params, first_body, first_joint)
