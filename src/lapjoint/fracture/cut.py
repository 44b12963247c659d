"""Cut: a shape becomes the Voronoi cells of seeds, and the faces between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..arrays.checks import table
from ..errors import LapjointError
from ..scene import ConvexHull, TriangleMesh
from ..scene.shapes import mass_properties
from .cells import cells
from .mesh import cut_mesh
from .outline import Solid, bounds, check_inside, faceted, planes_of
from .pieces import Array, Piece, Pieces, collect, directions_in, polygon_moments
from .sections import Section, section

NEAR = 1e-9
"""Share of the shape's size: what is nearer to a plane than this is on it."""


def cut(shape: Solid, seeds: ArrayLike) -> Pieces:
    """Cut a shape into the Voronoi cells of seeds, (n, 3) points in its frame. Volumes add up to the shape's. Cones and
    ellipsoids are cut as hulls of their volume, with flat faces."""
    shape = faceted(shape)
    points = table("seed", seeds, 3, "cut")
    if not len(points):
        raise LapjointError("cut: there are no seeds, expected at least one")
    low, high = bounds(shape)
    near = NEAR * float(np.linalg.norm(high - low))
    if isinstance(shape, TriangleMesh):
        return cut_mesh(shape, points, near)
    check_inside(shape, points, near)
    pieces: list[Piece] = []
    faces: dict[tuple[int, int], Section] = {}
    for cell in cells(points, planes_of(shape), near):
        hull = ConvexHull(cell.corners)
        pieces.append(Piece(hull, mass_properties(hull)[0], cell.seed))
        for other, plane in zip(cell.others.tolist(), cell.planes, strict=True):
            span = float(np.linalg.norm(points[other] - points[cell.seed]))
            if other > cell.seed and (face := _face(cell.corners, plane, near, span)) is not None:
                faces[cell.seed, other] = face
    return collect(pieces, faces)


def _face(corners: Array, plane: Array, near: float, span: float) -> Section | None:
    """The polygon that a cell has on a plane; None where it has none."""
    on = corners[np.abs(corners @ plane[:3] + plane[3]) < 1e3 * near]
    if len(on) < 3:
        return None
    middle, across = on.mean(axis=0), directions_in(plane[:3])
    flat = (on - middle) @ across.T
    flat = flat[np.argsort(np.arctan2(flat[:, 1], flat[:, 0]))]
    area, moments = polygon_moments(flat)
    if not area > 0:
        return None
    offset = moments / (6 * area)
    return section(middle + offset @ across, plane[:3], across, [flat - offset], span)
