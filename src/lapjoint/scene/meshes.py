"""Meshes: shapes from files (OBJ, STL, PLY, GLB and whatever else trimesh reads). Needs the extra `lapjoint[mesh]`.

Three ways to use a file: its convex hull, a surface that never moves, or a body that may be concave and moves, as a
compound of convex parts. Hulls and compounds are centred on their centre of mass; `shape.centre` is where that was,
so a body added at `shape.centre` stands where the file has it.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import LapjointError
from ..system.files import read_file
from ..system.foreign import read_foreign
from .shapes import Compound, ConvexHull, Part, TriangleMesh, hull_faces

Array = NDArray[np.float64]
Triangles = NDArray[np.int32]


def load_hull(path: str | Path, scale: float = 1.0) -> ConvexHull:
    """The convex hull of a file's vertices. `scale` is how many metres a unit of the file has."""
    vertices, _ = _read(Path(path), scale)
    try:
        hull = ConvexHull(vertices)
        corners, _ = hull_faces(hull.points)
        return ConvexHull(corners + hull.centre)
    except LapjointError as error:
        raise LapjointError(f"{path}: {error}") from None


def load_mesh(path: str | Path, scale: float = 1.0) -> TriangleMesh:
    """A file's triangles, as they are, for a static body."""
    vertices, triangles = _read(Path(path), scale)
    return TriangleMesh(vertices, triangles)


def load_compound(
    path: str | Path, scale: float = 1.0, *, max_parts: int = 32, threshold: float = 0.05, seed: int = 0
) -> Compound:
    """A file's solid as convex parts that move as one; options as for `decompose`."""
    vertices, triangles = _read(Path(path), scale)
    try:
        return decompose(vertices, triangles, max_parts=max_parts, threshold=threshold, seed=seed)
    except LapjointError as error:
        raise LapjointError(f"{path}: {error}") from None


def decompose(
    vertices: ArrayLike, triangles: ArrayLike, *, max_parts: int = 32, threshold: float = 0.05, seed: int = 0
) -> Compound:
    """Cut a solid, given by its closed surface, into at most `max_parts` convex parts (CoACD; takes seconds).

    `threshold`, 0.01 to 1, is how concave a part may stay, relative to the solid's size: smaller follows the surface
    more closely, with more parts, which make every contact dearer. Equal input and seed give equal parts.
    """
    if not (np.isfinite(threshold) and 0.01 <= threshold <= 1):
        raise LapjointError(f"decompose: threshold is {threshold}, expected a number from 0.01 to 1")
    if max_parts < 1:
        raise LapjointError(f"decompose: max_parts is {max_parts}, expected at least 1")
    surface = TriangleMesh(np.asarray(vertices, float), np.asarray(triangles, np.int32))
    whole = ConvexHull(surface.vertices)  # refuses a solid without a volume
    _check_closed(surface.triangles)
    try:
        import coacd
    except ImportError:
        raise LapjointError("decomposing a mesh needs coacd: pip install 'lapjoint[mesh]'") from None
    coacd.set_log_level("error")
    solid = coacd.Mesh(surface.vertices, surface.triangles)
    pieces = coacd.run_coacd(solid, threshold=threshold, max_convex_hull=max_parts, seed=seed)
    parts = [part for points, _ in pieces for part in hull_parts(points)]
    return Compound(tuple(parts or [Part(whole, _place(whole.centre))]))


def hull_parts(points: ArrayLike) -> list[Part]:
    """A part where the points are; none for a splinter without a volume."""
    try:
        hull = ConvexHull(np.asarray(points, float))
    except LapjointError:
        return []
    return [Part(hull, _place(hull.centre))]


def _place(centre: Array) -> tuple[float, float, float]:
    return float(centre[0]), float(centre[1]), float(centre[2])


def _check_closed(triangles: Triangles) -> None:
    edges = np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1)
    _, uses = np.unique(edges, axis=0, return_counts=True)
    if (uses == 1).any():
        raise LapjointError(
            f"decompose: the surface is not closed, {(uses == 1).sum()} edges have a triangle on one side only; "
            "expected a solid (fill its holes, or use its convex hull)"
        )


class _Beside:
    """Files that a mesh's file names, for trimesh: beside it, or in folders there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str) -> bytes:
        return read_foreign(self._folder / name, within=self._folder)

    __getitem__ = get


def _read(path: Path, scale: float) -> tuple[Array, Triangles]:
    """Vertices in metres, those in one place made one, and triangles."""
    if not (np.isfinite(scale) and scale > 0):
        raise LapjointError(f"{path}: scale is {scale}, expected a positive number of metres")
    content = read_file(path)
    try:
        import trimesh
    except ImportError:
        raise LapjointError(f"{path}: reading meshes needs trimesh: pip install 'lapjoint[mesh]'") from None
    try:
        kind, beside = path.suffix.removeprefix("."), _Beside(path.absolute().parent)
        mesh = trimesh.load_mesh(io.BytesIO(content), kind, resolver=beside, process=False)
        finite = bool(np.isfinite(mesh.vertices).all())
        if finite:
            mesh.merge_vertices(merge_tex=True, merge_norm=True)
        vertices, triangles = np.array(mesh.vertices, float), np.array(mesh.faces, np.int32)
    except Exception as error:  # readers of many formats fail in many ways
        raise LapjointError(f"{path}: cannot be read as a mesh: {error}") from None
    if not finite:
        raise LapjointError(f"{path}: a vertex is not finite")
    if len(triangles) == 0:
        raise LapjointError(f"{path}: holds no triangles, expected a mesh")
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    if not (np.linalg.norm(np.cross(b - a, c - a), axis=1) > 0).any():
        raise LapjointError(f"{path}: all {len(triangles)} triangles are degenerate, expected one with an area")
    return vertices * scale, triangles
