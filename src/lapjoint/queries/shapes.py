"""Shapes for native queries, and shapes as arrays that travel with a question."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _queries
from ..errors import LapjointError
from ..scene import (
    Box,
    Capsule,
    Compound,
    Cone,
    ConvexHull,
    Cylinder,
    Ellipsoid,
    HeightField,
    Plane,
    Sphere,
    TriangleMesh,
)
from ..scene.file import describe_shape, restore_shape
from ..scene.shapes import StaticShape

KINDS = {
    kind: number
    for number, kind in enumerate(
        (Sphere, Box, Capsule, Cylinder, ConvexHull, Compound, Plane, TriangleMesh, Ellipsoid, Cone)
    )
}
KINDS[HeightField] = KINDS[TriangleMesh]  # whose triangles are known
NO_POINTS = np.empty((0, 3))
NO_TRIANGLES = np.empty((0, 3), np.int32)


def native_shape(shape: StaticShape) -> _queries.Shape:
    """A shape as native queries have it."""
    if type(shape) not in KINDS:
        raise LapjointError(
            f"a {type(shape).__name__} cannot be asked about; {', '.join(k.__name__ for k in KINDS)} can"
        )
    size, points, triangles = np.zeros(3), NO_POINTS, NO_TRIANGLES
    parts: list[_queries.Shape] = []
    places = np.empty((0, 7))
    if isinstance(shape, Sphere):
        size[0] = shape.radius
    elif isinstance(shape, Box):
        size[:] = shape.size
    elif isinstance(shape, Ellipsoid):
        size[:] = shape.radii
    elif isinstance(shape, Capsule | Cylinder | Cone):
        size[:2] = shape.radius, shape.length
    elif isinstance(shape, ConvexHull):
        points = np.ascontiguousarray(shape.points)
    elif isinstance(shape, TriangleMesh | HeightField):
        points, triangles = np.ascontiguousarray(shape.vertices), np.ascontiguousarray(shape.triangles)
    elif isinstance(shape, Compound):
        parts = [native_shape(part.shape) for part in shape.parts]
        places = np.array([[*part.position, *part.quaternion] for part in shape.parts])
    return _queries.make_shape(KINDS[type(shape)], size, points, triangles, parts, places)


def pack_shape(shape: StaticShape) -> dict[str, NDArray[Any]]:
    """A shape as arrays, for `unpack_shape`."""
    arrays: dict[str, NDArray[Any]] = {}
    text = json.dumps(describe_shape(shape, "shape/0", arrays)).encode()
    return {**arrays, "shape": np.frombuffer(text, np.uint8)}


def unpack_shape(arrays: dict[str, NDArray[Any]]) -> StaticShape:
    return restore_shape(json.loads(arrays["shape"].tobytes()), arrays, trusted=True)
