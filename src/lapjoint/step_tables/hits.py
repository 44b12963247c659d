"""Contacts that hit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..params import Params
from ..scene import Scene
from .base import Array, Ids, Of, StepTable, column


@dataclass(frozen=True)
class Hits(StepTable):
    """Contacts that did as much in a step as the lower of their bodies' `hit_impulse`, in the order of steps and
    bodies."""

    name: ClassVar[str] = "hits"
    row_name: ClassVar[str] = "hit"
    feature: ClassVar[str | None] = "hits"

    bodies: Ids = column(np.int32, 2, of=Of.CONTACT)
    """(n, 2). The second is -1 - s where it is the static body s."""
    impulse: Array = column(float)
    """(n,) of all contact points along their normals, over the step [N s]."""
    point: Array = column(float, 3)
    """(n, 3) mean of the contact points as the step began, weighted by their impulses [m]."""
    normal: Array = column(float, 3)
    """(n, 3) the direction in which the first body is pushed; the mean in the same way."""

    @classmethod
    def asked_by(cls, scene: Scene, params: Params, first_body: int = 0, first_joint: int = 0) -> str | None:
        found = np.flatnonzero(np.isfinite(scene.bodies.hit_impulse[first_body:]))
        if len(found) == 0:
            return None
        return f"scene {scene.name!r}: {scene.body_title(first_body + int(found[0]))} has a hit_impulse"
