"""Batch: everything a scene draws, as a few arrays: surfaces once, and one row per body with its place and colour.

All surfaces lie in one vertex array and one index array. Rows are sorted by surface, so that one indirect draw call
with one command per surface in use draws the whole scene. No step here loops over bodies.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays import rotation
from ...scene import Plane, Scene
from .surface import Kind, Surface
from .tessellate import Model, model_of, with_coarser_levels

Array = NDArray[np.float64]
ROW_SIZE = 14  # position 3, quaternion w x y z, scale 3, colour 3, tag
OUTLINED = 5.0
"""Bodies with a larger bounding radius on the screen [pixels] get an outline."""


@dataclass(frozen=True)
class Draws:
    """Rows to draw, and commands (index count, row count, first index, first vertex, first row) by kind of surface:
    the bodies as the eye sees them, and as the light does."""

    rows: NDArray[np.float32]
    seen: dict[Kind, NDArray[np.uint32]]
    shadow: dict[Kind, NDArray[np.uint32]]


class Batch:
    """The bodies of a scene, then its static bodies without the planes."""

    def __init__(self, scene: Scene) -> None:
        solid = np.array([not isinstance(shape, Plane) for shape in scene.shapes], bool)
        self.static_ids = np.flatnonzero(solid[scene.statics.shape_id])
        self.plane_ids = np.flatnonzero(~solid[scene.statics.shape_id])
        used = np.concatenate([scene.bodies.shape_id, scene.statics.shape_id[self.static_ids]])
        model_ids: dict[Hashable, int] = {}
        models: list[Model] = []
        shape_model = np.zeros(len(scene.shapes), int)
        scales = np.ones((len(scene.shapes), 3))
        boxes = np.zeros((len(scene.shapes), 2, 3))
        radii = np.zeros(len(scene.shapes))
        for shape_id in np.unique(used):
            model = model_of(scene.shapes[shape_id])
            if model.key not in model_ids:
                model_ids[model.key] = len(models)
                models.append(model)
            shape_model[shape_id] = model_ids[model.key]
            scales[shape_id] = model.scale
            places = model.levels[-1].vertices * model.scale
            boxes[shape_id] = places.min(axis=0), places.max(axis=0)
            radii[shape_id] = np.linalg.norm(places, axis=1).max()
        self.models = shape_model[used]
        for row, count in enumerate(np.bincount(self.models, minlength=len(models))):
            if _is_heavy(models[row], int(count)):
                models[row] = with_coarser_levels(models[row])
        self.scales = scales[used]
        self.boxes = boxes[used]
        """Lowest and highest corner of each row's box in the body's frame, (n, 2, 3) [m]."""
        self.radii = radii[used]
        """Radius of each row's bounding sphere about its position [m]."""
        self._stack([level for model in models for level in model.levels])
        self._first_level = np.cumsum([0, *(len(model.levels) for model in models)])
        deepest = max((len(model.levels) for model in models), default=1)
        self._sizes = np.full((len(models), deepest), np.inf)
        for row, model in enumerate(models):
            self._sizes[row, : len(model.sizes)] = model.sizes

    def _stack(self, surfaces: list[Surface]) -> None:
        vertices = [np.concatenate([one.vertices, one.normals], axis=1) for one in surfaces]
        self.vertices = np.concatenate([np.zeros((0, 6)), *vertices]).astype(np.float32)
        triangles = np.concatenate([np.zeros((0, 3), int), *(one.triangles for one in surfaces)])
        self.indices = triangles.astype(np.uint32)
        self._index_count = np.array([one.triangles.size for one in surfaces], int)
        self._first_index = np.cumsum(self._index_count) - self._index_count
        sizes = np.array([len(one.vertices) for one in surfaces], int)
        self._first_vertex = np.cumsum(sizes) - sizes
        self._kinds = np.array([one.kind for one in surfaces], int)
        self.surface_count = len(surfaces)

    def surfaces(self) -> NDArray[np.int64]:
        """Kind, index count, first index and first vertex of each surface, (k, 4)."""
        return np.stack([self._kinds, self._index_count, self._first_index, self._first_vertex], axis=1)

    def levels(self) -> list[tuple[int, list[float]]]:
        """For each model its first surface, and the largest size on the screen [pixels] of each level but the last."""
        counts = np.diff(self._first_level)
        table = zip(self._first_level[:-1].tolist(), self._sizes, counts.tolist(), strict=True)
        return [(first, sizes[: count - 1].tolist()) for first, sizes, count in table]

    def corners(self, positions: Array, quaternions: Array) -> Array:
        """The eight corners of each row's box in the world, (n, 8, 3) [m]."""
        picks = np.indices((2, 2, 2)).reshape(3, 8).T
        local = np.stack([self.boxes[:, picks[:, axis], axis] for axis in range(3)], axis=2)
        return positions[:, None] + rotation.rotate(quaternions[:, None], local)

    def draws(
        self, positions: Array, quaternions: Array, colors: Array, pixels: Array, rows: NDArray[np.int64] | None = None
    ) -> Draws:
        """Rows and commands for one frame; `pixels` is each row's bounding radius on the screen. All arguments are of
        these rows, or of all."""
        ids = np.arange(len(self.models)) if rows is None else rows
        models = self.models[ids]
        level = (pixels[:, None] > self._sizes[models]).sum(axis=1)
        surface = self._first_level[models] + level
        order = np.lexsort((-pixels / self.radii[ids], surface))  # the nearest first: what is behind them costs nothing
        # A tag distinguishes a body from its neighbours, so that an outline can be drawn where tags differ; 0 has none.
        tags = np.where(pixels > OUTLINED, (ids * 97 % 255 + 1) / 255, 0.0)
        table = np.concatenate([positions, quaternions, self.scales[ids], colors, tags[:, None]], axis=1)[order]
        counts = np.bincount(surface, minlength=len(self._index_count))
        starts = np.cumsum(counts) - counts
        used = np.flatnonzero(counts)
        # A shadow is seen from afar: one level coarser, and a disc for every sphere.
        first = self._first_level[np.searchsorted(self._first_level, used, "right") - 1]
        coarser = np.where(self._kinds[first] == Kind.DISC, first, np.maximum(used - 1, first))

        def commands(surfaces: NDArray[np.int64]) -> dict[Kind, NDArray[np.uint32]]:
            table = np.stack(
                [
                    self._index_count[surfaces],
                    counts[used],
                    self._first_index[surfaces],
                    self._first_vertex[surfaces],
                    starts[used],
                ],
                axis=1,
            ).astype(np.uint32)
            return {kind: table[self._kinds[surfaces] == kind] for kind in Kind}

        return Draws(table.astype(np.float32), commands(used), commands(coarser))


def _is_heavy(model: Model, count: int) -> bool:
    """Worth simplifying: many bodies of many triangles each."""
    triangles = len(model.levels[0].triangles)
    return len(model.levels) == 1 and 200 < triangles < 20_000 and triangles * count > 200_000
