"""Voronoi cells of seeds, as corners and planes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import LapjointError
from .pieces import Array


class Cell(NamedTuple):
    """The Voronoi cell of a seed, as far as some outer planes let it go."""

    seed: int
    corners: Array
    others: NDArray[np.int64]
    """Seeds whose cells may meet it."""
    planes: Array
    """Half way to each of these: normal towards it, and minus its distance from the origin."""


def cells(points: Array, outer: Array, near: float) -> Iterator[Cell]:
    """The Voronoi cell of each seed within some half spaces."""
    from scipy.spatial import HalfspaceIntersection, QhullError

    for number, others in enumerate(_neighbours(points, near)):
        apart = points[others] - points[number]
        distance = np.linalg.norm(apart, axis=1)
        normals = apart / distance[:, None]
        middles = (points[others] + points[number]) / 2
        between = np.concatenate([normals, -np.einsum("ij,ij->i", normals, middles)[:, None]], axis=1)
        try:
            corners = HalfspaceIntersection(np.concatenate([outer, between]), points[number]).intersections
        except QhullError:
            raise LapjointError(f"cut: the cell of seed {number} is too thin: two seeds are too close") from None
        yield Cell(number, corners[np.isfinite(corners).all(axis=1)], others, between)


def _neighbours(points: Array, near: float) -> list[NDArray[np.int64]]:
    """For each seed, others whose cells may meet its own: all that a Delaunay triangulation joins it to."""
    from scipy.spatial import Delaunay, QhullError, cKDTree

    close = cKDTree(points).query_pairs(near)
    for a, b in sorted(close):
        raise LapjointError(f"cut: seeds {a} and {b} are at the same place")
    count = len(points)
    everybody = [np.delete(np.arange(count), k) for k in range(count)]
    if count < 6:
        return everybody
    try:
        start, ends = Delaunay(points).vertex_neighbor_vertices
    except QhullError:  # all on a line or a plane
        return everybody
    return [np.sort(ends[start[k] : start[k + 1]]).astype(np.int64) for k in range(count)]
