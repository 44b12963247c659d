"""Surfaces: triangles with normals, welded, smooth where the surface bends little and sharp where it bends much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

CREASE = np.radians(48.0)
"""Two triangles that meet at more than this angle share no normal: an octagonal tube is round, a box has edges."""


class Kind(IntEnum):
    CLOSED = 0  # the inside can never be seen: triangles are drawn from outside only
    OPEN = 1  # drawn from both sides
    DISC = 2  # turned to the eye, shaded as the sphere of radius 1 that it stands for


@dataclass(frozen=True)
class Surface:
    """What a body looks like. Triangles are indices, counter-clockwise seen from outside."""

    vertices: Array
    normals: Array
    triangles: Indices
    kind: Kind = Kind.CLOSED


def merge(surfaces: Sequence[Surface]) -> Surface:
    """Several surfaces as one."""
    starts = np.cumsum([0, *(len(surface.vertices) for surface in surfaces)])
    return Surface(
        np.concatenate([surface.vertices for surface in surfaces]),
        np.concatenate([surface.normals for surface in surfaces]),
        np.concatenate([s.triangles + start for s, start in zip(surfaces, starts[:-1], strict=True)]),
    )


def weld(vertices: Array, triangles: Indices) -> tuple[Array, Indices]:
    """Make vertices in one place one vertex, and drop triangles that have no area left."""
    # The odd offset keeps round numbers, which are common, away from the borders of the rounding.
    extent = max(float(np.ptp(vertices, axis=0).max()), 1e-30)
    cells = np.round(vertices / (1e-6 * extent) + 0.2831).astype(np.int64)
    _, first, index = np.unique(cells, axis=0, return_index=True, return_inverse=True)
    welded = index.reshape(-1)[triangles]
    a, b, c = welded.T
    return vertices[first], welded[(a != b) & (b != c) & (c != a)]


def face_normals(vertices: Array, triangles: Indices) -> Array:
    """Unit normals of triangles; zero where a triangle has no area."""
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    return np.asarray(np.divide(normals, lengths, out=np.zeros_like(normals), where=lengths > 0))


def with_normals(vertices: Array, triangles: Indices, *, crease: float = CREASE) -> Surface:
    """Give triangles normals: each corner takes the mean over the triangles around its vertex that bend from its own
    triangle by less than the crease angle, weighted by their angles there (so the cut into triangles does not matter).
    """
    vertices, triangles = weld(vertices, triangles)
    faces = face_normals(vertices, triangles)
    weights = _corner_angles(vertices, triangles).ravel()
    corners = triangles.ravel()  # corner i belongs to triangle i // 3
    order = np.argsort(corners, kind="stable")
    counts = np.bincount(corners, minlength=len(vertices))
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    # Every pair (one, other) of corners at the same vertex.
    fans = counts[corners[order]]
    one = np.repeat(order, fans)
    within = np.arange(len(one)) - np.repeat(np.cumsum(fans) - fans, fans)
    other = order[np.repeat(starts[corners[order]], fans) + within]
    bend = np.einsum("ij,ij->i", faces[one // 3], faces[other // 3])
    share = np.where((bend > np.cos(crease)) | (one == other), weights[other], 0.0)
    sums = np.stack([np.bincount(one, share * faces[other // 3, k], minlength=len(corners)) for k in range(3)], axis=1)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    normals = np.where(lengths > 1e-12, sums / np.maximum(lengths, 1e-12), np.repeat(faces, 3, axis=0))
    # One vertex per place and normal.
    keys = np.concatenate([corners[:, None], np.round(normals * 1e4).astype(np.int64)], axis=1)
    _, first, index = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return Surface(vertices[corners[first]], normals[first], index.reshape(-1, 3))


def _corner_angles(vertices: Array, triangles: Indices) -> Array:
    points = vertices[triangles]
    ahead = np.roll(points, -1, axis=1) - points
    back = np.roll(points, 1, axis=1) - points
    lengths = np.linalg.norm(ahead, axis=2) * np.linalg.norm(back, axis=2)
    cosines = np.einsum("ijk,ijk->ij", ahead, back) / np.maximum(lengths, 1e-30)
    return np.asarray(np.arccos(np.clip(cosines, -1.0, 1.0)))
