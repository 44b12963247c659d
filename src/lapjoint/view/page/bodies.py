"""Bodies on a page: one node for all bodies of a model, so that a frame is a few arrays, however many bodies."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import viser
from numpy.typing import NDArray

from ...arrays import rotation
from ...arrays.growing import grown
from ...scene import Plane, Scene
from ..draw.camera import Camera, as_camera, frame_points
from ..draw.surface import Kind, Surface
from ..draw.tessellate import Model, model_of
from .batch import FREE, Batch, Drag, level_of, light_color

Array = NDArray[np.float64]
STATIC_COLOR = (0.66, 0.68, 0.71)
GROUND_COLOR = (0.93, 0.94, 0.95)


@dataclass(frozen=True)
class Group:
    """Bodies of one model."""

    model: Model
    ids: NDArray[np.intp]
    scales: Array


def groups_of(
    scene: Scene, shape_ids: NDArray[np.int32], ids: NDArray[np.intp], known: dict[int, Model] | None = None
) -> list[Group]:
    """Bodies with these shapes, by model; planes, which have no end, are left out. `known` has the models of shapes, by
    number, that need not be made again, and gets those that were."""
    known = {} if known is None else known
    models: dict[Hashable, Model] = {}
    keys: dict[Hashable, int] = {}
    scales = np.ones((len(scene.shapes), 3))
    number = np.full(len(scene.shapes), -1)
    for shape_id in np.unique(shape_ids).tolist():
        shape = scene.shapes[shape_id]
        if isinstance(shape, Plane):
            continue
        if shape_id not in known:
            known[shape_id] = model_of(shape)
        model = known[shape_id]
        models.setdefault(model.key, model)
        number[shape_id] = keys.setdefault(model.key, len(keys))
        scales[shape_id] = model.scale
    rows = [np.flatnonzero(number[shape_ids] == k) for k in range(len(keys))]
    return [Group(model, ids[own], scales[shape_ids[own]]) for model, own in zip(models.values(), rows, strict=True)]


class BodyNodes:
    """The bodies of a scene on a page. They come and go with every update."""

    def __init__(self, server: viser.ViserServer, scene: Scene) -> None:
        self._api = server.scene
        self._batches: dict[Hashable, Batch] = {}
        self._models: dict[int, Model] = {}
        self._is_drawn: NDArray[np.bool_] = np.empty(0, bool)
        self._statics: list[tuple[NDArray[np.intp], viser.BatchedMeshHandle]] = []
        self._planes: dict[int, viser.GridHandle] = {}
        self._add_statics(scene)

    def body_of(self, name: str, row: int | None) -> int:
        """The body that is row `row` of a node; -1 if it is none."""
        return next((batch.body_of(row) for batch in self._in_order() if batch.name == name), FREE)

    def surface_of(self, body: int) -> tuple[Surface, Array]:
        """The surface a body is drawn with, and its scale along each axis."""
        for batch in self._in_order():
            for row in np.flatnonzero(batch.ids == body):
                return batch.surface, batch.scales[row]
        raise ValueError(f"body {body} is not drawn")

    def update(self, scene: Scene, alive: NDArray[np.bool_], states: Array, colors: Array) -> None:
        """Draw the living bodies of the scene at these states, in these colours."""
        self._is_drawn = grown(self._is_drawn, len(alive), False)
        gone, new = self._is_drawn & ~alive, np.flatnonzero(alive & ~self._is_drawn)
        if gone.any():
            for batch in self._in_order():
                batch.remove(gone)
        for group in groups_of(scene, scene.bodies.shape_id[new], new, self._models) if len(new) else ():
            key = group.model.key
            if key not in self._batches:
                self._batches[key] = Batch(self._api, f"/bodies/{len(self._batches)}", group.model)
            self._batches[key].add(group.ids, group.scales)
        self._is_drawn[:] = alive
        for batch in self._in_order():
            batch.update(states, colors)

    def clear(self) -> None:
        """Draw no body: numbers of bodies and shapes are others' from now on."""
        self._is_drawn = np.empty(0, bool)
        self._models.clear()
        for batch in self._in_order():
            batch.clear()

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
        for batch in self._in_order():
            batch.set_opacity(opacity)

    def set_drag(self, drag: Drag | None) -> None:
        """Call `drag` when a body is dragged; with None the camera turns."""
        for batch in self._in_order():
            batch.set_drag(drag)

    def _in_order(self) -> list[Batch]:
        """All batches; a copy, for other threads look for bodies in them."""
        return list(self._batches.values())

    # ---- static bodies ---------------------------------------------------------------------------------------------

    def _add_statics(self, scene: Scene) -> None:
        statics = scene.statics
        for k, group in enumerate(groups_of(scene, statics.shape_id, np.arange(scene.static_count))):
            surface = level_of(group.model, len(group.ids))
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
        cell = _round_length(first_camera(scene, scene.states, scene.alive).distance / 14)
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


def first_camera(scene: Scene, states: Array, alive: NDArray[np.bool_], aspect: float = 1.5) -> Camera:
    """The scene's camera, or one that has its living bodies in the picture, without those that flew far away."""
    if scene.camera is not None:
        return as_camera(scene.camera)
    if not alive.any():
        return frame_points(np.empty((0, 3)), aspect)
    places, radii = states[alive, :3], scene.bounding_radii()[alive]
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


def anchors(scene: Scene, states: Array, joint_ids: NDArray[np.intp]) -> tuple[Array, Array]:
    """Where each of these joints is on its body a, and on its body b or the world, (n, 3) each [m]."""
    joints = scene.joints
    places = []
    for bodies, all_frames in ((joints.body_a, joints.frame_a), (joints.body_b, joints.frame_b)):
        ids, frames = bodies[joint_ids], all_frames[joint_ids]
        world = ids < 0
        turns = np.where(world[:, None], rotation.IDENTITY, states[ids, 3:7])
        places.append(np.where(world[:, None], 0.0, states[ids, :3]) + rotation.rotate(turns, frames[:, :3]))
    return places[0], places[1]


def _round_length(length: float) -> float:
    """The nearest of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(power * min((1.0, 2.0, 5.0, 10.0), key=lambda step: abs(np.log(step * power / length))))
