"""Options that need more than a plain installation: the extra that brings it, its packages, and the module behind.

A module of this table imports its packages at its top. `load` imports it when the option is given, before anything
starts, and names what to install where a package is missing. Commands import these modules in no other way.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from ..errors import LapjointError
from ..system.shortage import USD_ROOM, check_room, short_of


@dataclass(frozen=True)
class Extra:
    """What an option needs."""

    name: str
    """As in `pip install 'lapjoint[name]'`."""
    packages: dict[str, str]
    """What is imported, and what it is called."""
    module: str
    room: int = 0
    """Bytes of addresses that are to be free before it is imported."""


_PICTURE = {"moderngl": "moderngl", "PIL": "Pillow"}
EXTRAS = {
    "--picture": Extra("picture", _PICTURE, ".last_picture"),
    "--view": Extra("view", {"viser": "viser"}, ".live"),
    "lapjoint view": Extra("view", {"viser": "viser"}, ".browse"),
    "lapjoint export to USD": Extra("usd", {"pxr": "usd-core"}, "..view.export.usd", USD_ROOM),
    "--figure": Extra("report", {"matplotlib": "matplotlib"}, "..studies.report.compare_figure"),
}


def load(option: str) -> ModuleType:
    """The module behind an option, if its packages are installed."""
    extra = EXTRAS[option]
    missing = [title for name, title in extra.packages.items() if find_spec(name) is None]
    if missing:
        raise LapjointError(f"{option} needs {' and '.join(missing)}: pip install 'lapjoint[{extra.name}]'")
    with short_of(option):
        check_room(extra.room)
    return import_module(extra.module, __package__)
