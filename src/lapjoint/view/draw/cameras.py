"""Cameras: places to look from by name, and moves: around the target, along with a body."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...errors import LapjointError
from ...recording import Recording
from ...scene import Scene
from ...scene.states import there
from .camera import Camera, as_camera
from .recorded import Recorded, opening_states
from .renderer import Renderer

Array = NDArray[np.float64]

PRESETS: dict[str, str] = {
    "scene": "the scene's own, or one that has all bodies in the picture",
    "all": "all bodies in the picture, from the side on which they reach farthest",
    "front": "along y",
    "back": "against y",
    "left": "along x",
    "right": "against x",
    "top": "down",
    "corner": "from the front, the right and above",
}
_DIRECTIONS: dict[str, tuple[float, float, float]] = {
    "front": (0.0, 1.0, -0.15),
    "back": (0.0, -1.0, -0.15),
    "left": (1.0, 0.0, -0.15),
    "right": (-1.0, 0.0, -0.15),
    "top": (0.0, 0.0, -1.0),
    "corner": (-0.7, 0.7, -0.6),
}


@dataclass(frozen=True)
class Shot:
    """How a recording is filmed.

    `camera` is a preset's name, or six numbers: where the camera is and what it looks at [m]. `zoom` brings it that
    many times as near, `orbit` turns it about the target [degrees per second of film], `follow` is a body that it
    keeps in the middle.
    """

    camera: str = "scene"
    zoom: float = 1.0
    orbit: float = 0.0
    follow: str | int | None = None

    def __post_init__(self) -> None:
        if self.camera not in PRESETS:
            _numbers(self.camera)
        if not (np.isfinite(self.zoom) and self.zoom > 0):
            raise LapjointError(f"zoom is {self.zoom}, expected a positive number")
        if not np.isfinite(self.orbit):
            raise LapjointError(f"orbit is {self.orbit}, expected degrees per second")


class CameraPath:
    """The camera of a shot at every time."""

    def __init__(self, shot: Shot, renderer: Renderer, recorded: Recorded) -> None:
        self._shot = shot
        self._body = None if shot.follow is None else _body(recorded.recording.scene, shot.follow)
        self._followed = None if self._body is None else _first_place(recorded.recording, self._body)
        if shot.camera in PRESETS:
            count, frame = recorded.recording.frame_count, recorded.recording.frame
            if shot.camera == "scene":
                self._start = renderer.default_camera(*opening_states(recorded.recording))
            else:
                states = [frame(i).states for i in sorted({0, count // 2, count - 1})]
                self._start = renderer.framing_camera(states, _DIRECTIONS.get(shot.camera))
        else:
            self._start = as_camera(_numbers(shot.camera))

    def camera(self, states: Array, film_time: float = 0.0) -> Camera:
        """The camera for these states, so many seconds into the film. Where the body that it follows is not there, it
        looks at where that was last, or will be first."""
        start = self._start
        if self._body is not None and states[self._body].any():
            self._followed = states[self._body, :3]
        target = np.array(start.target) if self._followed is None else self._followed
        turn = np.radians(self._shot.orbit * film_time)
        c, s = np.cos(turn), np.sin(turn)
        away = np.subtract(start.eye, start.target) / self._shot.zoom
        away = np.array([c * away[0] - s * away[1], s * away[0] + c * away[1], away[2]])
        return replace(as_camera((target + away, target)), fov=start.fov)


def _body(scene: Scene, given: str | int) -> int:
    """A body by its number or its name."""
    number = int(given) if isinstance(given, int) or given.isdecimal() else scene.body_id(given)
    if not 0 <= number < scene.body_count:
        raise LapjointError(f"follow: no body {number}, expected 0 to {scene.body_count - 1}, or a name")
    return number


def _first_place(recording: Recording, body: int) -> Array:
    """Where a body is when it is there first."""
    if not recording.has_changes:
        return recording.frame(0).states[body, :3]
    track = recording.track(body)
    frames = np.flatnonzero(there(track))
    if not len(frames):
        raise LapjointError(f"follow: {recording.scene.body_title(body)} is in no frame of {recording.path}")
    return track[frames[0], :3]


def _numbers(text: str) -> tuple[list[float], list[float]]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != 6 or not np.isfinite(values).all():
        names = ", ".join(PRESETS)
        raise LapjointError(f"no camera {text!r}, expected {names}, or six numbers: x,y,z of the eye and of the target")
    return values[:3], values[3:]
