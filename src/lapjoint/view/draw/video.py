"""Video: a film of a recording, without a screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...errors import LapjointError
from ...recording import Recording
from .cameras import CameraPath, Shot
from .caption import Caption
from .encoder import ENDINGS, encoding, film_size, find_ffmpeg
from .output import checked_file
from .recorded import Recorded
from .renderer import Renderer


@dataclass(frozen=True)
class Film:
    """What was written."""

    path: Path
    frame_count: int
    size: tuple[int, int]
    """Pixels."""
    seconds: float
    """Its length."""


def video(
    recording: Recording,
    path: str | Path,
    *,
    size: tuple[int, int] = (960, 540),
    fps: float = 30.0,
    speed: float = 1.0,
    start: float | None = None,
    end: float | None = None,
    mode: str = "worker",
    shot: Shot | None = None,
    with_caption: bool = True,
    quality: int = 75,
    on_frame: Callable[[int, int], None] | None = None,
) -> Film:
    """Write a film of a recording: .mp4, .gif or .webp.

    `fps` is frames per second of film, `speed` seconds simulated per second of film, `start` and `end` the part to
    show [s]. What lies between two recorded frames is interpolated. `quality` is from 1, the smallest file, to 100.
    `on_frame` is called with the number of frames done, and of all.
    """
    path = checked_file(path, "film", ENDINGS)
    if not 0 < fps <= 240:
        raise LapjointError(f"fps is {fps}, expected more than 0 and at most 240 frames per second")
    if not 0 < speed < np.inf:
        raise LapjointError(f"speed is {speed}, expected a positive number")
    if not 1 <= quality <= 100:
        raise LapjointError(f"quality is {quality}, expected 1 to 100")
    recorded = Recorded(recording, mode)
    times = film_times(recorded, fps, speed, start, end)
    find_ffmpeg()
    size = film_size(path, size)
    with Renderer(recording.scene, size) as renderer:
        cameras = CameraPath(shot or Shot(), renderer, recorded)
        caption = Caption(recorded, size) if with_caption else None
        with encoding(path, size, fps, quality) as sink:
            for number, time in enumerate(times.tolist()):
                moment = recorded.at(time)
                view = cameras.camera(moment.states, number / fps)
                pixels = renderer.draw(moment.states, moment.colors, view, moment.static_poses)
                sink.add(pixels if caption is None else caption.draw(pixels, time))
                if on_frame is not None:
                    on_frame(number + 1, len(times))
    return Film(path, len(times), size, len(times) / fps)


def film_times(
    recorded: Recorded, fps: float, speed: float, start: float | None, end: float | None
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Simulated times of a film's frames [s]."""
    first, last = float(recorded.times[0]), float(recorded.times[-1])
    begin, stop = first if start is None else start, last if end is None else end
    for name, value in (("start", begin), ("end", stop)):
        if not first - 1e-9 <= value <= last + 1e-9:
            raise LapjointError(f"{name} is {value:g} s, expected a time of the recording: {first:g} to {last:g} s")
    if stop < begin:
        raise LapjointError(f"start is {begin:g} s and end {stop:g} s, expected the start before the end")
    count = int((stop - begin) * fps / speed + 1e-6) + 1
    return np.asarray(begin + np.arange(count) * speed / fps)
