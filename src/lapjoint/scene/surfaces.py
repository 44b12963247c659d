"""Surfaces of shapes as triangles, to find how much of one is below a plane."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays import rotation
from .shapes import Box, Capsule, Compound, ConvexHull, ConvexShape, Cylinder, MovingShape, Sphere, hull_faces
from .solids import Cone, Ellipsoid

Array = NDArray[np.float64]

SIDES = 24
"""Of a round shape; and as many rings from pole to pole of a ball."""


def surface_triangles(shape: MovingShape) -> Array:
    """Outward triangles, (n, 3 corners, 3), in the shape's frame. Round shapes are polyhedra, a little too small."""
    if isinstance(shape, Compound):
        parts = []
        for part in shape.parts:
            own = surface_triangles(part.shape)
            parts.append(rotation.rotate(np.asarray(part.quaternion), own.reshape(-1, 3)).reshape(own.shape))
            parts[-1] = parts[-1] + np.asarray(part.position)
        return np.concatenate(parts)
    vertices, faces = hull_faces(_corners(shape))
    return np.asarray(vertices[faces])


def _corners(shape: ConvexShape) -> Array:
    if isinstance(shape, ConvexHull):
        return shape.points
    if isinstance(shape, Box):
        signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
        return np.asarray(signs * np.asarray(shape.size) / 2)
    around = np.arange(SIDES) * 2 * np.pi / SIDES
    ring = np.stack([np.cos(around), np.sin(around), np.zeros(SIDES)], axis=1)
    if isinstance(shape, Cylinder):
        ends = [shape.radius * ring + (0.0, 0.0, side * shape.length / 2) for side in (-1, 1)]
        return np.concatenate(ends)
    if isinstance(shape, Cone):
        return shape.corners(SIDES)
    if isinstance(shape, Ellipsoid):
        return np.asarray(_corners(Sphere(1.0)) * shape.radii)
    half = shape.length / 2 if isinstance(shape, Capsule) else 0.0
    rings = []
    for slope in np.linspace(-np.pi / 2, np.pi / 2, SIDES + 1):
        for offset in {-half, half} if slope == 0 else {np.copysign(half, slope)}:
            rings.append(shape.radius * (np.cos(slope) * ring + (0.0, 0.0, np.sin(slope))) + (0.0, 0.0, offset))
    return np.unique(np.concatenate(rings).round(12), axis=0)


def volume_of(triangles: Array) -> float:
    """Of what triangles enclose."""
    a, b, c = triangles.transpose(1, 0, 2)
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum()) / 6
