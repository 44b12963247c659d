"""Bodies on a page: one node for all bodies of a model, so that a frame is a few arrays, however many bodies."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import viser
from numpy.typing import ArrayLike, NDArray

from ...arrays import rotation
from ...scene import Plane, Scene
from ..draw.camera import Camera, as_camera, frame_points
from ..draw.colors import to_linear
from ..draw.surface import Kind, Surface
from ..draw.tessellate import Model, model_of, with_coarser_levels

Array = NDArray[np.float64]
TRIANGLES = 1_500_000
"""About how many a page draws of one model, all bodies together; beyond that it takes a coarser level."""
STATIC_COLOR = (0.66, 0.68, 0.71)
GROUND_COLOR = (0.93, 0.94, 0.95)
_HIDDEN = 1e-6
"""The scale of a body that is not shown."""


@dataclass(frozen=True)
class Group:
    """Bodies of one model."""

    model: Model
    ids: NDArray[np.intp]
    scales: Array

    def surface(self) -> Surface:
        """The finest level that is not too much for a browser; never a sphere's disc."""
        model, count = self.model, len(self.ids)
        if len(model.levels) == 1 and 200 < len(model.levels[0].triangles) < TRIANGLES / count * 50:
            model = with_coarser_levels(model) if len(model.levels[0].triangles) * count > TRIANGLES else model
        solid = [level for level in model.levels if level.kind is not Kind.DISC]
        fits = [level for level in solid if len(level.triangles) * count <= TRIANGLES]
        return fits[-1] if fits else solid[0]


def groups_of(scene: Scene, shape_ids: NDArray[np.int32], ids: NDArray[np.intp]) -> list[Group]:
    """Bodies with these shapes, by model; planes, which have no end, are left out."""
    models: dict[Hashable, Model] = {}
    keys: dict[Hashable, int] = {}
    scales = np.ones((len(scene.shapes), 3))
    number = np.full(len(scene.shapes), -1)
    for shape_id in np.unique(shape_ids):
        shape = scene.shapes[shape_id]
        if isinstance(shape, Plane):
            continue
        model = model_of(shape)
        models.setdefault(model.key, model)
        number[shape_id] = keys.setdefault(model.key, len(keys))
        scales[shape_id] = model.scale
    rows = [np.flatnonzero(number[shape_ids] == k) for k in range(len(keys))]
    return [Group(model, ids[own], scales[shape_ids[own]]) for model, own in zip(models.values(), rows, strict=True)]


