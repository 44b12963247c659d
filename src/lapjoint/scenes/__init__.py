"""The paper's scenes and more, by name. Tests, benchmarks, examples and the documentation all use these builders.

Every scene is one module with a `build(size, seed)`; the first line of its docstring is what `lapjoint scenes` shows.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from ..errors import LapjointError, did_you_mean
from ..scene import Scene

_MODULES = {
    "chain": "chain",
    "bridge": "bridge",
    "two-way-bridge": "two_way_bridge",
    "four-way-bridge": "four_way_bridge",
    "bowl": "bowl",
    "building": "building",
    "chain-net": "chain_net",
    "plank": "plank",
    "cable": "cable",
    "pyramid": "pyramid",
    "joint-grid": "joint_grid",
    "pane": "pane",
    "wrecking": "wrecking",
    "drum": "drum",
    "belt": "belt",
    "walls": "walls",
    "chain-mail": "chain_mail",
}


def names() -> list[str]:
    """All scene names."""
    return list(_MODULES)


def summary(name: str) -> str:
    """One line about a scene."""
    return (_module(name).__doc__ or "").strip().splitlines()[0]


def build(name: str, size: int | None = None, seed: int = 0) -> Scene:
    """Build a scene with the paper's counts, or with about `size` bodies; pyramid and joint-grid have sides of `size`.
    `seed` matters where the scene is random."""
    module = _module(name)
    if size is not None and size < 1:
        raise LapjointError(f"size is {size}, expected about how many bodies the scene shall have, or along a side")
    scene = module.build(size=size, seed=seed)
    assert isinstance(scene, Scene)
    return scene


def _module(name: str) -> ModuleType:
    if name not in _MODULES:
        hint = did_you_mean(name, _MODULES)
        raise LapjointError(f"no scene named {name!r}{hint}; known scenes: {', '.join(_MODULES)}")
    return importlib.import_module(f".{_MODULES[name]}", __name__)
