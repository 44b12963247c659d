"""Picture: one PNG of a scene, without a screen."""

from __future__ import annotations

import os
from pathlib import Path

from numpy.typing import ArrayLike

from ..errors import LapjointError
from ..scene import Scene
from .camera import CameraLike
from .renderer import Renderer


def picture(
    scene: Scene,
    path: str | Path,
    states: ArrayLike | None = None,
    *,
    size: tuple[int, int] = (960, 540),
    colors: ArrayLike | None = None,
    camera: CameraLike | None = None,
) -> Path:
    """Write a PNG of a scene and return its path.

    States, (body_count, 13), default to the scene's initial ones; colours, one row of red, green and blue from 0 to 1
    per body, to one per label; the camera, (eye, target), to the scene's, or to one that has all bodies in the
    picture. `size` is width and height in pixels.
    """
    path = checked_path(path)
    try:
        from PIL import Image
    except ImportError:
        raise LapjointError("pictures need Pillow: pip install 'lapjoint[picture]'") from None
    with Renderer(scene, size) as renderer:
        view = renderer.default_camera(scene.states if states is None else states) if camera is None else camera
        pixels = renderer.draw(states, colors, view)
    try:
        Image.fromarray(pixels).save(path)
    except OSError as error:
        raise LapjointError(f"{path}: cannot be written: {error.strerror or error}") from None
    return path


def checked_path(path: str | Path) -> Path:
    """The path, if a PNG can be written there."""
    path = Path(path)
    if path.suffix.lower() != ".png":
        raise LapjointError(f"{path}: unknown kind of picture {path.suffix!r}, expected a name that ends in .png")
    if path.is_dir():
        raise LapjointError(f"{path}: is a directory, expected the name of a file")
    if not path.parent.is_dir():
        raise LapjointError(f"{path}: there is no directory {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise LapjointError(f"{path}: cannot be written, permission denied")
    return path
