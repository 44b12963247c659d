"""Camera: where a picture is taken from, and a good place when none is given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import LapjointError

Array = NDArray[np.float64]
Place = tuple[float, float, float]


@dataclass(frozen=True)
class Camera:
    """Looks from `eye` to `target` [m], the world's z axis up in the picture; `fov` is the vertical field of view
    [degrees]."""

    eye: Place
    target: Place
    fov: float = 45.0

    def __post_init__(self) -> None:
        places = np.array([_place("eye", self.eye), _place("target", self.target)])
        if np.linalg.norm(places[0] - places[1]) < 1e-9:
            raise LapjointError(f"camera: eye and target are both {self.eye}, expected two places")
        if not 1 <= self.fov <= 170:
            raise LapjointError(f"camera: fov is {self.fov}, expected degrees from 1 to 170")

    @property
    def distance(self) -> float:
        return float(np.linalg.norm(np.subtract(self.target, self.eye)))

    def axes(self) -> Array:
        """Rows: the directions right, up and back in the world."""
        return look_axes(np.subtract(self.target, self.eye))

    def view(self, origin: Array) -> Array:
        """The 4x4 matrix from world coordinates about `origin` to the camera's."""
        return place_matrix(self.axes(), np.asarray(self.eye, float) - origin)

    def projection(self, aspect: float, near: float, far: float) -> Array:
        """The 4x4 matrix from the camera's coordinates to the screen's."""
        f = 1 / np.tan(np.radians(self.fov) / 2)
        matrix = np.zeros((4, 4))
        matrix[0, 0], matrix[1, 1] = f / aspect, f
        matrix[2, 2:] = (far + near) / (near - far), 2 * far * near / (near - far)
        matrix[3, 2] = -1
        return matrix


CameraLike = Camera | tuple[ArrayLike, ArrayLike]


def as_camera(value: CameraLike) -> Camera:
    """A Camera from a Camera or from (eye, target)."""
    if isinstance(value, Camera):
        return value
    try:
        eye, target = value
    except (TypeError, ValueError):
        raise LapjointError(f"camera is {value!r}, expected (eye, target)") from None
    return Camera(_place("eye", eye), _place("target", target))


def look_axes(forward: Array) -> Array:
    """Rows: right, up and back of somebody who looks along `forward` with z up (y, when looking along z)."""
    back = -forward / np.linalg.norm(forward)
    up = np.array([0.0, 0.0, 1.0]) if abs(back[2]) < 0.9999 else np.array([0.0, 1.0, 0.0])
    right = np.cross(up, back)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(back, right), back])


def place_matrix(axes: Array, place: Array) -> Array:
    """The 4x4 matrix into the frame with these axes at that place."""
    matrix = np.eye(4)
    matrix[:3, :3] = axes
    matrix[:3, 3] = -axes @ place
    return matrix


def frame_points(points: Array, aspect: float, fov: float = 45.0, direction: ArrayLike | None = None) -> Camera:
    """A camera that has all these points in its picture: looking along `direction`, or from the side on which they
    reach farthest, from above."""
    if len(points) == 0:
        return Camera((4.0, -6.0, 3.0), (0.0, 0.0, 0.5), fov)
    low, high = points.min(axis=0), points.max(axis=0)
    middle = (low + high) / 2
    wide, deep, tall = np.maximum(high - low, 1e-6)
    # Turned by up to 35 degrees from the long side, less when the group is a long row; higher up when it is flat.
    turn = np.radians(12 + 23 * min(wide, deep) / max(wide, deep)) + (np.pi / 2 if deep > 1.5 * wide else 0)
    climb = np.radians(18 + 12 * (1 - min(1.0, tall / max(wide, deep))))
    forward = -np.array([np.sin(turn) * np.cos(climb), -np.cos(turn) * np.cos(climb), np.sin(climb)])
    if direction is not None:
        forward = np.asarray(direction, float) / np.linalg.norm(direction)
    axes = look_axes(forward)
    seen = (points - middle) @ axes.T
    tangent = np.tan(np.radians(fov) / 2)
    shift, need = np.zeros(2), 0.0
    for axis, spread in enumerate((tangent * aspect, tangent)):
        # A point is in the picture when it is within both side planes: two lower bounds on spread * distance.
        right = (seen[:, axis] + spread * seen[:, 2]).max()
        left = (-seen[:, axis] + spread * seen[:, 2]).max()
        shift[axis] = (right - left) / 2
        need = max(need, float(right + left) / (2 * spread))
    target = middle + shift @ axes[:2]
    return Camera(_place("eye", target - forward * 1.15 * need), _place("target", target), fov)


def _place(name: str, value: ArrayLike) -> Place:
    try:
        place = np.asarray(value, float)
    except (TypeError, ValueError):
        place = np.empty(0)
    if place.shape != (3,) or not np.isfinite(place).all():
        raise LapjointError(f"camera: {name} is {value!r}, expected three finite numbers in metres")
    return float(place[0]), float(place[1]), float(place[2])
