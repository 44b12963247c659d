"""Views of scenes and recordings: pictures and films (`draw`), pages in a browser (`page`), files that play offline
(`export`). Pictures need the extra `lapjoint[picture]`, films `lapjoint[video]`, pages `lapjoint[view]`."""

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
