"""A scene's shapes as Box3D's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...arrays import rotation
from ...engines.mapping import pieces
from ...scene import Box, Capsule, ConvexHull, Cylinder, HeightField, Plane, Scene, Sphere, TriangleMesh
from ...scene.shapes import StaticShape, hull_faces
from .base import Array

MOST_CORNERS = 44
"""Of a hull. It has room for 128 edges, which is what so many corners have at most; with more it finds no hull, or does
not return."""
CYLINDER_SIDES = 32
PLANE_DEPTH = 10.0
"""Thickness of the box that a plane is [m]."""


def corners(hull: ConvexHull) -> Array:
    return hull_faces(hull.points)[0]


def used_pieces(scene: Scene) -> Iterator[StaticShape]:
    """Shapes of bodies and static bodies, parts of compounds by themselves."""
    for shape_id in np.unique([*scene.bodies.shape_id, *scene.statics.shape_id]).astype(int):
        for shape, _, _ in pieces(scene.shapes[shape_id]):
            yield shape


def many_corners(scene: Scene) -> int:
    """How many hulls have more corners than Box3D takes."""
    hulls = (shape for shape in used_pieces(scene) if isinstance(shape, ConvexHull))
    return sum(len(corners(hull)) > MOST_CORNERS for hull in hulls)


def plane_reach(scene: Scene, states: Array) -> float:
    """Half the side of the boxes that planes are [m]: bodies stay over them though they roll away. Not larger than it
    has to be, for Box3D computes in float32."""
    return 50.0 + 2 * float(np.abs([*states[:, :3], *scene.statics.position]).max(initial=0.0))


def cylinder_corners(cylinder: Cylinder) -> Array:
    """A prism of the cylinder's volume, whose edges are a little outside of it."""
    step = 2 * np.pi / CYLINDER_SIDES
    angle, radius = step * np.arange(CYLINDER_SIDES), cylinder.radius * np.sqrt(step / np.sin(step))
    ring = np.stack([radius * np.cos(angle), radius * np.sin(angle), 0 * angle], axis=1)
    up = np.array([0.0, 0.0, cylinder.length / 2])
    return np.concatenate([ring - up, ring + up])


class Box3DShapes:
    """Makes Box3D's shapes and owns what they refer to; `close` frees it, after the world."""

    def __init__(self, ffi: Any, lib: Any, scene: Scene, states: Array) -> None:
        self._ffi, self._lib, self._scene = ffi, lib, scene
        self._reach = plane_reach(scene, states)
        self._hulls: dict[bytes, Any] = {}
        self._meshes: list[Any] = []

    def add(self, body: Any, table: Any, row: int) -> None:
        """Give a body of Box3D the shapes, the surface and the filter of a row of a table."""
        definition = self._lib.b3DefaultShapeDef()
        definition.density, definition.updateBodyMass = 0.0, False
        definition.baseMaterial.friction = table.friction[row]
        definition.baseMaterial.restitution = table.restitution[row]
        definition.filter.categoryBits, definition.filter.maskBits = int(table.group[row]), int(table.mask[row])
        for shape, place, turn in pieces(self._scene.shapes[table.shape_id[row]]):
            self._add_piece(body, self._ffi.addressof(definition), shape, place, turn)

    def _add_piece(self, body: Any, definition: Any, shape: StaticShape, place: Array, turn: Array) -> None:
        ffi, lib = self._ffi, self._lib
        if isinstance(shape, Sphere):
            lib.b3CreateSphereShape(body, definition, ffi.new("b3Sphere *", (place.tolist(), shape.radius)))
        elif isinstance(shape, Capsule):
            half = rotation.rotate(turn, np.array([0.0, 0.0, shape.length / 2]))
            ends = (place - half).tolist(), (place + half).tolist()
            lib.b3CreateCapsuleShape(body, definition, ffi.new("b3Capsule *", (*ends, shape.radius)))
        elif isinstance(shape, (TriangleMesh, HeightField)):
            lib.b3CreateMeshShape(body, definition, self._mesh(shape), (1.0, 1.0, 1.0))
        else:
            lib.b3CreateHullShape(body, definition, self._hull(shape, place, turn))

    def _hull(self, shape: StaticShape, place: Array, turn: Array) -> Any:
        """A hull where its part of the shape is; made once."""
        if isinstance(shape, Plane):
            half = np.array([self._reach, self._reach, PLANE_DEPTH / 2])
            return self._box(half, np.array([0.0, 0.0, -PLANE_DEPTH / 2]), rotation.IDENTITY)
        if isinstance(shape, Box):
            return self._box(np.array(shape.size) / 2, place, turn)
        if isinstance(shape, Cylinder):
            points = cylinder_corners(shape)
        else:
            assert isinstance(shape, ConvexHull)
            points = corners(shape)
        return self._hull_of(place + rotation.rotate(turn, points), isinstance(shape, Cylinder))

    def _box(self, half: Array, place: Array, turn: Array) -> Any:
        key = np.concatenate([half, place, turn]).tobytes()
        if key not in self._hulls:
            made = self._lib.b3MakeTransformedBoxHull(*half.tolist(), (place.tolist(), as_quat(turn)))
            self._hulls[key] = self._ffi.new("b3BoxHull *", made)
        return self._ffi.addressof(self._hulls[key], "base")

    def _hull_of(self, points: Array, is_cylinder: bool) -> Any:
        key = points.tobytes()
        if key not in self._hulls:
            row = np.ascontiguousarray(points, np.float32)
            most = len(row) if is_cylinder else MOST_CORNERS
            made = self._lib.b3CreateHull(self._ffi.from_buffer("b3Vec3[]", row), len(row), most)
            assert made != self._ffi.NULL
            self._hulls[key] = self._ffi.gc(made, self._lib.b3DestroyHull)
        return self._hulls[key]

    def _mesh(self, mesh: TriangleMesh | HeightField) -> Any:
        """The triangles of a mesh, in place."""
        ffi, definition = self._ffi, self._ffi.new("b3MeshDef *")
        vertices = np.ascontiguousarray(mesh.vertices, np.float32)
        triangles = np.ascontiguousarray(mesh.triangles, np.int32)
        definition.vertices, definition.vertexCount = ffi.from_buffer("b3Vec3[]", vertices), len(vertices)
        definition.indices, definition.triangleCount = ffi.from_buffer("int32_t[]", triangles), len(triangles)
        definition.identifyEdges = True  # else bodies bump into edges between triangles of one plane
        made = self._lib.b3CreateMesh(definition, ffi.NULL, 0)
        assert made != ffi.NULL
        self._meshes.append(ffi.gc(made, self._lib.b3DestroyMesh))
        return made

    def close(self) -> None:
        self._hulls.clear()
        self._meshes.clear()


def as_quat(quaternion: Array) -> tuple[tuple[float, float, float], float]:
    """A quaternion as Box3D has it: its vector, then its scalar."""
    w, x, y, z = map(float, quaternion)
    return (x, y, z), w


def as_transform(frame: Array) -> tuple[list[float], tuple[tuple[float, float, float], float]]:
    """Position and quaternion as one of its transforms."""
    return frame[:3].tolist(), as_quat(frame[3:7])
