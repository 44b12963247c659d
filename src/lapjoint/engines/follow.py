"""How an engine that holds all bodies follows a scene in motion."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..scene import Scene
from .base import Engine
from .changes import Changes

Ids = NDArray[np.int32]


def follow(engine: Engine, scene: Scene, active: Ids, states: NDArray[np.float64]) -> Ids:
    """Activate bodies that have come and deactivate those that have gone, where `active` are those that it has; joints
    that hold no more are broken. `states` are those of all bodies now. Returns who is there."""
    there = np.flatnonzero(scene.alive).astype(np.int32)
    features = engine.supports.features
    if "added bodies" in features:
        engine.change(Changes(grown=True))
    engine.deactivate(np.setdiff1d(active, there))
    entering = np.setdiff1d(there, active)
    engine.activate(entering, states[entering])
    if "breaks" in features:
        engine.change(Changes(all_broken=np.flatnonzero(~scene.joint_alive)))
    return there