class BodyNodes:
    """The bodies of a scene on a page; the last `ball_count` of them are balls, hidden until they are thrown."""

    def __init__(self, server: viser.ViserServer, scene: Scene, ball_count: int = 0) -> None:
        self._api = server.scene
        states = scene.states
        split = scene.body_count - ball_count
        ids = np.arange(scene.body_count)
        groups = groups_of(scene, scene.bodies.shape_id[:split], ids[:split])
        balls = groups_of(scene, scene.bodies.shape_id[split:], ids[split:])
        self._groups = groups + balls
        self._surfaces = [group.surface() for group in self._groups]
        self._is_ball = [False] * len(groups) + [True] * len(balls)
        both = zip(self._groups, self._surfaces, strict=True)
        self.handles = [self._add(f"/bodies/{k}", group, surface, states) for k, (group, surface) in enumerate(both)]
        self._shown = np.ones(scene.body_count, bool)
        self._statics: list[tuple[NDArray[np.intp], viser.BatchedMeshHandle]] = []
        self._planes: dict[int, viser.GridHandle] = {}
        self._add_statics(scene)

    def body_of(self, name: str, row: int | None) -> int:
        """The body that is row `row` of a node; -1 if it is none."""
        names = [handle.name for handle in self.handles]
        if name not in names or row is None:
            return -1
        ids = self._groups[names.index(name)].ids
        return int(ids[row]) if 0 <= row < len(ids) else -1

    def surface_of(self, body: int) -> tuple[Surface, Array]:
        """The surface a body is drawn with, and its scale along each axis."""
        for group, surface in zip(self._groups, self._surfaces, strict=True):
            row = int(np.searchsorted(group.ids, body))
            if row < len(group.ids) and group.ids[row] == body:
                return surface, group.scales[row]
        raise ValueError(f"body {body} is not drawn")

    def update(self, states: Array, colors: Array, shown: NDArray[np.bool_]) -> None:
        """Draw bodies at these states, in these colours; bodies that are not `shown` are left out."""
        changed = not np.array_equal(shown, self._shown)
        self._shown = shown
        for group, handle, is_ball in zip(self._groups, self.handles, self._is_ball, strict=True):
            handle.batched_positions = states[group.ids, :3].astype(np.float32)
            handle.batched_wxyzs = states[group.ids, 3:7].astype(np.float32)
            handle.batched_colors = light_color(colors[group.ids])
            if is_ball and changed:
                scales = np.where(shown[group.ids, None], group.scales, _HIDDEN)
                handle.batched_scales = scales.astype(np.float32)

    def move_statics(self, poses: Array, moving: NDArray[np.int32]) -> None:
        """Draw static bodies at these poses; `moving` are those that can be elsewhere than they were."""
        for ids, mesh in self._statics:
            if np.isin(ids, moving).any():
                mesh.batched_positions = poses[ids, :3].astype(np.float32)
                mesh.batched_wxyzs = poses[ids, 3:].astype(np.float32)
        for row, plane in self._planes.items():
            if row in moving:
                plane.position, plane.wxyz = tuple(poses[row, :3]), tuple(poses[row, 3:])

    def set_opacity(self, opacity: float) -> None:
        for handle in self.handles:
            handle.opacity = None if opacity >= 1 else opacity

    def _add(self, name: str, group: Group, surface: Surface, states: Array) -> viser.BatchedMeshHandle:
        return self._api.add_batched_meshes_simple(
            name,
            surface.vertices,
            surface.triangles,
            states[group.ids, 3:7],
            states[group.ids, :3],
            batched_scales=group.scales.astype(np.float32),
            batched_colors=np.tile(np.uint8(160), (len(group.ids), 3)),
            lod="off",
            side="double" if surface.kind is Kind.OPEN else "front",
        )

    # ---- static bodies ---------------------------------------------------------------------------------------------

    def _add_statics(self, scene: Scene) -> None:
        statics = scene.statics
        for k, group in enumerate(groups_of(scene, statics.shape_id, np.arange(scene.static_count))):
            surface = group.surface()
            mesh = self._api.add_batched_meshes_simple(
                f"/statics/{k}",
                surface.vertices,
                surface.triangles,
                statics.quaternion[group.ids],
                statics.position[group.ids],
                batched_scales=group.scales.astype(np.float32),
                batched_colors=light_color(STATIC_COLOR),
                lod="off",
                flat_shading=True,
                side="double" if surface.kind is Kind.OPEN else "front",
            )
            self._statics.append((group.ids, mesh))
        cell = _round_length(first_camera(scene, scene.states).distance / 14)
        for row in range(scene.static_count):
            if isinstance(scene.shapes[statics.shape_id[row]], Plane):
                self._planes[row] = self._api.add_grid(
                    f"/planes/{row}",
                    infinite_grid=True,
                    cell_size=cell,
                    section_size=5 * cell,
                    fade_distance=60 * cell,
                    plane_color=GROUND_COLOR,
                    plane_opacity=1.0,
                    shadow_opacity=0.25,
                    wxyz=tuple(statics.quaternion[row]),
                    position=tuple(statics.position[row]),
                )


def first_camera(scene: Scene, states: Array, body_count: int | None = None, aspect: float = 1.5) -> Camera:
    """The scene's camera, or one that has its bodies in the picture, without those that flew far away."""
    if scene.camera is not None:
        return as_camera(scene.camera)
    count = scene.body_count if body_count is None else body_count
    if count == 0:
        return frame_points(np.empty((0, 3)), aspect)
    places, radii = states[:count, :3], scene.bounding_radii()[:count]
    away = np.linalg.norm(places - np.median(places, axis=0), axis=1)
    near = away <= 6 * (np.percentile(away, 80) + radii.max())
    corners = np.indices((2, 2, 2)).reshape(3, 8).T * 2 - 1
    points = places[near, None] + radii[near, None, None] / np.sqrt(3) * corners
    return frame_points(points.reshape(-1, 3), aspect)


def add_camera(server: viser.ViserServer, camera: Camera) -> None:
    """Where every browser looks from at first."""
    server.initial_camera.position = camera.eye
    server.initial_camera.look_at = camera.target
    server.initial_camera.up = (0.0, 0.0, 1.0)
    server.initial_camera.fov = float(np.radians(camera.fov))
    server.initial_camera.near = 0.005 * camera.distance
    server.initial_camera.far = 200 * camera.distance


def anchors(scene: Scene, states: Array) -> tuple[Array, Array]:
    """Where each joint is on its body a, and on its body b or the world, (joint_count, 3) each [m]."""
    joints = scene.joints
    places = []
    for ids, frames in ((joints.body_a, joints.frame_a), (joints.body_b, joints.frame_b)):
        world = ids < 0
        turns = np.where(world[:, None], rotation.IDENTITY, states[ids, 3:7])
        places.append(np.where(world[:, None], 0.0, states[ids, :3]) + rotation.rotate(turns, frames[:, :3]))
    return places[0], places[1]


def light_color(colors: ArrayLike) -> NDArray[np.uint8]:
    """Colours as viser takes those of batched meshes: intensities of light, not values of a picture."""
    return np.round(255 * to_linear(colors)).astype(np.uint8)


def _round_length(length: float) -> float:
    """The nearest of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(power * min((1.0, 2.0, 5.0, 10.0), key=lambda step: abs(np.log(step * power / length))))
