"""The paper's scenes and more, by name. Tests, benchmarks, examples and the documentation all use these builders.

Every scene is one module with a `build(size, seed)`; the first line of its docstring is what `lapjoint scenes` shows.
Other packages add theirs through the entry point group `lapjoint.scenes`: see docs/own-scenes.md.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import cast

from ..errors import LapjointError, did_you_mean
from ..plug_ins import entries, load
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


GROUP = "lapjoint.scenes"


def names() -> list[str]:
    """All scene names: lapjoint's own in the paper's order, then those of plug-ins."""
    return [*_MODULES, *sorted(_plug_ins())]


def summary(name: str) -> str:
    """One line about a scene."""
    if name in _MODULES:
        text = _module(name).__doc__
    else:
        builder = _builder(_plug_in(name))
        text = builder.__doc__ or getattr(sys.modules.get(builder.__module__), "__doc__", None)
    return next(iter((text or "").strip().splitlines()), "")


def build(name: str, size: int | None = None, seed: int = 0) -> Scene:
    """Build a scene with the paper's counts, or with about `size` bodies; pyramid and joint-grid have sides of `size`.
    `seed` matters where the scene is random."""
    entry = None if name in _MODULES else _plug_in(name)
    if size is not None and size < 1:
        raise LapjointError(f"size is {size}, expected about how many bodies the scene shall have, or along a side")
    if entry is not None:
        return _built(entry, size, seed)
    scene = _module(name).build(size=size, seed=seed)
    assert isinstance(scene, Scene)
    return scene


def unused() -> list[str]:
    """What plug-ins register in vain, a line each: a name that another scene has already."""
    used = _plug_ins()
    return [
        f"scene {entry.name} ({entry.value}) is not used: {owner} has one of that name"
        for entry in entries(GROUP)
        if (owner := "lapjoint" if entry.name in _MODULES else used[entry.name].value) != entry.value
    ]


def _module(name: str) -> ModuleType:
    return importlib.import_module(f".{_MODULES[name]}", __name__)


# ---- plug-ins ----------------------------------------------------------------------------------------------------


def _plug_ins() -> dict[str, EntryPoint]:
    """Those that are used. The first of a name is, and lapjoint's own scenes are before all others."""
    return {entry.name: entry for entry in reversed(entries(GROUP)) if entry.name not in _MODULES}


def _plug_in(name: str) -> EntryPoint:
    found = _plug_ins().get(name)
    if found is None:
        known = names()
        raise LapjointError(f"no scene named {name!r}{did_you_mean(name, known)}; known scenes: {', '.join(known)}")
    return found


def _builder(entry: EntryPoint) -> Callable[..., object]:
    found = load(entry, "scene")
    if not callable(found):
        raise LapjointError(
            f"scene {entry.name} ({entry.value}) is a {type(found).__name__}, expected a function build(size, seed): "
            "see docs/own-scenes.md"
        )
    return cast(Callable[..., object], found)


def _built(entry: EntryPoint, size: int | None, seed: int) -> Scene:
    builder = _builder(entry)
    try:
        scene = builder(size=size, seed=seed)
    except LapjointError:
        raise
    except Exception as error:  # a plug-in may fail in any way
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise LapjointError(
            f"scene {entry.name} ({entry.value}) cannot be built: {error!r} in {last.filename}, line {last.lineno}"
        ) from error
    if not isinstance(scene, Scene):
        raise LapjointError(
            f"scene {entry.name} ({entry.value}) returned a {type(scene).__name__}, expected a lapjoint.Scene"
        )
    return scene
