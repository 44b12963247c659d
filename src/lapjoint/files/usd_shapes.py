"""Shapes of USD colliders. Those of instances are made once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import rotation
from ..errors import LapjointError
from ..scene import Box, ConvexHull, Ellipsoid, HeightField, Plane, Sphere, TriangleMesh
from ..scene.meshes import decompose
from . import usd_words as words
from .notes import Notes
from .solids import HERE, Placed, hull_of, standing
from .usd_values import AXES, Array, given, vector

TO_AXIS = {name: rotation.between((0.0, 0.0, 1.0), axis) for name, axis in AXES.items()}
"""From z, along which capsules, cylinders and cones stand, to the axis that a shape names."""
KINDS = ("Sphere", "Cube", "Capsule", "Capsule1", "Cylinder", "Cylinder1", "Cone", "Plane", "Mesh")
OTHERS = ("SpherePoints", "Custom")


class Shapes:
    """Shapes in metres; `unit` is the stage's."""

    def __init__(self, stage: Any, unit: float, notes: Notes) -> None:
        self._stage, self._unit, self._notes = stage, unit, notes
        self._made: dict[tuple[str, bool, tuple[float, ...]], Placed] = {}

    def shape(self, kind: str, desc: Any, moves: bool) -> Placed:
        """The shape of a collider. What cannot be one is refused."""
        where, unit = str(desc.primPath), self._unit
        try:
            if kind == "Sphere":
                return Sphere(desc.radius * unit), HERE, rotation.IDENTITY
            if kind == "Cube":
                return Box(tuple(2 * unit * vector(desc.halfExtents))), HERE, rotation.IDENTITY
            if kind in ("Capsule", "Cylinder", "Cone"):
                return self._along(kind.lower(), desc.radius, 0.0 if kind == "Cone" else desc.radius, desc)
            if kind in ("Capsule1", "Cylinder1"):
                return self._along(kind.removesuffix("1").lower(), desc.bottomRadius, desc.topRadius, desc)
            if kind == "Plane":
                if moves:
                    raise LapjointError("a plane on a body that moves, expected one that is static")
                return Plane(), HERE, TO_AXIS[desc.axis.name]
            if kind == "Mesh":
                return self._mesh(desc, where, moves)
        except LapjointError as error:
            raise self._notes.refuse(where, str(error)) from None
        raise self._notes.refuse(where, f"a shape that lapjoint does not have ({kind})")

    def _along(self, kind: str, bottom: float, top: float, desc: Any) -> Placed:
        unit, turn = self._unit, TO_AXIS[desc.axis.name]
        return standing(kind, bottom * unit, top * unit, 2 * desc.halfHeight * unit, turn)

    # ---- meshes ----------------------------------------------------------------------------------------------------

    def _mesh(self, desc: Any, where: str, moves: bool) -> Placed:
        prim = self._stage.GetPrimAtPath(desc.primPath)
        source = prim.GetPrimInPrototype() if prim.IsInstanceProxy() else prim
        key = (str(source.GetPath()), moves, tuple(vector(desc.meshScale)))
        if key not in self._made:
            self._made[key] = self._own_mesh(prim, desc) or self._any_mesh(prim, desc, where, moves)
        return self._made[key]

    def _own_mesh(self, prim: Any, desc: Any) -> Placed | None:
        """The shape that a mesh of an exported scene stands for."""
        own = given(prim, words.SHAPE)
        if own == "Ellipsoid":
            return Ellipsoid(tuple(self._unit * np.array(given(prim, words.RADII)))), HERE, rotation.IDENTITY
        if own == "HeightField":
            heights = np.array(given(prim, words.HEIGHTS), float).reshape(-1, int(given(prim, words.COLUMNS)))
            spacing = self._unit * np.array(given(prim, words.SPACING))
            return HeightField(self._unit * heights, tuple(spacing)), HERE, rotation.IDENTITY
        if own == "ConvexHull":
            hull = ConvexHull(self._points(prim, desc))
            return hull, hull.centre, rotation.IDENTITY
        return None

    def _any_mesh(self, prim: Any, desc: Any, where: str, moves: bool) -> Placed:
        points, straight, how = self._points(prim, desc), rotation.IDENTITY, str(desc.approximation)
        if how in ("boundingSphere", "boundingCube"):
            low, high = points.min(axis=0), points.max(axis=0)
            middle = (low + high) / 2
            if how == "boundingCube":
                return Box(tuple(high - low)), middle, straight
            return Sphere(float(np.linalg.norm(points - middle, axis=1).max())), middle, straight
        if how in ("none", "meshSimplification") and not moves:
            return TriangleMesh(points, self._triangles(prim)), HERE, straight
        if how == "convexDecomposition":
            parts = decompose(points, self._triangles(prim))
            return parts, parts.centre, straight
        if how != "convexHull":
            self._notes.approximate(where, f"a mesh that moves is its convex hull (its approximation is {how!r})")
        return hull_of(points)

    def _points(self, prim: Any, desc: Any) -> Array:
        points = np.array(given(prim, "points", []), float).reshape(-1, 3)
        if len(points) == 0:
            raise LapjointError("a mesh without points")
        if not np.isfinite(points).all():
            raise LapjointError("a mesh with a point that is not finite")
        return points * vector(desc.meshScale) * self._unit

    def _triangles(self, prim: Any) -> NDArray[np.int32]:
        """Polygons as fans of triangles."""
        counts = np.array(given(prim, "faceVertexCounts", []), int)
        corners = np.array(given(prim, "faceVertexIndices", []), int)
        if counts.sum() != len(corners) or (counts < 3).any():
            raise LapjointError("a mesh whose faces do not add up to their corners")
        if (counts == 3).all():
            return corners.reshape(-1, 3).astype(np.int32)
        ends = np.cumsum(counts)
        fans = [_fan(corners[end - count : end]) for end, count in zip(ends, counts, strict=True)]
        return np.concatenate([np.empty((0, 3), int), *fans]).astype(np.int32)


def _fan(corners: NDArray[np.int64]) -> NDArray[np.int64]:
    """A polygon as triangles that share its first corner."""
    return np.stack([np.full(len(corners) - 2, corners[0]), corners[1:-1], corners[2:]], axis=1)
