"""What tests of queries share: shapes of every kind."""

from __future__ import annotations

import numpy as np

from lapjoint import (
    Box,
    Capsule,
    Compound,
    Cone,
    ConvexHull,
    Cylinder,
    Ellipsoid,
    Part,
    Plane,
    Sphere,
    TriangleMesh,
)
from lapjoint.scene.shapes import StaticShape


def random_shape(kind: str, random: np.random.Generator) -> StaticShape:
    size = random.uniform(0.2, 2.0, 3)
    if kind == "sphere":
        return Sphere(size[0])
    if kind == "box":
        return Box(tuple(size))
    if kind == "capsule":
        return Capsule(size[0], size[1])
    if kind == "cylinder":
        return Cylinder(size[0], size[1])
    if kind == "ellipsoid":
        return Ellipsoid(tuple(size))
    if kind == "cone":
        return Cone(size[0], size[1])
    if kind == "hull":
        return ConvexHull(random.uniform(-1, 1, (random.integers(5, 40), 3)))
    if kind == "flat hull":  # many points in a plane and on an edge
        grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 4)] * 3), axis=-1).reshape(-1, 3)
        return ConvexHull(grid * size)
    if kind == "plane":
        return Plane()
    if kind == "mesh":
        return TriangleMesh(random.uniform(-1, 1, (12, 3)), random.permuted(np.arange(12)).reshape(-1, 3))
    parts = [random_shape(one, random) for one in ("sphere", "box", "cylinder", "hull", "capsule", "box")]
    turns = random.normal(size=(6, 4))
    return Compound(
        tuple(
            Part(shape, tuple(random.uniform(-1.5, 1.5, 3)), tuple(turn / np.linalg.norm(turn)))  # type: ignore[arg-type]
            for shape, turn in zip(parts, turns, strict=True)
        )
    )
