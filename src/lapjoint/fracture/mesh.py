"""Cut a closed mesh, which may be concave, through manifold3d (the extra `lapjoint[fracture]`).

A cell of a concave solid may be in several pieces, and these may be concave themselves. Engines have convex shapes: a
piece that is nearly convex becomes its hull, any other a compound of hulls. A cell is on one side of each plane between
seeds, and so is its hull: hulls of different cells do not overlap.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import LapjointError
from ..scene import Compound, ConvexHull, TriangleMesh
from ..scene.meshes import hull_parts
from .cells import cells
from .outline import bounds, check_inside
from .pieces import Array, Piece, Pieces, collect, directions_in, polygon_moments
from .sections import Section, section

NEARLY_CONVEX = 1.02
"""Volume of hulls over that of the piece that is in them: a piece is cut until it is no more."""
MOST_PARTS = 32
"""Of one piece. Every part makes contacts dearer."""
DUST = 1e-12
"""Share of the solid's volume: what is smaller is rounding."""


class Surface(NamedTuple):
    """Of a solid; triangles are counterclockwise seen from outside."""

    vertices: Array
    triangles: NDArray[np.int64]

    @property
    def corners(self) -> Array:
        """(n, 3, 3): of each triangle."""
        return np.asarray(self.vertices[self.triangles])

    @property
    def normals(self) -> Array:
        """Twice the area long."""
        a, b, c = self.corners.transpose(1, 0, 2)
        return np.cross(b - a, c - a)


def cut_mesh(mesh: TriangleMesh, seeds: Array, near: float) -> Pieces:
    """Cut a closed mesh into the Voronoi cells of seeds."""
    solid = _solid_of(mesh)
    check_inside(mesh, seeds, near)
    (low, high), axes = bounds(mesh), np.eye(3)
    room = np.concatenate([np.column_stack([axes, low - 2 * high]), np.column_stack([-axes, 2 * low - high])])
    hull_of, least = type(solid).hull_points, DUST * solid.volume()
    pieces: list[Piece] = []
    surfaces: list[Surface] = []
    found = list(cells(seeds, room, near))
    numbers: list[list[int]] = [[] for _ in found]  # pieces of each cell
    for cell in found:
        for part in _parts_of(solid ^ hull_of(cell.corners), least):
            shape = _shape_of(part)
            if shape is not None:
                numbers[cell.seed].append(len(pieces))
                pieces.append(Piece(shape, part.volume(), cell.seed))
                surfaces.append(_surface_of(part))
    faces: dict[tuple[int, int], Section] = {}
    for cell in found:
        for other, plane in zip(cell.others.tolist(), cell.planes, strict=True):
            for a, b in product(numbers[cell.seed], numbers[other] if other > cell.seed else []):
                span = float(np.linalg.norm(seeds[other] - seeds[cell.seed]))
                face = _common_face(surfaces[a], surfaces[b], plane, near, span)
                if face is not None:
                    faces[a, b] = face
    return collect(pieces, faces)


def _solid_of(mesh: TriangleMesh) -> Any:
    """The mesh as manifold3d has it."""
    solid = _manifold(mesh.vertices, mesh.triangles)
    if solid.status().name != "NoError":
        raise LapjointError(
            f"cut: the mesh bounds no solid ({solid.status().name}), expected a closed surface, with a triangle on "
            "each side of every edge"
        )
    if not solid.volume() > 0:
        raise LapjointError(
            f"cut: the mesh has a volume of {solid.volume():.3g} m^3, expected triangles that are counterclockwise "
            "seen from outside"
        )
    return solid


def _manifold(vertices: Array, triangles: NDArray[Any]) -> Any:
    try:
        import manifold3d
    except ImportError:
        raise LapjointError("cutting a mesh needs manifold3d: pip install 'lapjoint[fracture]'") from None
    mesh = manifold3d.Mesh64(np.array(vertices), np.array(triangles, np.uint64))
    mesh.merge()  # vertices in one place are one
    return manifold3d.Manifold(mesh)


def _surface_of(solid: Any) -> Surface:
    mesh = solid.to_mesh64()
    return Surface(np.array(mesh.vert_properties[:, :3]), mesh.tri_verts.astype(np.int64))


def _parts_of(solid: Any, least: float) -> list[Any]:
    """What does not hang together, each by itself, if it has a volume of more than `least`."""
    surfaces = solid.decompose()
    parts = [part for part in surfaces if part.volume() > least]
    for cavity in (part for part in surfaces if part.volume() < 0):  # a surface by itself, and inside out
        surface = _surface_of(cavity)
        filled = _manifold(surface.vertices, surface.triangles[:, ::-1])
        parts = [part - filled for part in parts]  # of those that it is not in, nothing
    return parts


