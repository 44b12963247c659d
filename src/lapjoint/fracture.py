"""Fracture: a convex shape cut into pieces, and the bonds between them that break.

    pieces = fracture.cut(Box((2, 0.02, 2)), fracture.seeds_around(Box((2, 0.02, 2)), (0, 0, 0), 150))
    bodies, bonds = fracture.add_pieces(scene, pieces, strength=3e5, position=(0, 0, 1))

A piece is the Voronoi cell of a seed: all of the shape that is nearer to it than to any other. Pieces that share a face
are held together by a fixed joint in the middle of it, which bears a strength times the face's area. docs/breaking.md
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import rotation
from .arrays.checks import as_rows, is_finite, table
from .errors import LapjointError
from .scene import Box, Breaks, ConvexHull, Fixed, Material, Scene
from .scene.shapes import bounding_box, mass_properties

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

NEAR = 1e-9
"""Share of the shape's size: what is nearer to a plane than this is on it."""
LEAST_FACE = 1e-4
"""Share of a piece's surface: a smaller common face holds nothing."""


@dataclass(frozen=True)
class Pieces:
    """Pieces of a shape, in its frame, and the faces that they share."""

    shapes: tuple[ConvexHull, ...]
    positions: Array
    """(n, 3) their centres of mass."""
    volumes: Array
    """(n,) m^3"""
    bonds: Ids
    """(m, 2) pieces that share a face, the lower number first, ascending."""
    anchors: Array
    """(m, 3) middles of these faces."""
    normals: Array
    """(m, 3) from the first piece to the second."""
    areas: Array
    """(m,) m^2"""

    def __len__(self) -> int:
        return len(self.shapes)


# ---- seeds -----------------------------------------------------------------------------------------------------------


def seeds_uniform(shape: Box | ConvexHull, count: int, seed: int = 0) -> Array:
    """Seeds all over a shape, (count, 3)."""
    low, high = _bounds(shape)
    return _inside(shape, count, seed, lambda rng, size: rng.uniform(low, high, (size, 3)))


def seeds_around(
    shape: Box | ConvexHull, point: ArrayLike, count: int, spread: float | None = None, seed: int = 0
) -> Array:
    """Seeds that are denser near a point of the shape's frame, where something hits it, (count, 3). Half of them are
    within `spread` [m]; a sixth of the shape's largest extent unless given."""
    low, high = _bounds(shape)
    middle = as_rows("point", point, 1, (3,), "seeds_around")[0]
    spread = float((high - low).max()) / 6 if spread is None else spread
    if not (is_finite(spread) and spread > 0):
        raise LapjointError(f"seeds_around: spread is {spread}, expected a positive number")

    def draw(rng: np.random.Generator, size: int) -> Array:
        # Half of a Cauchy distribution's numbers are below its scale, and there are some at any distance.
        distance = spread * np.abs(rng.standard_cauchy(size))
        direction = rng.normal(size=(size, 3)) * (high - low)  # a pane is cut along itself, not through
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        return np.asarray(middle + distance[:, None] * direction)

    return _inside(shape, count, seed, draw)


def _inside(shape: Box | ConvexHull, count: int, seed: int, draw: Callable[[np.random.Generator, int], Array]) -> Array:
    """`count` points inside a shape, of those that `draw` makes."""
    if not isinstance(count, int | np.integer) or count < 1:
        raise LapjointError(f"count of seeds is {count!r}, expected a whole number, at least 1")
    rng, planes, found = np.random.default_rng(seed), _planes(shape), np.empty((0, 3))
    for _ in range(1000):
        points = draw(rng, 4 * int(count))
        is_inside = (points @ planes[:, :3].T + planes[:, 3] < 0).all(axis=1)
        found = np.concatenate([found, points[is_inside]])[:count]
        if len(found) == count:
            return found
    raise LapjointError(f"only {len(found)} of {count} seeds fall into the shape, expected a point inside of it")


# ---- pieces ----------------------------------------------------------------------------------------------------------


