"""Looking at scenes and recordings: pictures, films and pages, without a screen. Needs the extra `lapjoint[picture]`,
films `lapjoint[video]`."""

from __future__ import annotations

from .camera import Camera
from .cameras import Shot
from .coloring import MODES, body_colors, legend
from .colors import blend_colors, label_colors, worker_colors
from .export import export
from .picture import frame_picture, picture
from .renderer import Renderer
from .video import video

__all__ = [
    "MODES",
    "Camera",
    "Renderer",
    "Shot",
    "blend_colors",
    "body_colors",
    "export",
    "frame_picture",
    "label_colors",
    "legend",
    "picture",
    "video",
    "worker_colors",
]