# ---- shapes ----------------------------------------------------------------------------------------------------------


def _shape_of(solid: Any) -> ConvexHull | Compound | None:
    """A solid as its hull, or as those of its parts: what is least convex is cut in two, until all hulls together have
    NEARLY_CONVEX times its volume at most, or there are MOST_PARTS. None if it is too thin for a volume."""
    parts, excess = [solid], [_excess(solid)]
    while sum(excess) > (NEARLY_CONVEX - 1) * solid.volume() and max(excess) > 0 and len(parts) < MOST_PARTS:
        worst = int(np.argmax(excess))
        halves = _halves(parts[worst])
        if len(halves) < 2:
            excess[worst] = 0.0  # it cannot be cut
            continue
        parts[worst : worst + 1] = halves
        excess[worst : worst + 1] = map(_excess, halves)
    hulls = [hull for part in parts for hull in hull_parts(_surface_of(part.hull()).vertices)]
    if len(hulls) != 1:
        return Compound(tuple(hulls)) if hulls else None
    assert isinstance(hulls[0].shape, ConvexHull)
    return hulls[0].shape


def _excess(solid: Any) -> float:
    """By how much its hull is larger [m^3]."""
    return float(solid.hull().volume() - solid.volume())


def _halves(solid: Any) -> list[Any]:
    """A solid cut by a plane through the edge where it is least convex, which then is so no more: one that goes far in,
    is long, and has a large angle between its sides. The plane is half way between these."""
    from scipy.spatial import ConvexHull as Qhull

    surface = _surface_of(solid)
    edges, normals = _edges_of(surface)
    ends = surface.vertices[edges[:, :2]]
    along = ends[:, 1] - ends[:, 0]
    outward = normals.sum(axis=1)
    turn = np.einsum("ij,ij->i", np.cross(normals[:, 0], normals[:, 1]), along)  # length times sine, less than 0 inward
    planes = Qhull(surface.vertices).equations
    depth = -(ends.mean(axis=1) @ planes[:, :3].T + planes[:, 3]).max(axis=1)
    worth = np.where((turn < 0) & (np.linalg.norm(outward, axis=1) > 1e-3), -turn * depth, 0.0)
    edge = int(np.argmax(worth))
    if not worth[edge] > 0:
        return [solid]
    normal = np.cross(along[edge], outward[edge])
    normal /= np.linalg.norm(normal)
    cut = solid.split_by_plane(normal, float(normal @ ends[edge, 0]))
    return [part for half in cut for part in _parts_of(half, DUST * solid.volume())]


def _edges_of(surface: Surface) -> tuple[NDArray[np.int64], Array]:
    """Ends of every edge, as the triangle to its left has them, and unit normals left and right, (n, 2, 3)."""
    triangles = surface.triangles
    ends = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    owner = np.tile(np.arange(len(triangles)), 3)
    forth = ends[:, 0] < ends[:, 1]
    left, right = np.flatnonzero(forth), np.flatnonzero(~forth)
    left = left[np.lexsort(ends[left].T)]
    right = right[np.lexsort(ends[right, ::-1].T)]
    unit = surface.normals / np.maximum(np.linalg.norm(surface.normals, axis=1, keepdims=True), 1e-300)
    return ends[left], np.stack([unit[owner[left]], unit[owner[right]]], axis=1)


# ---- faces -----------------------------------------------------------------------------------------------------------


def _common_face(first: Surface, second: Surface, plane: Array, near: float, span: float) -> Section | None:
    """What two pieces on both sides of a plane share of it; None if that is nothing."""
    import manifold3d

    across, size = directions_in(plane[:3]), near / 1e-9
    sections = []
    for surface in (first, second):
        is_on = (np.abs(surface.vertices @ plane[:3] + plane[3]) < 1e3 * near)[surface.triangles].all(axis=1)
        flat = (
            surface.corners[is_on] @ across.T / size
        )  # manifold3d rounds what is flat to some digits behind the point
        sections.append(manifold3d.CrossSection(list(flat), manifold3d.FillRule.NonZero))
    polygons = [np.asarray(one) for one in (sections[0] ^ sections[1]).to_polygons()]
    moments = [polygon_moments(one) for one in polygons]
    area = sum(one[0] for one in moments)
    if not area > 0:
        return None
    middle = size * sum(one[1] for one in moments) / (6 * area)
    corners = [size * one - middle for one in polygons]
    return section(middle @ across - plane[3] * plane[:3], plane[:3], across, corners, span)
