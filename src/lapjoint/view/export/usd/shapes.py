"""Shapes as prims: a class each, to which bodies refer as instances, so that a mesh is written once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....arrays import rotation
from ....files import usd_words as words
from ....scene import (
    Box,
    Capsule,
    Compound,
    Cone,
    ConvexHull,
    Cylinder,
    Ellipsoid,
    HeightField,
    Material,
    Plane,
    Sphere,
    TriangleMesh,
)
from ....scene.shapes import StaticShape
from ...draw.tessellate import sphere
from ..tables import mesh_of
from .layer import (
    Prim,
    Types,
    add_apis,
    add_prim,
    doubles,
    numbered,
    order_ops,
    place,
    points,
    put,
    relate,
    vec3f,
    whole,
)
from .materials import add_material

COLLIDER = ("PhysicsCollisionAPI", "MaterialBindingAPI")
GEOMETRY = "geometry"
ELLIPSOID_CUTS = 9


def part_names(shape: StaticShape) -> list[str]:
    """The names of a shape's colliders below its prim."""
    if not isinstance(shape, Compound):
        return [GEOMETRY]
    return [numbered("part", k, len(shape.parts)) for k in range(len(shape.parts))]


def add_shape(
    parent: Prim,
    name: str,
    shape: StaticShape,
    extent: float,
    *,
    apis: Sequence[str],
    collides: bool,
) -> Prim:
    """The class of a shape, with the schemas of those that refer to it. Planes are drawn as large as `extent` [m]. One
    that does not collide is only seen."""
    prim = add_prim(parent, name, "Xform", apis, is_class=True)
    prim.SetInfo("instanceable", True)
    order_ops(prim)
    names = part_names(shape)
    if not isinstance(shape, Compound):
        _add_geometry(prim, names[0], shape, np.zeros(3), rotation.IDENTITY, extent, collides)
        return prim
    put(prim, words.SHAPE, Types.Token, "Compound", uniform=True)
    materials: dict[Material, Any] = {}
    for one, part in zip(names, shape.parts, strict=True):
        geometry = _add_geometry(
            prim, one, part.shape, np.array(part.position), np.array(part.quaternion), extent, collides
        )
        if not collides:
            continue
        if part.relative_density != 1:
            put(geometry, words.RELATIVE_DENSITY, Types.Double, part.relative_density, uniform=True)
        if part.material is not None:
            if part.material not in materials:  # within the class: what is outside an instance cannot be bound in it
                materials[part.material] = add_material(prim, f"material_{len(materials)}", part.material)
            relate(geometry, "material:binding:physics", [materials[part.material].path])
    return prim


def _add_geometry(
    parent: Prim,
    name: str,
    shape: StaticShape,
    position: NDArray[np.float64],
    quaternion: NDArray[np.float64],
    extent: float,
    collides: bool,
) -> Prim:
    if isinstance(shape, Cone):  # USD has the middle of its height in the origin
        position = position + rotation.rotate(quaternion, (0.0, 0.0, shape.length / 4))
    prim = add_prim(parent, name, _KINDS[type(shape)], COLLIDER if collides else ())
    place(prim, position, quaternion)
    if isinstance(shape, Box):
        put(prim, "xformOp:scale", Types.Float3, vec3f(shape.size))
        order_ops(prim, "xformOp:scale")
        put(prim, "size", Types.Double, 1.0)
        _bound(prim, np.full(3, 0.5))
        return prim
    order_ops(prim)
    if isinstance(shape, Sphere):
        put(prim, "radius", Types.Double, shape.radius)
        _bound(prim, np.full(3, shape.radius))
    elif isinstance(shape, (Capsule, Cylinder, Cone)):
        put(prim, "axis", Types.Token, "Z", uniform=True)
        put(prim, "radius", Types.Double, shape.radius)
        put(prim, "height", Types.Double, shape.length)
        ends = shape.radius if isinstance(shape, Capsule) else 0.0
        _bound(prim, np.array([shape.radius, shape.radius, shape.length / 2 + ends]))
    elif isinstance(shape, Plane):
        put(prim, "axis", Types.Token, "Z", uniform=True)
        put(prim, "width", Types.Double, extent)
        put(prim, "length", Types.Double, extent)
        _bound(prim, np.array([extent / 2, extent / 2, 0.0]))
    else:
        _add_mesh(prim, shape, collides)
    return prim


_KINDS = {
    Sphere: "Sphere",
    Box: "Cube",
    Capsule: "Capsule",
    Cylinder: "Cylinder",
    Cone: "Cone",
    Plane: "Plane",
    ConvexHull: "Mesh",
    Ellipsoid: "Mesh",
    TriangleMesh: "Mesh",
    HeightField: "Mesh",
}


def _add_mesh(prim: Prim, shape: StaticShape, collides: bool) -> None:
    own = type(shape).__name__
    approximation = "none" if isinstance(shape, (TriangleMesh, HeightField)) else "convexHull"
    if isinstance(shape, Ellipsoid):
        ball = sphere(ELLIPSOID_CUTS)
        vertices, triangles = ball.vertices * shape.radii, ball.triangles.astype(np.int32)
    else:
        assert isinstance(shape, (ConvexHull, TriangleMesh, HeightField))
        vertices, triangles = mesh_of(shape)
    put(prim, "points", Types.Point3fArray, points(vertices))
    put(prim, "faceVertexIndices", Types.IntArray, whole(triangles))
    put(prim, "faceVertexCounts", Types.IntArray, whole(np.full(len(triangles), 3)))
    put(prim, "subdivisionScheme", Types.Token, "none", uniform=True)
    put(prim, "doubleSided", Types.Bool, approximation == "none", uniform=True)
    put(prim, "extent", Types.Float3Array, points(np.stack([vertices.min(axis=0), vertices.max(axis=0)])))
    if not collides:
        return
    add_apis(prim, ["PhysicsMeshCollisionAPI"])
    put(prim, "physics:approximation", Types.Token, approximation, uniform=True)
    if isinstance(shape, TriangleMesh):
        return
    put(prim, words.SHAPE, Types.Token, own, uniform=True)
    if isinstance(shape, Ellipsoid):
        put(prim, words.RADII, Types.DoubleArray, doubles(shape.radii), uniform=True)
    if isinstance(shape, HeightField):
        put(prim, words.HEIGHTS, Types.DoubleArray, doubles(shape.heights), uniform=True)
        put(prim, words.COLUMNS, Types.Int, shape.heights.shape[1], uniform=True)
        put(prim, words.SPACING, Types.DoubleArray, doubles(shape.spacing), uniform=True)


def _bound(prim: Prim, half: NDArray[np.float64]) -> None:
    put(prim, "extent", Types.Float3Array, points(np.stack([-half, half])))
