"""Bounds: how far bodies are apart at least, in NumPy, for engines that do not report it."""

from __future__ import annotations

import numpy as np

from ..arrays import rotation
from ..scene import Scene
from ..scene.shapes import STATIC_ONLY, bounding_box, bounding_radius
from .base import CONTACT_MARGIN, Array, Ids


class Bounds:
    """Oriented box and bounding sphere of every body."""

    def __init__(self, scene: Scene, length_unit: float) -> None:
        radius, centre, half = np.zeros(len(scene.shapes)), *np.zeros((2, len(scene.shapes), 3))
        for shape_id in np.unique(scene.bodies.shape_id):
            shape = scene.shapes[shape_id]
            assert not isinstance(shape, STATIC_ONLY)
            radius[shape_id] = bounding_radius(shape)
            centre[shape_id], half[shape_id] = bounding_box(shape)
        self._shape, self._radius, self._centre, self._half = scene.bodies.shape_id, radius, centre, half
        self._margin = CONTACT_MARGIN * length_unit

    def clearances(self, pairs: Ids, states: Array) -> Array:
        """As `Engine.clearances`. Exact for spheres; for the rest by boxes: 0 before there is a contact, by the room
        that a shape leaves in its box."""
        if len(pairs) == 0:
            return np.empty(0)
        a, b = pairs.T
        way = states[b, :3] - states[a, :3]
        spheres = np.linalg.norm(way, axis=1) - self._radius[self._shape[a]] - self._radius[self._shape[b]]
        # Rounding of numbers as large as these, in float32.
        slack = 1e-6 * np.abs(states[pairs.ravel(), :3]).reshape(len(pairs), -1).max(axis=1)
        gap = np.maximum(spheres, self._box_gaps(a, b, way, states)) - self._margin - slack
        return np.asarray(np.maximum(gap, 0.0))

    def _box_gaps(self, a: Ids, b: Ids, way: Array, states: Array) -> Array:
        """How far boxes are apart along that of the 15 axes on which it is most; negative where they overlap."""
        axes, half, centre = [], [], []
        for body in (a, b):
            shape = self._shape[body]
            axes.append(np.swapaxes(rotation.to_matrix(states[body, 3:7]), -1, -2))  # rows are the box's axes
            half.append(self._half[shape])
            centre.append(rotation.rotate(states[body, 3:7], self._centre[shape]))
        way = way + centre[1] - centre[0]
        crossed = np.cross(axes[0][:, :, None], axes[1][:, None, :]).reshape(len(a), 9, 3)
        length = np.linalg.norm(crossed, axis=2, keepdims=True)
        crossed = np.where(length > 1e-6, crossed / np.maximum(length, 1e-6), axes[0][:, :1])  # parallel: no new axis
        tested = np.concatenate([*axes, crossed], axis=1)
        reach = sum(
            np.einsum("nij,nj->ni", np.abs(np.einsum("nik,njk->nij", tested, own)), size)
            for own, size in zip(axes, half, strict=True)
        )
        return np.asarray((np.abs(np.einsum("nik,nk->ni", tested, way)) - reach).max(axis=1))
