"""Stage: where the bodies and static bodies of a scene are, and what a picture of them is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import rotation
from ...errors import LapjointError
from ...scene import STATE_SIZE, Scene
from ...scene.states import there
from .batch import Batch
from .camera import Camera, as_camera, frame_points, look_axes

Array = NDArray[np.float64]


class Places(NamedTuple):
    """Where the rows of a batch are."""

    positions: Array
    quaternions: Array
    """Of unit length."""
    shown: NDArray[np.bool_]
    """Which are drawn: static bodies, and bodies that are there."""


class Stage:
    """A scene as a batch of rows: its bodies, then its static bodies. Needs no graphics."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.body_count = scene.body_count
        self.batch = Batch(scene)
        self._static_poses = np.concatenate([scene.statics.position, scene.statics.quaternion], axis=1)

    def static_poses(self, poses: Array | None) -> Array:
        """Positions and quaternions of all static bodies: these, or the scene's."""
        if poses is None:
            return self._static_poses
        if poses.shape != self._static_poses.shape or not np.isfinite(poses).all():
            raise LapjointError(f"static poses are {poses.shape}, expected {self._static_poses.shape} finite numbers")
        return poses

    def places(self, states: ArrayLike | None, static_poses: Array | None = None) -> Places:
        """Where bodies and static bodies are, checked. A row of zeros is a body that is not there."""
        table = self.scene.states if states is None else np.asarray(states, float)
        count = self.body_count
        if table.shape != (count, STATE_SIZE):
            raise LapjointError(f"states have shape {table.shape}, expected ({count}, {STATE_SIZE})")
        shown, lengths = there(table), np.linalg.norm(table[:, 3:7], axis=1)
        bad = np.flatnonzero(shown & (~np.isfinite(table).all(axis=1) | ~(lengths > 1e-6)))
        if len(bad):
            title = self.scene.body_title(int(bad[0]))
            more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            raise LapjointError(f"{title}{more}: the state is not finite, or its quaternion is zero")
        turns = np.where(shown[:, None], table[:, 3:7], rotation.IDENTITY) / np.where(shown, lengths, 1.0)[:, None]
        statics = self.static_poses(static_poses)[self.batch.static_ids]
        return Places(
            np.concatenate([table[:, :3], statics[:, :3]]),
            np.concatenate([turns, statics[:, 3:]]),
            np.concatenate([shown, np.ones(len(statics), bool)]),
        )

    def focus(self, places: Places) -> NDArray[np.bool_]:
        """What a picture is about: the bodies without those that flew far away, and static bodies that are no larger
        than these bodies together."""
        count, positions, wanted = self.body_count, places.positions, places.shown.copy()
        bodies = np.flatnonzero(wanted[:count])
        if len(bodies):
            largest = self.batch.radii[bodies].max()
            away = np.linalg.norm(positions[bodies] - np.median(positions[bodies], axis=0), axis=1)
            wanted[bodies] = away <= 6 * (np.percentile(away, 80) + largest)
            near = positions[:count][wanted[:count]]
            extent = np.linalg.norm(np.ptp(near, axis=0)) / 2 + largest
            wanted[count:] = self.batch.radii[count:] < 1.2 * extent
        return wanted

    def default_camera(self, tables: Sequence[ArrayLike], aspect: float) -> Camera:
        """The scene's camera, or one that has the bodies in its picture in all these states."""
        if self.scene.camera is not None:
            return as_camera(self.scene.camera)
        return self.framing_camera(tables, aspect)

    def framing_camera(self, tables: Sequence[ArrayLike], aspect: float, direction: ArrayLike | None = None) -> Camera:
        """One that has the bodies in its picture in all these states, looking along a direction or a good one."""
        return frame_points(self._corners(tables), aspect, direction=direction)

    def narrowest(self, camera: Camera, tables: Sequence[ArrayLike], aspect: float) -> float:
        """The narrowest picture, width by height, that has all bodies that one of this aspect has in these states."""
        seen = (self._corners(tables) - camera.eye) @ look_axes(np.subtract(camera.target, camera.eye)).T
        ahead = seen[seen[:, 2] < 0]
        sides = np.abs(ahead[:, 0]) / (-ahead[:, 2] * np.tan(np.radians(camera.fov) / 2))
        return float(sides[sides <= aspect].max(initial=0.1))

    def _corners(self, tables: Sequence[ArrayLike]) -> Array:
        """Corners of boxes around the bodies that a picture is about, in all these states."""
        points = []
        for states in tables:
            places = self.places(states)
            corners = self.batch.corners(places.positions, places.quaternions)
            points.append(corners[self.focus(places)].reshape(-1, 3))
        return np.concatenate(points)
