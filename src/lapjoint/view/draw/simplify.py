"""Simplification: fewer triangles for a surface that is small on the screen, by collapsing edges one after the other.

The next edge is always the one whose collapse moves the surface least, measured by the squared distances from the
planes of the triangles it stood for (Garland and Heckbert 1997). A surface may have a boundary, as that of a part of a
compound has within the next part. Planes through it, perpendicular to the surface, count too: else it would shrink away
from there at no cost.
"""

from __future__ import annotations

import heapq
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from .surface import Surface, face_normals, weld, with_normals

Array = NDArray[np.float64]


def simplify(surface: Surface, counts: tuple[int, ...]) -> list[tuple[Surface, float]]:
    """The surface with about each of these numbers of triangles (falling), and how far each one is from it [m].

    A level that cannot be reached without folding the surface is left out.
    """
    vertices, triangles = weld(surface.vertices, surface.triangles)
    collapse = _Collapse(vertices, triangles)
    levels = []
    for count in counts:
        if collapse.reduce(count):
            # Round where it was round: few triangles bend much, so only the sharpest edges stay sharp.
            few = with_normals(collapse.vertices, collapse.triangles(), crease=np.radians(100))
            levels.append((few, collapse.error))
    return levels


class _Collapse:
    """A surface whose edges collapse."""

    def __init__(self, vertices: Array, triangles: NDArray[np.int64]) -> None:
        self.vertices = vertices.copy()
        self.error = 0.0
        self._faces: dict[int, list[int]] = dict(enumerate(triangles.tolist()))
        self._around: dict[int, set[int]] = defaultdict(set)  # faces at a vertex
        for face, corners in self._faces.items():
            for vertex in corners:
                self._around[vertex].add(face)
        a, b, c = (vertices[triangles[:, k]] for k in range(3))
        areas = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2
        normals = face_normals(vertices, triangles)
        planes = np.concatenate([normals, -np.einsum("ij,ij->i", normals, a)[:, None]], axis=1)
        squares = areas[:, None, None] * planes[:, :, None] * planes[:, None, :]
        self._quadrics = np.zeros((len(vertices), 4, 4))
        self._areas = np.zeros(len(vertices))
        for k in range(3):
            np.add.at(self._quadrics, triangles[:, k], squares)
            np.add.at(self._areas, triangles[:, k], areas)
        self._add_boundary(vertices, triangles, normals)
        self._version = np.zeros(len(vertices), int)
        self._heap: list[tuple[float, int, int, int, int, tuple[float, ...]]] = []
        for vertex in range(len(vertices)):
            self._push(vertex, {other for other in self._neighbours(vertex) if other > vertex})

    def _add_boundary(self, vertices: Array, triangles: NDArray[np.int64], normals: Array) -> None:
        """Planes through boundary edges, those of one triangle, perpendicular to it. Each counts as a square on it."""
        edges = np.concatenate([triangles, np.roll(triangles, -1, axis=1)], axis=0).reshape(2, -1).T
        _, index, counts = np.unique(np.sort(edges, axis=1), axis=0, return_inverse=True, return_counts=True)
        boundary = np.flatnonzero(counts[index.reshape(-1)] == 1)
        starts, ends = edges[boundary].T
        along = vertices[ends] - vertices[starts]
        lengths = np.linalg.norm(along, axis=1)
        outwards = np.cross(along, normals[boundary // 3]) / np.maximum(lengths, 1e-30)[:, None]
        planes = np.concatenate([outwards, -np.einsum("ij,ij->i", outwards, vertices[starts])[:, None]], axis=1)
        squares = (lengths**2)[:, None, None] * planes[:, :, None] * planes[:, None, :]
        for corners in (starts, ends):
            np.add.at(self._quadrics, corners, squares)

    def triangles(self) -> NDArray[np.int64]:
        return np.array(list(self._faces.values()), np.int64)

    def reduce(self, count: int) -> bool:
        """Collapse until so many triangles are left; False when no edge can collapse any more."""
        while len(self._faces) > count:
            if not self._heap:
                return False
            cost, a, b, version_a, version_b, place = heapq.heappop(self._heap)
            if version_a != self._version[a] or version_b != self._version[b]:
                continue  # one end has moved since
            if self._may_collapse(a, b, np.array(place)):
                self._merge(a, b, np.array(place))
                self.error = max(self.error, cost**0.5)
        return True

    def _neighbours(self, vertex: int) -> set[int]:
        return {other for face in self._around[vertex] for other in self._faces[face]} - {vertex}

    def _push(self, a: int, others: set[int]) -> None:
        for b in sorted(others):
            quadric = self._quadrics[a] + self._quadrics[b]
            place = (self.vertices[a] + self.vertices[b]) / 2
            # The best place; where the surface is flat or a straight edge there are many, the one nearest the middle.
            values, axes = np.linalg.eigh(quadric[:3, :3])
            strong = values > 1e-3 * values[-1]
            slope = axes.T @ (quadric[:3, :3] @ place + quadric[:3, 3])
            place = place - axes @ np.where(strong, slope / np.where(strong, values, 1.0), 0.0)
            point = np.append(place, 1.0)
            cost = max(float(point @ quadric @ point), 0.0) / (self._areas[a] + self._areas[b])
            entry = (cost, a, b, int(self._version[a]), int(self._version[b]), tuple(place.tolist()))
            heapq.heappush(self._heap, entry)

    def _may_collapse(self, a: int, b: int, place: Array) -> bool:
        shared = self._around[a] & self._around[b]
        if not shared or len(self._neighbours(a) & self._neighbours(b)) > len(shared):
            return False  # would pinch the surface
        rest = np.array([self._faces[face] for face in sorted(self._around[a] ^ self._around[b])])
        if not len(rest):
            return False
        before = self.vertices[rest]
        after = np.where(np.isin(rest, (a, b))[:, :, None], place, before)
        old = np.cross(before[:, 1] - before[:, 0], before[:, 2] - before[:, 0])
        new = np.cross(after[:, 1] - after[:, 0], after[:, 2] - after[:, 0])
        turned = np.einsum("ij,ij->i", old, new)
        return bool((turned > 0.2 * np.linalg.norm(old, axis=1) * np.linalg.norm(new, axis=1)).all())

    def _merge(self, a: int, b: int, place: Array) -> None:
        for face in self._around[a] & self._around[b]:
            for vertex in self._faces.pop(face):
                self._around[vertex].discard(face)
        for face in self._around.pop(b):
            self._faces[face] = [a if vertex == b else vertex for vertex in self._faces[face]]
            self._around[a].add(face)
        self.vertices[a] = place
        self._quadrics[a] += self._quadrics[b]
        self._areas[a] += self._areas[b]
        self._version[a] += 1
        self._version[b] = -1
        self._push(a, self._neighbours(a))
