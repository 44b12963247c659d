"""Scenes and recordings as USD files. Needs usd-core, of the extra `lapjoint[usd]`."""

from __future__ import annotations

from pathlib import Path

from ....recording import Recording
from ....scene import Scene
from ...draw.output import checked_file
from ..frames import frames_of
from .write import write_usd

ENDINGS = (".usda", ".usdc", ".usd")

__all__ = ["ENDINGS", "export_usd", "write_usd"]


def export_usd(source: Scene | Recording, path: str | Path, *, every: int = 1) -> Path:
    """Write a scene as it starts, or every `every`-th frame of a recording."""
    path = checked_file(path, "USD file", ENDINGS)
    write_usd(frames_of(source, every), path)
    return path
