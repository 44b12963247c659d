"""Timesteps that are too long for the bodies of a scene: said before anything starts."""

from __future__ import annotations

import warnings

import numpy as np

from ..errors import AccuracyWarning
from ..params import Params
from ..scene import Scene

MOST = 0.05
"""Share of a body's size that it may fall by in a step from rest. Ten boxes of 1 m on each other sink into each other
by 4% of their size with 0.06 (a timestep of 0.1 s), by 10% with 0.13, and end in one place with 0.23."""


def check_timestep(scene: Scene, params: Params, first: int = 0) -> None:
    """Warn where the smallest body, of those from number `first` on, falls too far in a step."""
    gravity, timestep = float(np.linalg.norm(scene.gravity)), params.timestep or scene.timestep
    if scene.body_count == first or gravity == 0:
        return
    size = 2 * scene.bounding_radii(first)
    smallest = int(np.argmin(size))
    way = gravity * timestep**2
    if way <= MOST * size[smallest]:
        return
    longest = float(np.sqrt(MOST * size[smallest] / gravity))
    body = scene.body_title(first + smallest)
    warnings.warn(
        f"scene {scene.name!r}: a timestep of {timestep:.3g} s is long for {body}, which is {size[smallest]:.3g} m "
        f"across and falls {way:.3g} m in the first step: expect bodies that sink into each other and joints that give "
        f"way; {longest:.1g} s and less holds them",
        AccuracyWarning,
        stacklevel=4,
    )