def cut(shape: Box | ConvexHull, seeds: ArrayLike) -> Pieces:
    """Cut a shape into the Voronoi cells of seeds, (n, 3) points in its frame. Volumes add up to the shape's."""
    from scipy.spatial import HalfspaceIntersection, QhullError

    planes = _planes(shape)
    points = table("seed", seeds, 3, "cut")
    low, high = _bounds(shape)
    near = NEAR * float(np.linalg.norm(high - low))
    for outside in np.flatnonzero((points @ planes[:, :3].T + planes[:, 3] >= -near).any(axis=1)):
        raise LapjointError(f"cut: seed {outside} at {points[outside]} is not inside the shape")
    neighbours = _neighbours(points, near)
    shapes, positions, volumes = [], [], []
    faces: dict[tuple[int, int], tuple[Array, Array, float]] = {}
    for number, others in enumerate(neighbours):
        apart = points[others] - points[number]
        distance = np.linalg.norm(apart, axis=1)
        normals = apart / distance[:, None]
        middles = (points[others] + points[number]) / 2
        between = np.concatenate([normals, -np.einsum("ij,ij->i", normals, middles)[:, None]], axis=1)
        try:
            corners = HalfspaceIntersection(np.concatenate([planes, between]), points[number]).intersections
        except QhullError:
            raise LapjointError(f"cut: the cell of seed {number} is too thin: two seeds are too close") from None
        corners = corners[np.isfinite(corners).all(axis=1)]
        piece = ConvexHull(corners)
        shapes.append(piece)
        positions.append(piece.centre)
        volumes.append(mass_properties(piece)[0])
        for other, plane in zip(others.tolist(), between, strict=True):
            if other > number and (face := _face(corners, plane, near)) is not None:
                faces[number, other] = face[0], plane[:3], face[1]
    sizes = np.cbrt(volumes)
    kept = [pair for pair, face in faces.items() if face[2] > LEAST_FACE * min(sizes[list(pair)]) ** 2]
    kept.sort()
    return Pieces(
        tuple(shapes),
        np.array(positions),
        np.array(volumes),
        np.array(kept, np.int32).reshape(-1, 2),
        np.array([faces[pair][0] for pair in kept]).reshape(-1, 3),
        np.array([faces[pair][1] for pair in kept]).reshape(-1, 3),
        np.array([faces[pair][2] for pair in kept]),
    )


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


def _face(corners: Array, plane: Array, near: float) -> tuple[Array, float] | None:
    """Middle and area of the polygon that a cell has on a plane; None where it has none."""
    on = corners[np.abs(corners @ plane[:3] + plane[3]) < 1e3 * near]
    if len(on) < 3:
        return None
    middle = on.mean(axis=0)
    across = np.linalg.svd(plane[None, :3])[2][1:]  # two directions in the plane
    flat = (on - middle) @ across.T
    order = np.argsort(np.arctan2(flat[:, 1], flat[:, 0]))
    x, y = flat[order].T
    x2, y2 = np.roll(x, -1), np.roll(y, -1)
    crossed = x * y2 - x2 * y
    area = crossed.sum() / 2
    if area <= 0:
        return None
    centre = np.array([((x + x2) * crossed).sum(), ((y + y2) * crossed).sum()]) / (6 * area)
    return middle + centre @ across, float(area)


def _planes(shape: Box | ConvexHull) -> Array:
    """Half spaces that a shape is the intersection of: a x + b y + c z + d <= 0, one row each."""
    from scipy.spatial import ConvexHull as Qhull

    if isinstance(shape, Box):
        half = np.asarray(shape.size) / 2
        return np.concatenate([np.column_stack([sign * np.eye(3), -half]) for sign in (1, -1)])
    if isinstance(shape, ConvexHull):
        return np.unique(Qhull(shape.points).equations.round(12), axis=0)
    raise LapjointError(f"a {type(shape).__name__} cannot be cut, expected a Box or a ConvexHull")


def _bounds(shape: Box | ConvexHull) -> tuple[Array, Array]:
    _planes(shape)  # refuses what has none
    centre, half = bounding_box(shape)
    return centre - half, centre + half


def bond_strength(area: float, strength: float) -> Breaks:
    """What a bond over a face of this area [m^2] bears: `strength` [N/m^2] times it, and as a moment what brings the
    edge of a square face to this stress."""
    return Breaks(strength * area, strength * area**1.5 / 6)


# ---- into a scene ----------------------------------------------------------------------------------------------------


def add_pieces(
    scene: Scene,
    pieces: Pieces,
    *,
    strength: float,
    position: ArrayLike = (0.0, 0.0, 0.0),
    quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0),
    density: float = 1000.0,
    material: Material | None = None,
    label: int = 0,
) -> tuple[range, range]:
    """Add pieces to a scene, the shape's frame at `position` and `quaternion`, with a bond between any two that share a
    face. Returns the numbers of the bodies and of the joints.

    A bond is a fixed joint, and bears what `bond_strength` has for the face's area and `strength` [N/m^2].
    """
    if not (is_finite(strength) and strength > 0):
        raise LapjointError(f"add_pieces: strength is {strength}, expected a positive number [N/m^2]")
    place = as_rows("position", position, 1, (3,), "add_pieces")[0]
    turn = as_rows("quaternion", quaternion, 1, (4,), "add_pieces")[0]

    def moved(points: Array) -> Array:
        return np.asarray(place + rotation.rotate(np.broadcast_to(turn, (len(points), 4)), points))

    bodies = scene.add_bodies(
        list(pieces.shapes), moved(pieces.positions), turn, density=density, material=material, label=label
    )
    if not len(pieces.bonds):
        return bodies, range(scene.joint_count, scene.joint_count)
    first = bodies[0]
    bears = [bond_strength(area, strength) for area in pieces.areas.tolist()]
    a, b = first + pieces.bonds.astype(np.int64).T
    return bodies, scene.add_joints(Fixed(), b, a, moved(pieces.anchors), breaks=bears)
