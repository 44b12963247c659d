"""Engines by name, registered through the entry point group `lapjoint.engines`."""

from __future__ import annotations

from importlib.metadata import entry_points

from ..errors import LapjointError
from ..params import Params
from ..scene import Scene
from .base import Engine

GROUP = "lapjoint.engines"


def engine_names() -> list[str]:
    """All engines that are installed."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def make_engine(scene: Scene, params: Params | None = None) -> Engine:
    """The engine that `params` names, empty but for the scene's static bodies."""
    params = (params or Params()).resolved(scene)
    for entry in entry_points(group=GROUP):
        if entry.name == params.engine:
            engine: Engine = entry.load()(scene, params)
            return engine
    raise LapjointError(f"no engine named {params.engine!r}; known engines: {', '.join(engine_names())}")
