"""Shapes: what is refused, what they weigh, and where their centre of mass is."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lapjoint import (
    Box,
    Capsule,
    Compound,
    ConvexHull,
    Cylinder,
    LapjointError,
    Part,
    Plane,
    Scene,
    Sphere,
    TriangleMesh,
)
from lapjoint.arrays import rotation as rot
from lapjoint.scene.shapes import bounding_radius, hull_faces, mass_properties

NAN = np.nan
CORNERS = np.array(list(itertools.product((0.0, 1.0), repeat=3)))
lengths = st.floats(0.01, 100.0)

MISTAKES: dict[str, Callable[[], object]] = {
    "Sphere: radius is 0": lambda: Sphere(0),
    "Sphere: radius is -1": lambda: Sphere(-1),
    "Sphere: radius is nan": lambda: Sphere(NAN),
    "Sphere: radius is wide": lambda: Sphere("wide"),  # type: ignore[arg-type]
    "Sphere: radius is None": lambda: Sphere(None),  # type: ignore[arg-type]
    "Box: size is (1, 1), expected three lengths": lambda: Box((1, 1)),  # type: ignore[arg-type]
    "Box: size is 2.0, expected three lengths": lambda: Box(2.0),  # type: ignore[arg-type]
    "Box: size is 0": lambda: Box((1, 0, 1)),
    "Box: size is inf": lambda: Box((1, 1, np.inf)),
    "Box: size is big": lambda: Box("big"),  # type: ignore[arg-type]
    "Capsule: length is 0": lambda: Capsule(1, 0),
    "Capsule: radius is -1": lambda: Capsule(-1, 1),
    "Cylinder: radius is 0": lambda: Cylinder(0, 1),
    "Cylinder: length is nan": lambda: Cylinder(1, NAN),
    "ConvexHull: the 3 points have no volume": lambda: ConvexHull(np.eye(3)),
    "ConvexHull: the 4 points have no volume": lambda: ConvexHull(CORNERS[:4]),
    "degenerate": lambda: ConvexHull(CORNERS * [1, 1, 1e-10]),
    "ConvexHull: points contains a value that is not finite": lambda: ConvexHull(CORNERS + [0, 0, NAN]),
    "ConvexHull: points has shape (3,), expected (n, 3)": lambda: ConvexHull([1, 2, 3]),  # type: ignore[arg-type]
    "ConvexHull: points is not an array of numbers": lambda: ConvexHull("abc"),  # type: ignore[arg-type]
    "Compound: no parts": lambda: Compound(()),
    "Compound: Sphere(radius=1.0) is not a Part": lambda: Compound((Sphere(1),)),  # type: ignore[arg-type]
    "Compound: a part is a Plane, expected a convex shape": lambda: Part(Plane()),  # type: ignore[arg-type]
    "Compound: a part's position is (0, nan, 0)": lambda: Part(Sphere(1), (0, NAN, 0)),
    "Compound: a part's place is here": lambda: Part(Sphere(1), "here"),  # type: ignore[arg-type]
    "Compound: a part's quaternion is (1, 1, 0, 0)": lambda: Part(Sphere(1), quaternion=(1, 1, 0, 0)),
    "Compound: a part's quaternion is (nan": lambda: Part(Sphere(1), quaternion=(NAN, 1, 0, 0)),
    "TriangleMesh: a triangle names vertex 3, but there are 3": lambda: TriangleMesh(np.eye(3), [(0, 1, 3)]),
    "TriangleMesh: a triangle names vertex -1": lambda: TriangleMesh(np.eye(3), [(0, 1, -1)]),
    "TriangleMesh: no triangles": lambda: TriangleMesh(np.eye(3), np.empty((0, 3), np.int32)),
    "TriangleMesh: triangles contains a number that is not whole": lambda: TriangleMesh(np.eye(3), [(0, 1, 1.5)]),
    "TriangleMesh: triangles contains a value": lambda: TriangleMesh(np.eye(3), [(0, 1, NAN)]),
    "TriangleMesh: vertices contains a value": lambda: TriangleMesh(np.eye(3) * NAN, [(0, 1, 2)]),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_an_impossible_shape_is_refused_when_it_is_made(message: str) -> None:
    with pytest.raises(LapjointError) as caught:
        MISTAKES[message]()
    assert message in str(caught.value)


def test_shapes_cannot_be_changed_behind_the_back_of_a_scene() -> None:
    points = CORNERS.copy()
    hull = ConvexHull(points)
    before = hull.points.copy()
    points += 5.0
    np.testing.assert_array_equal(hull.points, before)
    with pytest.raises(ValueError, match="read-only"):
        hull.points[0] = 0.0


def test_equal_shapes_are_one_shape_of_a_scene() -> None:
    triangles = [(0, 1, 2)]
    same = [
        (Sphere(1), Sphere(1.0)),
        (Box((1, 2, 3)), Box(np.array([1.0, 2.0, 3.0]))),  # type: ignore[arg-type]
        (ConvexHull(CORNERS), ConvexHull(CORNERS.copy())),
        (Compound((Part(Sphere(1)),)), Compound([Part(Sphere(1))])),  # type: ignore[arg-type]
        (TriangleMesh(np.eye(3), triangles), TriangleMesh(np.eye(3), triangles)),
    ]
    scene = Scene()
    for a, b in same:
        assert a == b
        assert hash(a) == hash(b)
        scene.add_statics(a, np.zeros((2, 3)))
        scene.add_static(b)
    assert len(scene.shapes) == len(same)


# ---- mass --------------------------------------------------------------------------------------------------------


def inside(shape: object, points: np.ndarray) -> np.ndarray:
    """Which points are within a shape: from its definition, with nothing of its mass in it."""
    x, y, z = points.T
    if isinstance(shape, Sphere):
        return x**2 + y**2 + z**2 <= shape.radius**2
    if isinstance(shape, Box):
        return (np.abs(points) <= np.array(shape.size) / 2).all(axis=1)
    if isinstance(shape, Cylinder):
        return (x**2 + y**2 <= shape.radius**2) & (np.abs(z) <= shape.length / 2)
    if isinstance(shape, Capsule):
        beyond = np.maximum(np.abs(z) - shape.length / 2, 0)
        return x**2 + y**2 + beyond**2 <= shape.radius**2
    if isinstance(shape, ConvexHull):
        corners, faces = hull_faces(shape.points)
        a, b, c = (corners[faces[:, k]] for k in range(3))
        outward = np.cross(b - a, c - a)
        return (points @ outward.T <= (outward * a).sum(axis=1)).all(axis=1)
    raise TypeError


SOLIDS = [
    Sphere(0.7),
    Box((0.5, 1.0, 1.4)),
    Cylinder(0.4, 1.5),
    Capsule(0.4, 0.8),
    ConvexHull(CORNERS @ rot.to_matrix(rot.from_axis_angle((1, 2, 3), 1.0))),
    ConvexHull(np.random.default_rng(6).random((9, 3))),
]


@pytest.mark.slow
@pytest.mark.parametrize("shape", SOLIDS, ids=lambda shape: type(shape).__name__)
def test_volume_centre_and_inertia_are_those_of_the_points_within(shape: Sphere) -> None:
    reach = bounding_radius(shape)
    points = np.random.default_rng(0).uniform(-reach, reach, (400_000, 3))
    within = points[inside(shape, points)]
    volume, inertia = mass_properties(shape)
    assert len(within) / len(points) * (2 * reach) ** 3 == pytest.approx(volume, rel=0.01)
    np.testing.assert_allclose(within.mean(axis=0), 0.0, atol=0.005)
    second = within.T @ within / len(within)
    np.testing.assert_allclose(inertia / volume, np.trace(second) * np.eye(3) - second, atol=0.004)


@given(lengths, lengths)
def test_known_moments_of_inertia(a: float, b: float) -> None:
    """Per unit mass, as they are in every book."""

    def moments(shape: Sphere | Box | Cylinder | Capsule) -> list[float]:
        volume, inertia = mass_properties(shape)
        return list(np.diag(inertia) / volume)

    side = (a**2 + b**2) / 12
    assert moments(Sphere(a)) == pytest.approx([0.4 * a**2] * 3)
    assert moments(Box((a, b, b))) == pytest.approx([b**2 / 6, side, side])
    assert moments(Cylinder(a, b)) == pytest.approx([a**2 / 4 + b**2 / 12] * 2 + [a**2 / 2])
    # A capsule lies between the cylinder within it and the one around it.
    volume = mass_properties(Capsule(a, b))[0]
    assert mass_properties(Cylinder(a, b))[0] < volume < mass_properties(Cylinder(a, b + 2 * a))[0]
    assert volume == pytest.approx(np.pi * a**2 * (b + 4 / 3 * a))


@given(st.tuples(lengths, lengths, lengths), arrays(float, 3, elements=st.floats(-10, 10)), st.floats(-3, 3))
def test_a_hull_of_a_box_is_the_box_wherever_its_corners_are(
    size: tuple[float, float, float], offset: np.ndarray, angle: float
) -> None:
    turn = rot.to_matrix(rot.from_axis_angle((1.0, 2.0, 3.0), angle))
    hull = ConvexHull((CORNERS - 0.5) * size @ turn.T + offset)
    scale = max(size) + np.abs(offset).max()
    np.testing.assert_allclose(hull.centre, offset, atol=1e-7 * scale)
    volume, inertia = mass_properties(hull)
    box_volume, box_inertia = mass_properties(Box(size))
    assert volume == pytest.approx(box_volume, rel=1e-6)
    np.testing.assert_allclose(inertia, turn @ box_inertia @ turn.T, atol=1e-6 * np.trace(box_inertia))


@given(arrays(float, (10, 3), elements=st.floats(-1, 1), unique=True))
def test_a_hull_is_centred_once_and_for_all(points: np.ndarray) -> None:
    try:
        hull = ConvexHull(points)
    except LapjointError:
        return  # too flat a hull
    again = ConvexHull(hull.points)
    np.testing.assert_array_equal(again.centre, 0.0)
    np.testing.assert_array_equal(again.points, hull.points)
    np.testing.assert_allclose(hull.points + hull.centre, points, atol=1e-12)
    moments = np.linalg.eigvalsh(mass_properties(hull)[1])
    assert moments[0] > 0
    assert moments[0] + moments[1] >= moments[2] * (1 - 1e-9)


def test_a_compound_of_two_halves_is_the_whole() -> None:
    turn = tuple(rot.from_axis_angle((0.0, 0.0, 1.0), np.pi / 2))
    halves = Compound((Part(Box((1.0, 2.0, 1.5)), (4.5, 1.0, 1.0)), Part(Box((2.0, 1.0, 1.5)), (5.5, 1.0, 1.0), turn)))
    np.testing.assert_allclose(halves.centre, (5.0, 1.0, 1.0))
    np.testing.assert_allclose([part.position for part in halves.parts], [(-0.5, 0, 0), (0.5, 0, 0)], atol=1e-12)
    volume, inertia = mass_properties(halves)
    whole_volume, whole_inertia = mass_properties(Box((2.0, 2.0, 1.5)))
    assert volume == pytest.approx(whole_volume)
    np.testing.assert_allclose(inertia, whole_inertia, atol=1e-12)
    assert Compound(halves.parts) == halves
    np.testing.assert_array_equal(Compound(halves.parts).centre, 0.0)


def test_a_body_takes_mass_and_inertia_from_its_shape() -> None:
    scene = Scene()
    scene.add_body(Box((1.0, 2.0, 3.0)))
    scene.add_body(Box((1.0, 2.0, 3.0)), density=10.0)
    scene.add_body(Box((1.0, 2.0, 3.0)), mass=12.0)
    scene.add_body(Box((1.0, 2.0, 3.0)), mass=12.0, inertia=(3.0, 4.0, 5.0))
    assert scene.bodies.mass.tolist() == [6000.0, 60.0, 12.0, 12.0]
    np.testing.assert_allclose(scene.bodies.inertia[2], np.diag([13.0, 10.0, 5.0]))
    np.testing.assert_allclose(scene.bodies.inertia[:2, 0, 0], [6500.0, 65.0])
    np.testing.assert_array_equal(scene.bodies.inertia[3], np.diag([3.0, 4.0, 5.0]))


# ---- size --------------------------------------------------------------------------------------------------------


@given(lengths, lengths, lengths)
def test_the_bounding_sphere_just_holds_the_shape(a: float, b: float, c: float) -> None:
    assert bounding_radius(Box((a, b, c))) == pytest.approx(np.sqrt(a**2 + b**2 + c**2) / 2)
    assert bounding_radius(Cylinder(a, b)) == pytest.approx(np.hypot(a, b / 2))
    assert bounding_radius(Capsule(a, b)) == pytest.approx(a + b / 2)
    assert bounding_radius(ConvexHull(CORNERS * (a, b, c))) == pytest.approx(np.sqrt(a**2 + b**2 + c**2) / 2)
    pair = Compound((Part(Sphere(a), (-b, 0.0, 0.0)), Part(Sphere(a), (b, 0.0, 0.0))))
    assert bounding_radius(pair) == pytest.approx(a + b)


def test_faces_of_a_hull_look_outward_and_enclose_its_volume() -> None:
    hull = ConvexHull(np.random.default_rng(1).normal(size=(30, 3)))
    corners, faces = hull_faces(hull.points)
    a, b, c = (corners[faces[:, k]] for k in range(3))
    assert (np.einsum("ij,ij->i", np.cross(b - a, c - a), a) > 0).all()
    assert np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6 == pytest.approx(mass_properties(hull)[0])
