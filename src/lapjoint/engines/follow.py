"""How an engine that holds all bodies follows a scene in motion."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..scene import Scene
from .base import BreakingEngine, Engine, GrowingEngine

Ids = NDArray[np.int32]


def follow(engine: Engine, scene: Scene, active: Ids, states: NDArray[np.float64]) -> Ids:
    """Activate bodies that have come and deactivate those that have gone, where `active` are those that it has; joints
    that hold no more are broken. `states` are those of all bodies now. Returns who is there."""
    there = np.flatnonzero(scene.alive).astype(np.int32)
    if isinstance(engine, GrowingEngine):
        engine.grow()
    engine.deactivate(np.setdiff1d(active, there))
    entering = np.setdiff1d(there, active)
    engine.activate(entering, states[entering])
    if isinstance(engine, BreakingEngine):
        engine.set_broken(np.flatnonzero(~scene.joint_alive))
    return there
