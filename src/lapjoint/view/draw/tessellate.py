"""Tessellation: shapes to surfaces of triangles, in several levels of detail where a shape is round."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ...arrays import rotation
from ...errors import LapjointError
from ...scene import Box, Capsule, Compound, Cone, ConvexHull, Cylinder, Ellipsoid, HeightField, Sphere, TriangleMesh
from ...scene.shapes import StaticShape, hull_faces
from .hidden import without_hidden
from .simplify import simplify
from .surface import Kind, Surface, with_normals

Array = NDArray[np.float64]

TOLERANCE = 0.4
"""How far an outline may be from the truth [pixels]."""
_DISC_SIZE = 24.0
_SPHERE_CUTS = (6, 9, 14)
_TUBE_SEGMENTS = (12, 20, 36, 72)


@dataclass(frozen=True)
class Model:
    """How a shape is drawn: one or more surfaces, coarse to fine, scaled by `scale`. Models with equal keys share
    their surfaces, so a thousand spheres of a thousand radii are one model."""

    key: Hashable
    levels: tuple[Surface, ...]
    sizes: tuple[float, ...]
    """Largest bounding radius on the screen [pixels] for which each level is fine enough; the last one is inf."""
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)


def model_of(shape: StaticShape) -> Model:
    """The model of any shape but a plane, which has no end."""
    if isinstance(shape, Sphere):
        # Discs are far quicker to draw, and exact unless the sphere cuts into something: that shows only when large.
        levels = [disc(), *(sphere(cuts) for cuts in _SPHERE_CUTS)]
        r = shape.radius
        return _levels("sphere", levels, [_DISC_SIZE, *_sphere_sizes()], (r, r, r))
    if isinstance(shape, Box):
        return Model("box", (box(),), (np.inf,), shape.size)
    sizes = [TOLERANCE / (1 - np.cos(np.pi / segments)) for segments in _TUBE_SEGMENTS]
    if isinstance(shape, Cylinder):
        scale = (shape.radius, shape.radius, shape.length)
        return _levels("cylinder", [cylinder(segments) for segments in _TUBE_SEGMENTS], sizes, scale)
    if isinstance(shape, Cone):
        scale = (shape.radius, shape.radius, shape.length)
        return _levels("cone", [cone(segments) for segments in _TUBE_SEGMENTS], sizes, scale)
    if isinstance(shape, Ellipsoid):
        return _levels(shape, [ellipsoid(shape, cuts) for cuts in _SPHERE_CUTS], _sphere_sizes())
    if isinstance(shape, Capsule):
        r = shape.radius
        tubes = [capsule(shape.length / r, segments) for segments in _TUBE_SEGMENTS]
        return _levels(("capsule", shape.length / r), tubes, sizes, (r, r, r))
    if isinstance(shape, Compound):
        return Model(shape, (compound(shape),), (np.inf,))
    if isinstance(shape, ConvexHull):
        return Model(shape, (hull(shape.points),), (np.inf,))
    if isinstance(shape, (TriangleMesh, HeightField)):
        whole = with_normals(shape.vertices, shape.triangles.astype(np.int64))
        if len(whole.triangles) == 0:
            raise LapjointError("TriangleMesh: no triangle has an area, nothing to draw")
        return Model(shape, (replace(whole, kind=Kind.OPEN),), (np.inf,))
    raise LapjointError(f"a {type(shape).__name__} has no surface to tessellate")


def _sphere_sizes() -> list[float]:
    return [float(TOLERANCE / (1 - np.cos(np.radians(31.72) / cuts))) for cuts in _SPHERE_CUTS]


def _levels(
    key: Hashable, levels: list[Surface], sizes: list[float], scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
) -> Model:
    return Model(key, tuple(levels), (*map(float, sizes[:-1]), np.inf), scale)


def with_coarser_levels(model: Model) -> Model:
    """A model of one surface with coarser ones before it, for when a body is small on the screen."""
    whole = model.levels[0]
    radius = float(np.linalg.norm(whole.vertices, axis=1).max())
    count = len(whole.triangles)
    levels = simplify(whole, (count // 3, count // 8, count // 20, count // 50))[::-1]
    sizes = [TOLERANCE * radius / max(error, 1e-9 * radius) for _, error in levels]
    return replace(model, levels=(*(surface for surface, _ in levels), whole), sizes=(*map(float, sizes), np.inf))


@cache
def disc() -> Surface:
    """The square around the disc that stands for a sphere."""
    corners = np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])
    return Surface(corners, np.tile([0.0, 0.0, 1.0], (4, 1)), np.array([[0, 1, 2], [0, 2, 3]]), Kind.DISC)


@cache
def sphere(cuts: int) -> Surface:
    """A sphere of radius 1: an icosahedron with every edge cut into `cuts` pieces, pushed out."""
    golden = (1 + 5**0.5) / 2
    corners = np.array([[s, t * golden, 0.0] for s in (-1, 1) for t in (-1, 1)])
    corners = np.concatenate([np.roll(corners, k, axis=1) for k in range(3)]) / np.hypot(1, golden)
    corners, faces = hull_faces(corners)
    # Barycentric coordinates of the points of one cut triangle, and its small triangles.
    rows = [(i, j) for i in range(cuts + 1) for j in range(cuts + 1 - i)]
    number = {place: k for k, place in enumerate(rows)}
    ups = [(number[i, j], number[i + 1, j], number[i, j + 1]) for i, j in rows if i + j < cuts]
    downs = [(number[i + 1, j], number[i + 1, j + 1], number[i, j + 1]) for i, j in rows if i + j < cuts - 1]
    steps = np.array([(cuts - i - j, i, j) for i, j in rows]) / cuts
    points = np.einsum("pk,fkx->fpx", steps, corners[faces])
    triangles = np.array(ups + downs)[None] + len(rows) * np.arange(len(faces))[:, None, None]
    points = points.reshape(-1, 3) / np.linalg.norm(points.reshape(-1, 3), axis=1, keepdims=True)
    surface = with_normals(points, triangles.reshape(-1, 3), crease=np.pi)
    normals = surface.vertices / np.linalg.norm(surface.vertices, axis=1, keepdims=True)
    return Surface(surface.vertices, normals, surface.triangles)


@cache
def box() -> Surface:
    """A box with edges of length 1."""
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    return hull(corners)


@cache
def cylinder(segments: int) -> Surface:
    """A cylinder of radius 1 and length 1."""
    angles = 2 * np.pi * np.arange(segments) / segments
    ring = np.stack([np.cos(angles), np.sin(angles), np.full(segments, 0.5)], axis=1)
    return hull(np.concatenate([ring, ring * [1, 1, -1]]))


@cache
def cone(segments: int) -> Surface:
    """A cone of radius 1 and length 1, about its centre of mass."""
    angles = 2 * np.pi * np.arange(segments) / segments
    tilt = np.hypot(1.0, 1.0)
    rim = np.stack([np.cos(angles), np.sin(angles), np.full(segments, -0.25)], axis=1)
    # Every side of the tip has its own normal, half way between those of its rim.
    middle = angles + np.pi / segments
    out = [np.stack([np.cos(turn), np.sin(turn), np.ones(segments)], axis=1) / tilt for turn in (angles, middle)]
    tips = np.tile([0.0, 0.0, 0.75], (segments, 1))
    side, base = np.arange(segments), 2 * segments + np.arange(segments)
    triangles = [
        np.stack([side, np.roll(side, -1), segments + side], axis=1),
        np.stack([base[:1].repeat(segments - 2), base[2:], base[1:-1]], axis=1),
    ]
    down = np.tile([0.0, 0.0, -1.0], (segments, 1))
    return Surface(np.concatenate([rim, tips, rim]), np.concatenate([*out, down]), np.concatenate(triangles))


def ellipsoid(shape: Ellipsoid, cuts: int) -> Surface:
    """A sphere that is stretched; its normals are not stretched but turned."""
    ball, radii = sphere(cuts), np.asarray(shape.radii)
    normals = ball.normals / radii
    return Surface(ball.vertices * radii, normals / np.linalg.norm(normals, axis=1, keepdims=True), ball.triangles)


def capsule(length: float, segments: int) -> Surface:
    """A capsule of radius 1."""
    turn = 2 * np.pi * np.arange(segments) / segments
    climb = np.linspace(0, np.pi / 2, segments // 4 + 1)
    flat = np.cos(climb)[:, None, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    normals = np.concatenate([flat, np.broadcast_to(np.sin(climb)[:, None, None], (*flat.shape[:2], 1))], axis=2)
    normals = np.concatenate([(normals * [1, 1, -1])[::-1], normals])  # from the south pole to the north pole
    rings = len(normals)
    middle = np.where(np.arange(rings) < rings // 2, -0.5, 0.5) * length
    vertices = normals + middle[:, None, None] * np.array([0.0, 0.0, 1.0])
    grid = np.arange(rings * segments).reshape(rings, segments)
    a, b = grid[:-1], np.roll(grid, -1, axis=1)[:-1]
    c, d = grid[1:], np.roll(grid, -1, axis=1)[1:]
    triangles = np.concatenate([np.stack([a, b, d], axis=-1), np.stack([a, d, c], axis=-1)]).reshape(-1, 3)
    return Surface(vertices.reshape(-1, 3), normals.reshape(-1, 3), triangles)


def hull(points: Array) -> Surface:
    """The convex hull of points."""
    vertices, faces = hull_faces(points)
    return with_normals(vertices, faces.astype(np.int64))


def compound(shape: Compound) -> Surface:
    """All parts as one surface. Triangles hidden inside another part are left out, so that parts which touch along a
    whole side, like the pieces of a ring, look like one piece without a seam."""
    parts = []
    for part in shape.parts:
        model = model_of(part.shape)
        own = model.levels[len(model.levels) // 2]  # never a sphere's disc
        turn = rotation.to_matrix(part.quaternion)
        parts.append(Surface((own.vertices * model.scale) @ turn.T + part.position, own.normals, own.triangles))
    whole = without_hidden(parts)
    return with_normals(whole.vertices, whole.triangles)
