"""Scenes and recordings as glTF files. Needs no package but NumPy."""

from __future__ import annotations

from pathlib import Path

from ....recording import Recording
from ....scene import Scene
from ...draw.output import checked_file
from ..frames import frames_of
from .write import write_gltf

ENDINGS = (".glb", ".gltf")

__all__ = ["ENDINGS", "export_gltf", "write_gltf"]


def export_gltf(source: Scene | Recording, path: str | Path, *, every: int = 1) -> Path:
    """Write a scene as it starts, or every `every`-th frame of a recording."""
    path = checked_file(path, "glTF file", ENDINGS)
    write_gltf(frames_of(source, every), path)
    return path
