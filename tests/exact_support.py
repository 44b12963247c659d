"""Convex polyhedra the slow way, and what an engine with exact shapes finds: shared by its tests."""

from __future__ import annotations

from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from lapjoint import Box, ConvexHull, Engine, Params, Scene
from lapjoint.engines.bullet import BulletEngine

Array = NDArray[np.float64]
IMPULSE = 26
"""The column of a contact point's values in an engine's state that has its impulse."""


def exact_engine(scene: Scene, precision: str = "float32", **params: object) -> BulletEngine:
    """An engine with exact shapes, with all bodies active."""
    engine = BulletEngine(scene, Params.from_options(precision=precision, solver="substeps", **params).resolved(scene))
    engine.activate(np.arange(scene.body_count), scene.states)
    return engine


def rotation(quaternion: Array) -> Array:
    """The matrix of a quaternion w x y z."""
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def turn_to(given: Array, wanted: Array) -> Array:
    """A quaternion that turns the one direction to the other."""
    a, b = np.asarray(given, float), np.asarray(wanted, float)
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    half = a + b
    if np.linalg.norm(half) < 1e-9:
        half = np.array([1.0, 0, 0]) if abs(a[0]) < 0.9 else np.array([0, 1.0, 0])
        return np.array([0.0, *(half - (half @ a) * a)])
    half /= np.linalg.norm(half)
    return np.array([a @ half, *np.cross(a, half)])


class Solid(NamedTuple):
    """A polyhedron: its corners, the normals of its faces, the directions of its edges."""

    corners: Array
    normals: Array
    edges: Array

    @staticmethod
    def of(shape: Box | ConvexHull) -> Solid:
        """Every plane through three corners that has all others on one side is a face; two faces meet in an edge."""
        if isinstance(shape, Box):
            corners = np.array(list(product(*[(-edge / 2, edge / 2) for edge in shape.size])))
        else:
            corners = np.asarray(shape.points)
        size = np.ptp(corners, axis=0).max()
        found: list[Array] = []
        for i, j, k in combinations(range(len(corners)), 3):
            normal = np.cross(corners[j] - corners[i], corners[k] - corners[i])
            length = np.linalg.norm(normal)
            if length < 1e-9 * size**2:
                continue
            away = (corners - corners[i]) @ (normal / length)
            if away.max() < 1e-7 * size:
                found.append(normal / length)
            elif away.min() > -1e-7 * size:
                found.append(-normal / length)
        normals = np.unique(np.round(found, 9), axis=0)
        on = corners @ normals.T > (corners @ normals.T).max(axis=0) - 1e-6 * size
        edges = [corners[j] - corners[i] for i, j in combinations(range(len(corners)), 2) if (on[i] & on[j]).sum() >= 2]
        return Solid(corners, normals, np.array([edge / np.linalg.norm(edge) for edge in edges]))

    def placed(self, state: Array) -> Solid:
        """The same at a body's state."""
        turn = rotation(state[3:7])
        return Solid(self.corners @ turn.T + state[:3], self.normals @ turn.T, self.edges @ turn.T)

    def outside(self, points: Array) -> float:
        """How far the farthest of these points is outside of a face."""
        return float((points @ self.normals.T - (self.corners @ self.normals.T).max(axis=0)).max())


def separation(a: Solid, b: Solid) -> float:
    """The largest over all separating axes: their distance where a face is nearest, minus their depth inside."""
    across = np.cross(a.edges[:, None], b.edges[None]).reshape(-1, 3)
    length = np.linalg.norm(across, axis=1)
    across = across[length > 1e-6] / length[length > 1e-6][:, None]
    axes = np.concatenate([a.normals, -b.normals, across, -across])
    return float(((b.corners @ axes.T).min(axis=0) - (a.corners @ axes.T).max(axis=0)).max())


def clipped(a: Solid, b: Solid, normal: Array) -> float:
    """The least distance from a point of B to a point of A along a normal: below zero, the longest line in both."""
    limits = [(solid.corners @ solid.normals.T).max(axis=0) for solid in (a, b)]
    sides = np.concatenate([np.c_[a.normals, a.normals @ normal], np.c_[b.normals, np.zeros(len(b.normals))]])
    return float(linprog([0, 0, 0, 1], A_ub=sides, b_ub=np.concatenate(limits), bounds=[(None, None)] * 4).x[3])


class Points(NamedTuple):
    """Contact points of bodies 0 and 1 in metres, whichever the manifold has first."""

    on_a: Array
    on_b: Array
    normal: Array
    """From B to A."""
    distance: Array
    impulse: Array


def contact_points(engine: Engine) -> Points:
    """All contact points that an engine of two bodies has."""
    state, unit = engine.state(), engine.params.units.length  # type: ignore[attr-defined]
    values = state.points.astype(float)
    on_b, on_a, normal = values[:, 6:9] * unit, values[:, 9:12] * unit, values[:, 12:15]
    if len(values) and state.point_bodies[0, 0] == 1:
        on_a, on_b, normal = on_b, on_a, -normal
    return Points(on_a, on_b, normal, values[:, 21] * unit, values[:, IMPULSE])


def random_shape(rng: np.random.Generator, kind: str) -> Box | ConvexHull:
    """A shape of about one metre."""
    if kind == "box":
        return Box(tuple(rng.uniform(0.2, 1.5, 3)))
    if kind == "cube":
        return ConvexHull(np.array(list(product(*[(-0.5, 0.5)] * 3))))
    if kind == "tetrahedron":
        return ConvexHull(rng.normal(size=(4, 3)))
    if kind == "plate":
        outline = rng.normal(size=(6, 2))
        return ConvexHull(np.array([(*at, height) for at in outline for height in (0.0, 0.02)]))
    if kind == "needle":
        return ConvexHull(rng.normal(size=(7, 3)) * (0.01, 0.01, 1.5))
    return ConvexHull(rng.normal(size=(rng.integers(5, 12), 3)) * rng.uniform(0.3, 1.0, 3))


KINDS = ("box", "hull", "cube", "tetrahedron", "plate", "needle")


def two_at(rng: np.random.Generator, kinds: tuple[str, str], apart: float) -> tuple[Scene, Solid, Solid]:
    """Two random shapes, turned at random, that separating axes find so far apart, and how they are placed."""
    scene = Scene("two")
    shapes = [random_shape(rng, kind) for kind in kinds]
    turns = rng.normal(size=(2, 4))
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    direction = rng.normal(size=3)
    direction /= np.linalg.norm(direction)
    first, second = (Solid.of(s).placed(np.array([0, 0, 0, *turn])) for s, turn in zip(shapes, turns, strict=True))
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        moved = second._replace(corners=second.corners + middle * direction)
        low, high = (middle, high) if separation(first, moved) < apart else (low, middle)
    scene.add_body(shapes[0], (0, 0, 0), quaternion=tuple(turns[0]))
    scene.add_body(shapes[1], tuple(low * direction), quaternion=tuple(turns[1]))
    return scene, first, second._replace(corners=second.corners + low * direction)
