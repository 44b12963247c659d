"""Looking at scenes and recordings: pictures, films and pages, without a screen. Needs the extra `lapjoint[picture]`,
films `lapjoint[video]`."""

from __future__ import annotations

from .draw.camera import Camera
from .draw.cameras import Shot
from .draw.coloring import MODES, body_colors, legend
from .draw.colors import blend_colors, label_colors, worker_colors
from .draw.picture import frame_picture, picture
from .draw.renderer import Renderer
from .draw.video import video
from .export.export import export

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
