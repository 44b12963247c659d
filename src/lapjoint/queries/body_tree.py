"""BodyTree: bodies where they are, and what is asked about all of them at once. Its readable twin is
tests/reference/queries.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import _queries
from ..arrays.columns import Columns
from ..scene import Scene
from ..scene.shapes import MovingShape
from .shapes import native_shape

Array = NDArray[np.float64]
Ids = NDArray[np.int32]
Closest = tuple[Ids, Array, Array]
"""Of each ray: body, distance, normal."""
Hits = tuple[Ids, Ids, Array, Array]
"""Ray, body, distance, normal."""
Nearest = tuple[Ids, Array, Array, Array]
"""Of each point: body, distance, point, normal."""


class BodyTree:
    """Some bodies of a scene, or its static bodies. Bodies that were there before keep their places in the tree as long
    as that is good, so it costs little to set them again after every step."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._tree = _queries.BodyTree()
        self._shape_count = 0
        self.bounds: Array = np.array([np.inf] * 3 + [-np.inf] * 3)
        """Of all of them: the lowest and the highest coordinates. The low ones are the higher where there is none."""

    def set_bodies(self, body_ids: Ids, states: Array) -> None:
        """Have these bodies, and no others; `states` is a table of all."""
        self._set(body_ids, body_ids, states, self._scene.bodies)

    def set_statics(self, poses: Array) -> None:
        """Have all static bodies, at these places."""
        rows = np.arange(self._scene.static_count, dtype=np.int32)
        self._set(-1 - rows, rows, poses, self._scene.statics)

    def _set(self, numbers: Ids, rows: Ids, table: Array, columns: Columns) -> None:
        self._grow()
        self._tree.set_bodies(numbers, rows, table, columns.shape_id, columns.group)
        self.bounds = np.empty(6)
        self._tree.bounds(self.bounds)

    def _grow(self) -> None:
        for shape in self._scene.shapes[self._shape_count :]:
            self._tree.add_shape(native_shape(shape))
        self._shape_count = len(self._scene.shapes)

    def inside(self, sensors: _queries.Sensors, body_ids: Ids, states: Array) -> Ids:
        """Pairs of a sensor and one of these bodies, whether set or not, that is inside, ascending."""
        self._grow()
        bodies = self._scene.bodies
        return sensors.inside(self._tree, body_ids, states, bodies.shape_id, bodies.group)

    def cast_closest(self, origins: Array, directions: Array, reach: Array, mask: int) -> Closest:
        """The first body that each ray meets before it is `reach` long. Directions are of length 1."""
        count = len(reach)
        found = np.empty(count, np.int32), np.empty(count), np.empty((count, 3))
        self._tree.cast_closest(origins, directions, reach, mask, *found)
        return found

    def cast_all(self, origins: Array, directions: Array, reach: Array, mask: int) -> Hits:
        """All bodies that each ray meets, in the order of rays, distances and bodies."""
        return self._tree.cast_all(origins, directions, reach, mask)

    def overlapping(self, shape: MovingShape, places: Array, mask: int) -> Ids:
        """Pairs of a place, (n, 7), and a body that the shape overlaps there, ascending."""
        return self._tree.overlapping(native_shape(shape), places, mask)

    def nearest_bodies(self, points: Array, reach: Array, mask: int) -> Nearest:
        """The body whose surface is nearest to each point, no farther than `reach`."""
        count = len(points)
        found = np.empty(count, np.int32), np.empty(count), np.empty((count, 3)), np.empty((count, 3))
        self._tree.nearest_bodies(points, reach, mask, *found)
        return found


def rays_meet(origins: Array, directions: Array, reach: Array, bounds: Array) -> NDArray[np.bool_]:
    """Which rays meet a box of lowest and highest coordinates."""
    meets = np.empty(len(reach), bool)
    _queries.rays_meet(origins, directions, reach, bounds, meets)
    return meets
