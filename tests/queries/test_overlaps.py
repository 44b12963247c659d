"""Whether two shapes overlap, of all kinds: a point that is in both, or a direction that separates them, decides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lapjoint import (
    Box,
    Capsule,
    Compound,
    Cone,
    ConvexHull,
    Cylinder,
    Ellipsoid,
    Plane,
    Scene,
    Sphere,
    TriangleMesh,
)
from lapjoint.arrays import rotation
from lapjoint.queries import BodyTree
from lapjoint.scene.scene import ALL_GROUPS
from lapjoint.scene.shapes import MovingShape, StaticShape
from query_support import random_shape
from reference import queries as reference

Array = NDArray[np.float64]
MOVING = ["sphere", "box", "capsule", "cylinder", "ellipsoid", "cone", "hull", "compound"]


def points_of(shape: StaticShape, random: np.random.Generator) -> Array:
    """Some points of a shape."""
    if isinstance(shape, TriangleMesh):
        shares = random.dirichlet(np.ones(3), (len(shape.triangles), 60))
        return np.einsum("tpk,tkj->tpj", shares, shape.vertices[shape.triangles]).reshape(-1, 3)
    if isinstance(shape, Compound):
        parts = [rotation.rotate(p.quaternion, points_of(p.shape, random)) + p.position for p in shape.parts]
        return np.concatenate(parts)
    points = random.uniform(-2.5, 2.5, (4000, 3))
    return points[reference.nearest(shape, points)[0] <= 0]


def heights(shape: StaticShape, directions: Array) -> Array:
    """How far a shape reaches along directions."""
    if isinstance(shape, Sphere):
        return np.full(len(directions), shape.radius)
    if isinstance(shape, Box):
        return np.abs(directions) @ (np.asarray(shape.size) / 2)
    if isinstance(shape, Capsule):
        return np.abs(directions[:, 2]) * shape.length / 2 + shape.radius
    if isinstance(shape, Cylinder):
        return np.abs(directions[:, 2]) * shape.length / 2 + np.hypot(*directions[:, :2].T) * shape.radius
    if isinstance(shape, Ellipsoid):
        return np.linalg.norm(directions * shape.radii, axis=1)
    if isinstance(shape, Cone):
        rim = np.hypot(*directions[:, :2].T) * shape.radius - directions[:, 2] * shape.length / 4
        return np.maximum(rim, directions[:, 2] * 0.75 * shape.length)
    if isinstance(shape, ConvexHull):
        return np.asarray((directions @ shape.points.T).max(axis=1))
    if isinstance(shape, TriangleMesh):
        return np.asarray((directions @ shape.vertices[shape.triangles].reshape(-1, 3).T).max(axis=1))
    if isinstance(shape, Plane):
        return np.where((directions == [0, 0, 1]).all(axis=1), 0.0, np.inf)
    return np.max(
        [
            heights(part.shape, rotation.rotate(rotation.conjugate(part.quaternion), directions))
            + directions @ part.position
            for part in shape.parts
        ],
        axis=0,
    )


def overlaps(a: MovingShape, place: Array, b: StaticShape) -> bool:
    scene = Scene("one")
    scene.add_static(b)
    tree = BodyTree(scene)
    tree.set_statics(np.array([[0.0, 0, 0, 1, 0, 0, 0]]))
    return len(tree.overlapping(a, place[None], ALL_GROUPS)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*MOVING, "mesh", "plane"])
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_common_point_or_a_plane_between_decides(kind: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    a: MovingShape = random_shape(MOVING[seed % len(MOVING)], random)  # type: ignore[assignment]
    b = random_shape(kind, random)
    turn = random.normal(size=4)
    turn /= np.linalg.norm(turn)
    at = random.uniform(-2, 2, 3)
    found = overlaps(a, np.concatenate([at, turn]), b)

    inside = rotation.rotate(turn, points_of(a, random)) + at
    if not isinstance(b, TriangleMesh) and len(inside) and reference.nearest(b, inside)[0].min() < 0:
        assert found
        return
    if isinstance(b, TriangleMesh):
        seen = rotation.rotate(rotation.conjugate(turn), points_of(b, random) - at)
        if reference.nearest(a, seen)[0].min() < 0:
            assert found
            return
    directions = random.normal(size=(3000, 3))
    directions[0] = 0, 0, 1
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    lowest = directions @ at - heights(a, rotation.rotate(rotation.conjugate(turn), -directions))
    if (lowest > heights(b, directions)).any():
        assert not found


@given(seed=st.integers(0, 2**32 - 1), gap=st.sampled_from([-1e-6, 1e-6]), far=st.sampled_from([0.0, 1e4]))
def test_a_millionth_of_a_metre_decides(seed: int, gap: float, far: float) -> None:
    """Two shapes moved along the normal of the surface that is nearest, so that they are apart or not by that much."""
    random = np.random.default_rng(seed)
    kinds = random.permuted([kind for kind in MOVING if kind != "compound"])
    a, b = (random_shape(kind, random) for kind in kinds[:2])
    direction = random.normal(size=3)
    direction /= np.linalg.norm(direction)
    # Along a direction in which the difference of both is farthest away, a plane touches both.
    reach = heights(a, -direction[None])[0] + heights(b, direction[None])[0]
    tip_a, tip_b = (tip(shape, d) for shape, d in ((a, -direction), (b, direction)))
    at = tip_b - tip_a + gap * direction
    np.testing.assert_allclose(at @ direction, reach + gap, atol=1e-9)
    scene = Scene("one")
    scene.add_static(b, (far, far, far))
    tree = BodyTree(scene)
    tree.set_statics(np.array([[far, far, far, 1, 0, 0, 0]]))
    found = tree.overlapping(a, np.array([[*(at + far), 1, 0, 0, 0]]), ALL_GROUPS)  # type: ignore[arg-type]
    assert len(found) == (gap < 0)


def tip(shape: StaticShape, d: Array) -> Array:
    """The point of a shape that is farthest along a direction."""
    if isinstance(shape, Sphere):
        return shape.radius * d
    if isinstance(shape, Box):
        return np.sign(d) * np.asarray(shape.size) / 2
    if isinstance(shape, ConvexHull):
        return np.asarray(shape.points[(shape.points @ d).argmax()])
    if isinstance(shape, Ellipsoid):
        return np.asarray(np.square(shape.radii) * d / np.linalg.norm(shape.radii * d))
    if isinstance(shape, Cone):
        rim = np.array([*shape.radius * d[:2] / np.hypot(*d[:2]), -shape.length / 4])
        top = np.array([0, 0, 0.75 * shape.length])
        return rim if rim @ d > top @ d else top
    assert isinstance(shape, Capsule | Cylinder)
    end = np.array([0, 0, np.sign(d[2]) * shape.length / 2])
    around = d if isinstance(shape, Capsule) else np.array([*d[:2] / np.hypot(*d[:2]), 0])
    return end + shape.radius * around
