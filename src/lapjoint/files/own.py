"""What exports write of bodies and scenes in words of our own: the same words in all formats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .model import Link, Model

SETTINGS = {"iterations": "iterations", "growth_depth": "growthDepth", "search_depth": "searchDepth"}


def set_link(link: Link, own: Mapping[str, Any]) -> None:
    """Give a link what an export has written of it."""
    link.name = str(own.get("name", ""))
    link.is_whole = own.get("shape") == "Compound"
    link.label = int(own.get("label", 0))
    link.hit_impulse = float(own.get("hitImpulse", np.inf))
    link.hit_speed = float(own.get("hitSpeed", np.inf))
    link.touch_events = bool(own.get("touchEvents", False))
    link.damping = (float(own.get("linearDamping", 0.0)), float(own.get("angularDamping", 0.0)))
    link.surface_velocity = np.array(own.get("surfaceVelocity", np.zeros(6)), float)


def set_model(model: Model, own: Mapping[str, Any]) -> None:
    """Give a model what an export has written of its scene."""
    model.name = str(own.get("name", model.name))
    model.timestep = own.get("timestep")
    model.settings = {name: int(own[word]) for name, word in SETTINGS.items() if word in own}
    if "camera" in own:
        eye, target = np.array(own["camera"], float).reshape(2, 3).tolist()
        model.camera = (tuple(eye), tuple(target))
