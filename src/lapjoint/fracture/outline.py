"""Where a shape ends: what is inside of it, and the planes of one that is convex."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import LapjointError
from ..scene import Box, Cone, ConvexHull, Ellipsoid, TriangleMesh
from ..scene.shapes import bounding_box, mass_properties
from .pieces import Array

Solid = Box | ConvexHull | Cone | Ellipsoid | TriangleMesh
"""What can be cut. A mesh must be closed, its triangles counterclockwise seen from outside."""

CONE_SIDES = 24
ELLIPSOID_CORNERS = 96

MOST_AT_ONCE = 1 << 20
"""Pairs of points and triangles that are looked at together: some tens of megabytes."""


def faceted(shape: Solid) -> Box | ConvexHull | TriangleMesh:
    """The shape with flat faces: of a cone or an ellipsoid a hull of its volume, of any other itself."""
    if isinstance(shape, Cone):
        corners = shape.corners(CONE_SIDES)
    elif isinstance(shape, Ellipsoid):
        # A spiral over one half of a sphere, and the points opposite: their centre is the middle.
        k = np.arange(ELLIPSOID_CORNERS // 2) + 0.5
        z = k / len(k)
        turn, across = np.pi * (1 + 5**0.5) * k, np.sqrt(1 - z**2)
        half = np.stack([across * np.cos(turn), across * np.sin(turn), z], axis=1)
        corners = np.concatenate([half, -half]) * shape.radii
    else:
        return shape
    inner = ConvexHull(corners)
    return ConvexHull.centred(inner.points * (mass_properties(shape)[0] / mass_properties(inner)[0]) ** (1 / 3))


def planes_of(shape: Box | ConvexHull) -> Array:
    """Half spaces that a shape is the intersection of: a x + b y + c z + d <= 0, one row each."""
    from scipy.spatial import ConvexHull as Qhull

    if isinstance(shape, Box):
        half = np.asarray(shape.size) / 2
        return np.concatenate([np.column_stack([sign * np.eye(3), -half]) for sign in (1, -1)])
    if isinstance(shape, ConvexHull):
        return np.unique(Qhull(shape.points).equations.round(12), axis=0)
    raise LapjointError(
        f"a {type(shape).__name__} cannot be cut, expected a Box, a ConvexHull, a Cone, an Ellipsoid or a TriangleMesh"
    )


def bounds(shape: Solid) -> tuple[Array, Array]:
    """The lowest and the highest corner of the box along the axes that a shape is in."""
    shape = faceted(shape)
    if isinstance(shape, TriangleMesh):
        return shape.vertices.min(axis=0), shape.vertices.max(axis=0)
    planes_of(shape)  # refuses what has none
    centre, half = bounding_box(shape)
    return centre - half, centre + half


def contains(shape: Solid, points: Array, margin: float = 0.0) -> NDArray[np.bool_]:
    """Which points are inside of a shape; of a convex one, by more than a margin."""
    shape = faceted(shape)
    if not isinstance(shape, TriangleMesh):
        planes = planes_of(shape)
        return np.asarray((points @ planes[:, :3].T + planes[:, 3] < -margin).all(axis=1))
    count = max(1, MOST_AT_ONCE // len(shape.triangles))
    winding = [_winding(shape, points[k : k + count]) for k in range(0, len(points), count)]
    return np.asarray(np.abs(np.concatenate([np.empty(0), *winding]) - 1) < 0.5)


def check_inside(shape: Solid, seeds: Array, margin: float) -> None:
    """Refuse seeds that are not inside of a shape."""
    for outside in np.flatnonzero(~contains(shape, seeds, margin)):
        raise LapjointError(f"cut: seed {outside} at {seeds[outside]} is not inside the shape")


def _winding(mesh: TriangleMesh, points: Array) -> Array:
    """How often a mesh goes round each point: 1 inside, 0 outside. The sum of the solid angles of its triangles
    (Van Oosterom and Strackee 1983)."""
    a, b, c = (mesh.vertices[mesh.triangles[:, k]] - points[:, None] for k in range(3))
    la, lb, lc = (np.linalg.norm(side, axis=2) for side in (a, b, c))

    def dot(u: Array, v: Array) -> Array:
        return np.asarray(np.einsum("pti,pti->pt", u, v))

    below = la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb
    return np.asarray(np.arctan2(dot(a, np.cross(b, c)), below).sum(axis=1) / (2 * np.pi))
