"""Renderer: frames of one scene as arrays of pixels, with OpenGL and without a screen."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import rotation
from ...errors import LapjointError
from ...scene import Scene
from .camera import Camera, CameraLike, as_camera
from .canvas import Canvas, Frame
from .colors import label_colors, to_linear
from .light import lights, shadow_view
from .stage import Stage

Array = NDArray[np.float64]
STATIC_COLOR = (0.70, 0.71, 0.73)
_LARGEST = 8192


class Renderer:
    """Draws frames of a scene, as many as wanted: `draw` returns pixels, (height, width, 3) of uint8.

    Holds a graphics context until `close`, best used in a `with` statement. The light stands still while the camera
    moves: it belongs to the renderer's own camera, the scene's or one that has all bodies in its picture.
    """

    def __init__(self, scene: Scene, size: tuple[int, int] = (960, 540)) -> None:
        self.scene = scene
        self.size = _checked_size(size)
        self._aspect = self.size[0] / self.size[1]
        self._stage = Stage(scene)
        self._batch = self._stage.batch
        self._static_colors = np.tile(STATIC_COLOR, (len(self._batch.static_ids), 1))
        self.camera = self.default_camera(scene.states)
        self._key_light, self._fill_light = lights(self.camera)
        self._canvas: Canvas | None = Canvas(self._batch, self.size)

    # ---- use -----------------------------------------------------------------------------------------------------

    def draw(
        self,
        states: ArrayLike | None = None,
        colors: ArrayLike | None = None,
        camera: CameraLike | None = None,
        static_poses: Array | None = None,
    ) -> NDArray[np.uint8]:
        """One frame. States and poses of static bodies, (static_count, 7), default to the scene's, colours to one per
        label, the camera to the renderer's. A body whose state is zeros is not there, and not drawn."""
        if self._canvas is None:
            raise LapjointError("this renderer is closed")
        places = self._stage.places(states, static_poses)
        rows = np.flatnonzero(places.shown)
        radii, wanted = self._batch.radii[rows], self._stage.focus(places)[rows]
        tints = np.concatenate([self._body_colors(colors), self._static_colors])[rows]
        view = self.camera if camera is None else as_camera(camera)
        # Coordinates about the target, in float64 until here: nothing trembles far from the world's origin.
        origin = np.asarray(view.target, float)
        positions = places.positions[rows] - origin
        depths, visible = self._visibility(view, positions, radii, origin)
        focal = self.size[1] / 2 / np.tan(np.radians(view.fov) / 2)
        pixels = focal * radii / np.maximum(depths, 1e-3 * view.distance)
        draws = self._batch.draws(positions, places.quaternions[rows], to_linear(tints), pixels, rows)
        shadow = shadow_view(self._key_light, positions, radii, visible & wanted)
        projection = view.projection(self._aspect, *self._depth_range(view, depths, radii, visible))
        frame = Frame(
            projection @ view.view(origin),
            np.asarray(view.eye) - origin,
            self._key_light,
            self._fill_light,
            shadow,
            self._planes(view, origin, self._stage.static_poses(static_poses)),
        )
        return self._canvas.draw(draws, frame)

    def default_camera(self, *tables: ArrayLike) -> Camera:
        """The scene's camera, or one that has the bodies in its picture in all these states."""
        return self._stage.default_camera(tables, self._aspect)

    def framing_camera(self, tables: Sequence[ArrayLike], direction: ArrayLike | None = None) -> Camera:
        """One that has the bodies in its picture in all these states, looking along a direction or a good one."""
        return self._stage.framing_camera(tables, self._aspect, direction)

    def close(self) -> None:
        """Give the graphics context back, with everything in it."""
        if self._canvas is not None:
            self._canvas.close()
            self._canvas = None

    def __enter__(self) -> Renderer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- what a frame needs --------------------------------------------------------------------------------------

    def _body_colors(self, colors: ArrayLike | None) -> Array:
        count = self._stage.body_count
        if colors is None:
            return label_colors(self.scene.bodies.label)
        given = np.asarray(colors, float)
        if given.shape not in ((3,), (count, 3)):
            raise LapjointError(f"colors have shape {given.shape}, expected ({count}, 3) or (3,)")
        if not ((given >= 0) & (given <= 1)).all():
            raise LapjointError("colors contain a value that is not a number from 0 to 1")
        return np.broadcast_to(given, (count, 3))

    def _visibility(
        self, view: Camera, positions: Array, radii: Array, origin: Array
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Distances along the line of sight, and who is in the picture or near it."""
        seen = (positions - (np.asarray(view.eye) - origin)) @ view.axes().T
        depths = -seen[:, 2]
        tall = np.tan(np.radians(view.fov) / 2)
        wide = tall * self.size[0] / self.size[1]
        visible = depths + radii > 0
        for column, spread in ((0, wide), (1, tall)):
            visible &= np.abs(seen[:, column]) < 1.2 * (spread * depths + radii * np.hypot(1, spread))
        return depths, visible

    def _depth_range(
        self, view: Camera, depths: Array, radii: Array, visible: NDArray[np.bool_]
    ) -> tuple[float, float]:
        near, far = 0.5 * view.distance, 2 * view.distance
        if visible.any():
            near, far = float((depths - radii)[visible].min()), float((depths + radii)[visible].max())
        if len(self._batch.plane_ids):
            near, far = 0.0, max(far, _plane_reach(view) + view.distance)
        return max(0.98 * near, 0.01 * view.distance), 1.02 * far

    def _planes(self, view: Camera, origin: Array, static_poses: Array) -> tuple[dict[str, Any], ...]:
        """Each plane seen from above, drawn about the point below the target, fading into the background."""
        planes = []
        for row in self._batch.plane_ids:
            position, quaternion = static_poses[row, :3], static_poses[row, 3:]
            normal = rotation.rotate(quaternion, [0.0, 0.0, 1.0])
            if normal @ (np.asarray(view.eye) - position) > 0:
                middle = rotation.rotate(rotation.conjugate(quaternion), origin - position)[:2]
                uniforms = {
                    "position": tuple(position - origin),
                    "quaternion": tuple(quaternion),
                    "plane_normal": tuple(normal),
                    "middle": tuple(middle),
                    "reach": _plane_reach(view),
                    "grid": _round_length(view.distance / 14),
                }
                planes.append(uniforms)
        return tuple(planes)


def _checked_size(size: tuple[int, int]) -> tuple[int, int]:
    try:
        width, height = (int(number) for number in size)
    except (TypeError, ValueError):
        raise LapjointError(f"size is {size!r}, expected (width, height) in pixels") from None
    if not (1 <= width <= _LARGEST and 1 <= height <= _LARGEST):
        raise LapjointError(f"size is {width} x {height}, expected 1 to {_LARGEST} pixels each way")
    return width, height


def _plane_reach(view: Camera) -> float:
    """How far from the target a plane is drawn [m]."""
    return 4.0 * view.distance


def _round_length(length: float) -> float:
    """The nearest of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(power * min((1.0, 2.0, 5.0, 10.0), key=lambda step: abs(np.log(step * power / length))))
