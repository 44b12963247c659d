"""Looking at scenes: pictures without a screen. Needs the extra `lapjoint[picture]`."""

from __future__ import annotations

from .camera import Camera
from .colors import blend_colors, label_colors, worker_colors
from .picture import picture
from .renderer import Renderer

__all__ = ["Camera", "Renderer", "blend_colors", "label_colors", "picture", "worker_colors"]
