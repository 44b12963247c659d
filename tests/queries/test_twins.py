"""Rays and points against single shapes: formulas, and the native code against its readable twin on random shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from lapjoint import Box, Capsule, Cone, ConvexHull, Cylinder, Ellipsoid, Scene, Sphere, TriangleMesh
from lapjoint.arrays import rotation
from lapjoint.queries import NO_BODY, BodyTree
from lapjoint.scene.scene import ALL_GROUPS
from lapjoint.scene.shapes import StaticShape
from query_support import random_shape
from reference import queries as reference

Array = NDArray[np.float64]

KINDS = ["sphere", "box", "capsule", "cylinder", "ellipsoid", "cone", "hull", "flat hull", "compound", "plane", "mesh"]


def tree_of(shape: StaticShape, place: ArrayLike = (0, 0, 0, 1, 0, 0, 0)) -> BodyTree:
    scene, pose = Scene("one"), np.asarray(place, float)
    scene.add_static(shape, pose[:3], pose[3:])
    tree = BodyTree(scene)
    tree.set_statics(pose[None])
    return tree


def cast(tree: BodyTree, origins: ArrayLike, directions: ArrayLike, reach: Any = np.inf) -> tuple[Any, Array, Array]:
    o, d = np.atleast_2d(np.asarray(origins, float)), np.atleast_2d(np.asarray(directions, float))
    d = d / np.linalg.norm(d, axis=1)[:, None]
    return tree.cast_closest(o, d, np.broadcast_to(np.asarray(reach, float), len(o)), ALL_GROUPS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32 - 1))
def test_rays_are_those_of_the_twin(kind: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    shape = random_shape(kind, random)
    turn = random.normal(size=4)
    turn /= np.linalg.norm(turn)
    place = random.uniform(-3, 3, 3)
    origins = random.uniform(-3, 3, (60, 3))  # in the shape's frame, some of them inside
    directions = random.normal(size=(60, 3)) - 0.5 * origins
    directions[:12] = np.sign(directions[:12]) * np.eye(3)[np.arange(12) % 3]  # along its axes
    origins[:4] = np.rint(origins[:4])
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    distance, normal = reference.cast(shape, origins, directions)
    found = cast(tree_of(shape), origins, directions)
    # What touches within rounding may be seen by one and missed by the other.
    same = np.isclose(found[1], distance, rtol=0, atol=1e-9)
    assert (~same).sum() <= (1 if kind in ("hull", "flat hull", "mesh") else 0)
    np.testing.assert_array_equal(found[0][same], np.where(np.isfinite(distance[same]), -1, NO_BODY))
    off = np.abs(found[2][same] - normal[same]).max(axis=1) > 1e-8
    assert off.sum() <= 1  # at an edge, both sides are right
    world = tree_of(shape, [*place, *turn])
    moved = cast(world, rotation.rotate(turn, origins) + place, rotation.rotate(turn, directions))
    same &= np.isclose(moved[1], distance, rtol=0, atol=1e-8)
    assert (~same).sum() <= 14  # those along axes and on faces are moved by rounding
    np.testing.assert_allclose(moved[1][12:][same[12:]], distance[12:][same[12:]], atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32 - 1))
def test_nearest_points_are_those_of_the_twin(kind: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    shape = random_shape(kind, random)
    points = random.uniform(-2, 2, (40, 3))
    points[:5] *= 0.1
    points[0] = 0
    distance, on, _ = reference.nearest(shape, points)
    body, away, point, out = tree_of(shape).nearest_bodies(points, np.full(40, np.inf), ALL_GROUPS)
    assert (body == -1).all()
    np.testing.assert_allclose(away, distance, atol=1e-9)
    # Where two places are as near as each other, either is right.
    np.testing.assert_allclose(np.linalg.norm(points - point, axis=1), np.abs(distance), atol=1e-9)
    np.testing.assert_allclose(point + away[:, None] * out, points, atol=1e-8)
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), 1)
    differ = np.abs(point - on).max(axis=1) > 1e-7
    assert differ.sum() <= 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_ray_ends_on_the_surface(kind: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    shape = random_shape(kind, random)
    origins = random.uniform(-3, 3, (30, 3))
    directions = random.normal(size=(30, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    _, distance, normal = cast(tree_of(shape), origins, directions)
    inside = reference.nearest(shape, origins)[0] < 0
    hit = np.isfinite(distance) & ~inside
    points = origins[hit] + distance[hit, None] * directions[hit]
    np.testing.assert_allclose(reference.nearest(shape, points)[0], 0, atol=1e-8)
    assert (np.einsum("ij,ij->i", normal[hit], directions[hit]) <= 1e-12).all()
    np.testing.assert_array_equal(distance[inside], 0)
    np.testing.assert_allclose(normal[inside], -directions[inside], rtol=1e-12)


CORNERS = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3), axis=-1).reshape(-1, 3)
SOLIDS = [Sphere(1), Box((2, 2, 2)), Capsule(1, 2), Cylinder(1, 2), Ellipsoid((1, 1, 2)), ConvexHull(CORNERS)]


@pytest.mark.parametrize("shape", SOLIDS, ids=lambda shape: type(shape).__name__)
def test_what_happens_at_the_surface(shape: StaticShape) -> None:
    """All of them reach from -1 to 1 along x."""
    tree = tree_of(shape)
    x = [1.0, 0.0, 0.0]
    body, distance, normal = cast(tree, [-3, 0, 0], x)
    assert (body[0], distance[0], *normal[0]) == (-1, 2, -1, 0, 0)
    assert cast(tree, [0.5, 0, 0], x)[1][0] == 0  # from inside
    assert cast(tree, [-1, 0, 0], x)[1][0] == 0  # from the surface, inwards
    assert cast(tree, [1, 0, 0], x)[0][0] == NO_BODY  # and outwards
    assert cast(tree, [2, 0, 0], x)[0][0] == NO_BODY  # behind
    assert cast(tree, [-3, 0, 0], x, reach=2)[0][0] == -1  # just reaches
    assert cast(tree, [-3, 0, 0], x, reach=1.999)[0][0] == NO_BODY
    assert cast(tree, [-3, 1, 0], x)[0][0] == -1  # grazes
    assert cast(tree, [-3, 1 + 1e-9, 0], x)[0][0] == NO_BODY
    assert cast(tree, [0, 0, 0], x, reach=0)[0][0] == -1


def test_a_mesh_is_hit_from_both_sides_and_along_its_edges() -> None:
    mesh = TriangleMesh([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]])
    tree = tree_of(mesh)
    for z in (1.0, -1.0):
        diagonal = np.linspace(0, 1, 101)
        origins = np.stack([diagonal, diagonal, np.full(101, z)], axis=1)
        body, distance, normal = cast(tree, origins, [[0, 0, -z]] * 101)
        assert (body == -1).all()
        np.testing.assert_array_equal(distance, 1)
        np.testing.assert_array_equal(normal, [[0, 0, z]] * 101)
    assert cast(tree, [0.5, 0.5, 1], [0, 0, 1])[0][0] == NO_BODY


def test_far_away_and_small() -> None:
    """A small ball far from the ray's origin keeps its digits."""
    _, distance, _ = cast(tree_of(Sphere(1e-3), [0, 0, 0, 1, 0, 0, 0]), [-1e4, 0.5e-3, 0], [1, 0, 0])
    np.testing.assert_allclose(1e4 - distance, np.sqrt(0.75) * 1e-3, rtol=1e-8)


