"""Scenes and recordings as glTF files."""

from __future__ import annotations

from .write import write_gltf

__all__ = ["write_gltf"]
