"""Picture: one PNG of a scene, without a screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import LapjointError
from ...recording import Recording
from ...scene import Scene
from .camera import CameraLike
from .cameras import CameraPath, Shot
from .caption import Caption
from .output import checked_file, replacing
from .recorded import Recorded
from .renderer import Renderer


def picture(
    scene: Scene,
    path: str | Path,
    states: ArrayLike | None = None,
    *,
    size: tuple[int, int] = (960, 540),
    colors: ArrayLike | None = None,
    camera: CameraLike | None = None,
    static_poses: NDArray[np.float64] | None = None,
) -> Path:
    """Write a PNG of a scene and return its path.

    States, (body_count, 13), default to the scene's initial ones; colours, one row of red, green and blue from 0 to 1
    per body, to one per label; the camera, (eye, target), to the scene's, or to one that has all bodies in the
    picture. Static bodies are where the scene has them, or at poses, (static_count, 7). `size` is width and height in
    pixels.
    """
    path = checked_path(path)
    _pillow()
    with Renderer(scene, size) as renderer:
        view = renderer.default_camera(scene.states if states is None else states) if camera is None else camera
        pixels = renderer.draw(states, colors, view, static_poses)
    save(pixels, path)
    return path


def frame_picture(
    recording: Recording,
    path: str | Path,
    frame: int = -1,
    *,
    size: tuple[int, int] = (960, 540),
    mode: str = "worker",
    shot: Shot | None = None,
    with_caption: bool = False,
) -> Path:
    """Write a PNG of one frame of a recording and return its path."""
    path = checked_path(path)
    _pillow()
    recorded = Recorded(recording, mode)
    moment = recorded.frame(frame)
    with Renderer(recording.scene, size) as renderer:
        view = CameraPath(shot or Shot(), renderer, recorded).camera(moment.states)
        pixels = renderer.draw(moment.states, moment.colors, view, moment.static_poses)
    if with_caption:
        pixels = Caption(recorded, size).draw(pixels, moment.time)
    save(pixels, path)
    return path


def save(pixels: NDArray[np.uint8], path: Path) -> None:
    """Write pixels as a PNG."""
    image = _pillow().fromarray(pixels)
    with replacing(path) as part:
        image.save(part, "PNG")


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise LapjointError("pictures need Pillow: pip install 'lapjoint[picture]'") from None
    return Image


def checked_path(path: str | Path) -> Path:
    """The path, if a PNG can be written there."""
    return checked_file(path, "picture", (".png",))
