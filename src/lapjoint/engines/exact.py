"""Contacts by exact shapes, whatever engine made the states: what penetration is measured by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..params import Params
from ..scene import Scene
from .base import Array, Contacts
from .bullet import BulletEngine

if TYPE_CHECKING:
    from .. import _bullet_float32 as compiled


class ExactBullet(BulletEngine):
    """Bullet in which boxes and hulls end where they are drawn, with any solver."""

    def _settings(self) -> compiled.WorldSettings:
        settings = super()._settings()
        settings.exact_shapes = True
        return settings


def exact_contacts(scene: Scene, states: Array) -> Contacts:
    """Contacts of all bodies at these states, found in float64. Boxes and hulls touch where they are drawn: a depth is
    that of the separating axis, but for a hundredth of it and a ten thousandth of their size."""
    engine = ExactBullet(scene, Params(precision="float64").resolved(scene))
    engine.activate(np.arange(scene.body_count), states)
    engine.detect()
    return engine.contacts()