def test_points_in_planes_of_symmetry() -> None:
    """Within an ellipsoid, near its middle, the nearest point of the surface is along the shortest axis."""
    ellipsoid = tree_of(Ellipsoid((3.0, 2.0, 1.0)))
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 0.5, 0], [2.9, 0, 0], [4, 0, 0], [0, 0, 0.5], [0, 3, 0]], float)
    _, away, on, _ = ellipsoid.nearest_bodies(points, np.full(len(points), np.inf), ALL_GROUPS)
    np.testing.assert_allclose(away[[0, 3, 4, 5, 6]], [-1, -0.1, 1, -0.5, 1], atol=1e-12)
    np.testing.assert_allclose(np.square(on / (3.0, 2.0, 1.0)).sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(away[1], -np.sqrt(1 - 1 / 8), rtol=1e-12)  # 1 - x^2 / (a^2 - c^2)
    np.testing.assert_allclose(away[2], -np.sqrt(1 - 0.25 / 3), rtol=1e-12)


def test_a_cone_at_its_tip_base_and_rim() -> None:
    cone = tree_of(Cone(1.0, 4.0))  # from -1 to 3
    _, distance, normal = cast(
        cone, [[0, 0, 5], [0, 0, -3], [-3, 0, -0.5], [0, 0, 5]], [[0, 0, -1], [0, 0, 1], [1, 0, 0], [0, 0, 1]]
    )
    np.testing.assert_allclose(distance[:3], [2, 2, 3 - 3.5 / 4], atol=1e-12)
    np.testing.assert_allclose(normal[1], (0, 0, -1))
    assert np.isinf(distance[3])
    _, away, _, _ = cone.nearest_bodies(
        np.array([[0, 0, 4.0], [0, 0, -1.5], [2, 0, -1.0]]), np.full(3, np.inf), ALL_GROUPS
    )
    np.testing.assert_allclose(away, (1.0, 0.5, 1.0), atol=1e-12)
