"""Contacts by exact shapes, whatever engine made the states: what penetration is measured by."""

from __future__ import annotations

import numpy as np

from ..params import Params
from ..scene import Scene
from .base import Array, Contacts
from .bullet import BulletEngine


def exact_contacts(scene: Scene, states: Array) -> Contacts:
    """Contacts of all bodies at these states, found in float64, as for the substep solver. Boxes and hulls touch where
    they are drawn: a depth is that of the separating axis, but for a hundredth of it and a ten thousandth of their
    size."""
    engine = BulletEngine(scene, Params(precision="float64", solver="substeps").resolved(scene))
    engine.activate(np.arange(scene.body_count), states)
    return engine.contacts(now=True)
