"""Entry points by which packages register engines and scenes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from .errors import LapjointError


def entries(group: str) -> tuple[EntryPoint, ...]:
    """All entry points of a group. To look for them goes through all installed packages: that takes milliseconds, and
    every worker asks."""
    return _found(entry_points, group, tuple(sys.path))


@lru_cache(maxsize=8)
def _found(find: Callable[..., Iterable[EntryPoint]], group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    return tuple(find(group=group))


def load(entry: EntryPoint, kind: str) -> Any:
    """What an entry point names. `kind` is what it is in the error, if that cannot be loaded."""
    try:
        return entry.load()
    except Exception as error:  # a plug-in may fail in any way
        raise LapjointError(f"{kind} {entry.name} ({entry.value}) cannot be loaded: {error!r}") from error
