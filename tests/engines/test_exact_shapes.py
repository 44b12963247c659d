"""Exact shapes: boxes and hulls touch where they are drawn, as separating axes say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact_support import (
    IMPULSE,
    KINDS,
    Array,
    Solid,
    clipped,
    contact_points,
    exact_engine,
    random_shape,
    separation,
    turn_to,
    two_at,
)
from lapjoint import (
    Box,
    Capsule,
    Compound,
    ConvexHull,
    Cylinder,
    Material,
    Part,
    Plane,
    Scene,
    Sphere,
    TriangleMesh,
)
from lapjoint.engines import Changes
from lapjoint.engines.exact import exact_contacts

CUBE = random_shape(np.random.default_rng(0), "cube")
BOX = Box((1.0, 1.0, 1.0))
SLAB = Box((4.0, 4.0, 1.0))
PLATE = ConvexHull(np.array([(x, y, z) for x in (-2, 2) for y in (-2, 2) for z in (-0.5, 0.5)], float))
CYLINDER = Cylinder(0.5, 1.0)
MESH = TriangleMesh(np.array([(-3, -3, 0), (3, -3, 0), (3, 3, 0), (-3, 3, 0)], float), np.array([(0, 1, 2), (0, 2, 3)]))
DOWN = np.array([0.0, 0, -1])
FLAT, EDGE, CORNER = DOWN, np.array([1.0, 0, 1]), np.ones(3)
HALF = {id(FLAT): 0.5, id(EDGE): 0.5**0.5, id(CORNER): 0.75**0.5}
seeds = st.integers(0, 2**32 - 1)


def too_shallow(*kinds: str) -> float:
    """By how much a depth may be less than it is, in units: a face goes before two edges that separate as much as what
    is left of it, and of a face only what is on one other face is left."""
    return 3e-4 if {"box"}.issuperset(kinds) else 0.006


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "float64"])
@given(seed=seeds, kinds=st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)), depth=st.floats(1e-4, 0.2))
@settings(max_examples=60, deadline=None)
def test_the_deepest_point_is_as_deep_as_separating_axes_and_the_longest_line_inside_say(
    precision: str, seed: int, kinds: tuple[str, str], depth: float
) -> None:
    scene, first, second = two_at(np.random.default_rng(seed), kinds, -depth)
    engine = exact_engine(scene, precision)
    engine.contacts(now=True)
    found, unit = contact_points(engine), engine.params.units.length
    assert unit is not None
    near, expected = 3e-4 * unit, separation(first, second)  # needles are never so deep inside each other
    longest = clipped(first, second, found.normal[0])
    assert 1.011 * expected - near < found.distance.min() < 0.989 * expected + too_shallow(*kinds) * unit
    assert longest - near < found.distance.min() < longest + too_shallow(*kinds) * unit
    assert len(found.distance) <= 4
    assert first.outside(found.on_a) < 2e-3 * unit
    assert second.outside(found.on_b) < 2e-3 * unit
    along = ((found.on_a - found.on_b) * found.normal).sum(axis=1)
    np.testing.assert_allclose(along, found.distance, atol=1e-5 * unit)
    np.testing.assert_allclose(np.linalg.norm(found.normal, axis=1), 1, atol=1e-5)


@pytest.mark.slow
@given(seed=seeds, kinds=st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)), apart=st.floats(1e-4, 0.1))
@settings(max_examples=60, deadline=None)
def test_apart_no_point_is_nearer_than_the_shapes_are(seed: int, kinds: tuple[str, str], apart: float) -> None:
    scene, _, _ = two_at(np.random.default_rng(seed), kinds, apart)
    engine = exact_engine(scene)
    engine.contacts(now=True)
    found, unit = contact_points(engine), engine.params.units.length
    assert unit is not None
    assert (found.distance >= 0.989 * apart - 3e-4 * unit).all()
    assert (found.distance <= 0.02 * unit).all()


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("shape", [CUBE, BOX], ids=["hull", "box"])
@pytest.mark.parametrize("below", [PLATE, SLAB], ids=["on hull", "on box"])
@pytest.mark.parametrize(("down", "points"), [(FLAT, 4), (EDGE, 2), (CORNER, 1)], ids=["face", "edge", "corner"])
def test_a_face_an_edge_and_a_corner_touch_with_four_two_and_one_points(
    precision: str, shape: Box | ConvexHull, below: Box | ConvexHull, down: Array, points: int
) -> None:
    for gap in (-0.003, 0.003):
        scene = Scene("one on the other")
        scene.add_body(below, (0, 0, 0))
        scene.add_body(shape, (0.1, 0.2, 0.5 + HALF[id(down)] + gap), quaternion=tuple(turn_to(down, DOWN)))
        engine = exact_engine(scene, precision)
        engine.contacts(now=True)
        found = contact_points(engine)
        np.testing.assert_allclose(found.distance, np.full(points, gap), atol=2e-6)
        np.testing.assert_allclose(found.normal, np.tile(DOWN, (points, 1)), atol=1e-5)


SPHERE_BELOW, CAPSULE_BELOW = Sphere(1.0), Capsule(1.0, 1.0)
TOUCHES = [
    ("hull's corner on sphere", CUBE, CORNER, SPHERE_BELOW, 1.0, 1e-4),
    ("hull's edge on sphere", CUBE, EDGE, SPHERE_BELOW, 1.0, 1e-4),
    ("box's corner on sphere", BOX, CORNER, SPHERE_BELOW, 1.0, 1e-4),
    ("box's face on sphere", BOX, FLAT, SPHERE_BELOW, 1.0, 1e-4),
    ("hull's corner on capsule", CUBE, CORNER, CAPSULE_BELOW, 1.5, 1e-4),
    ("cylinder's rim on box", CYLINDER, EDGE, SLAB, 0.5, 0.01),
    ("cylinder's rim on hull", CYLINDER, EDGE, PLATE, 0.5, 0.01),
    ("cylinder's rim on sphere", CYLINDER, EDGE, SPHERE_BELOW, 1.0, 0.01),
    ("cylinder's end on box", CYLINDER, FLAT, SLAB, 0.5, 1e-4),
    ("cylinder's rim on plane", CYLINDER, EDGE, Plane(), 0.0, 1e-4),
    ("cylinder's rim on mesh", CYLINDER, EDGE, MESH, 0.0, 0.01),
    ("hull's corner on plane", CUBE, CORNER, Plane(), 0.0, 1e-4),
    ("hull's corner on mesh", CUBE, CORNER, MESH, 0.0, 1e-4),
    ("box's edge on mesh", BOX, EDGE, MESH, 0.0, 1e-4),
]


@pytest.mark.parametrize(
    ("shape", "down", "below", "top", "close"), [t[1:] for t in TOUCHES], ids=[t[0] for t in TOUCHES]
)
def test_round_shapes_and_static_ones_touch_within_a_hundredth_of_the_size(
    shape: Box | ConvexHull | Cylinder, down: Array, below: object, top: float, close: float
) -> None:
    scene = Scene("one on the other")
    if isinstance(below, (Plane, TriangleMesh)):
        scene.add_static(below)
    else:
        scene.add_body(below, (0, 0, 0))
    scene.add_body(shape, (0, 0, 9), quaternion=tuple(turn_to(down, DOWN)))
    engine = exact_engine(scene)
    body, states = scene.body_count - 1, scene.states.copy()
    for gap in (-2 * close, 2 * close):
        states[body, 2] = top + HALF[id(down)] + gap
        engine.set_states([body], states[body:])
        engine.contacts(now=True)
        depth = engine.contacts().depth
        assert (len(depth) > 0 and depth.max() > 0) == (gap < 0)
        engine.change(Changes(forgets_contacts=True))


@pytest.mark.parametrize(
    ("shape", "down", "points"),
    [(CYLINDER, DOWN, 4), (CYLINDER, np.array([1.0, 0, 0]), 2), (Capsule(0.5, 1.0), np.array([1.0, 0, 0]), 2)],
    ids=["standing cylinder", "lying cylinder", "lying capsule"],
)
def test_on_a_plane_all_points_are_there_at_once(shape: Cylinder | Capsule, down: Array, points: int) -> None:
    scene = Scene("on a plane")
    scene.add_static(Plane())
    scene.add_body(shape, (0, 0, 0.499), quaternion=tuple(turn_to(down, DOWN)))
    engine = exact_engine(scene)
    engine.contacts(now=True)
    found = contact_points(engine)
    np.testing.assert_allclose(found.distance, np.full(points, -0.001), atol=1e-5)


@pytest.mark.slow
@given(seed=seeds, kinds=st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)))
@settings(max_examples=40, deadline=None)
def test_swapped_bodies_have_the_mirrored_contact(seed: int, kinds: tuple[str, str]) -> None:
    scene, first, second = two_at(np.random.default_rng(seed), kinds, -0.01)
    swapped = Scene("swapped")
    for i in (1, 0):
        swapped.add_body(
            scene.shapes[scene.bodies.shape_id[i]], tuple(scene.states[i, :3]), quaternion=tuple(scene.states[i, 3:7])
        )
    found = []
    for one in (scene, swapped):
        engine = exact_engine(one, "float64")
        engine.contacts(now=True)
        found.append(contact_points(engine))
    near = 2 * too_shallow(*kinds) + 1e-3
    assert found[1].distance.min() == pytest.approx(found[0].distance.min(), rel=0.011, abs=near)
    for points, (a, b) in zip(found, ((first, second), (second, first)), strict=True):
        longest = clipped(a, b, points.normal[0])
        assert longest == pytest.approx(points.distance.min(), abs=near), "the normal is from B to A"


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_spheres_see_each_other_before_they_touch_and_keep_their_impulse(precision: str) -> None:
    scene = Scene()
    scene.add_bodies(Sphere(0.5), [(0.0, 0.0, 0.0), (0.0, 0.0, 1.005)])
    engine = exact_engine(scene, precision)
    engine.contacts(now=True)
    assert engine.contacts().depth.tolist() == pytest.approx([-0.005], abs=1e-6)
    assert engine.clearances([(0, 1)], scene.states).tolist() == [0.0]
    states = scene.states.copy()
    states[1, 2] = 1.2
    engine.set_states([1], states[1:])
    engine.contacts(now=True)
    assert len(engine.contacts().depth) == 0
    assert 0.17 < engine.clearances([(0, 1)], states)[0] < 0.2


def _walk(rng: np.random.Generator, states: Array, step: float) -> Array:
    moved = states.copy()
    moved[:, :3] += rng.normal(size=(len(states), 3)) * step
    moved[:, 3:7] += rng.normal(size=(len(states), 4)) * step
    moved[:, 3:7] /= np.linalg.norm(moved[:, 3:7], axis=1)[:, None]
    return moved


@pytest.mark.slow
@given(seed=seeds, kinds=st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)))
@settings(max_examples=30, deadline=None)
def test_impulses_stay_with_their_points_over_small_motions(seed: int, kinds: tuple[str, str]) -> None:
    rng = np.random.default_rng(seed)
    scene, _, _ = two_at(rng, kinds, -0.02)
    engine = exact_engine(scene, "float64")
    engine.contacts(now=True)
    state = engine.state()
    state.points[:, IMPULSE] = 1 + np.arange(len(state.points))
    engine.merge_cache(state)
    before = contact_points(engine)
    engine.set_states([0, 1], _walk(rng, scene.states, 1e-6))
    engine.contacts(now=True)
    after = contact_points(engine)
    for point, impulse in zip(after.on_a, after.impulse, strict=True):
        nearest = np.linalg.norm(before.on_a - point, axis=1).argmin()
        if np.linalg.norm(before.on_a[nearest] - point) < 1e-4:
            assert impulse in before.impulse
    assert set(before.impulse) & set(after.impulse)


def test_a_box_that_slides_keeps_its_impulses() -> None:
    scene = Scene("slide")
    scene.add_body(SLAB, (0, 0, 0))
    scene.add_body(BOX, (0, 0, 0.999))
    engine = exact_engine(scene)
    engine.contacts(now=True)
    state = engine.state()
    state.points[:, IMPULSE] = [1, 2, 3, 4]
    engine.merge_cache(state)
    states = scene.states.copy()
    for k in range(60):
        states[1, 0] += 0.01
        turn = 0.01 * k
        states[1, 3:7] = np.cos(turn / 2), 0, 0, np.sin(turn / 2)
        engine.set_states([0, 1], states)
        engine.contacts(now=True)
    np.testing.assert_array_equal(contact_points(engine).impulse, [1, 2, 3, 4])


def _heap(count: int, rng: np.random.Generator) -> Scene:
    scene = Scene("heap")
    scene.add_static(Plane())
    for i in range(count):
        place = (1.3 * (i % 3), 1.3 * (i // 3 % 3), 0.7 + 1.1 * (i // 9))
        turn = rng.normal(size=4)
        shape = random_shape(rng, ("box", "hull", "cube", "plate")[i % 4])
        if i % 5 == 0:
            shape = Compound((Part(BOX, (0, 0, 0.4)), Part(CUBE, (0.3, 0, -0.4))))
        scene.add_body(shape, place, quaternion=tuple(turn / np.linalg.norm(turn)))
    return scene


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_restored_world_goes_on_to_the_last_bit(precision: str) -> None:
    scene = _heap(30, np.random.default_rng(3))
    engine, other = exact_engine(scene, precision), exact_engine(scene, precision)
    engine.step(60)
    state = engine.state()
    other.restore(state)
    for _ in range(10):
        engine.step()
        other.step()
    np.testing.assert_array_equal(engine.get_states(), other.get_states())
    for one, two in zip(vars(engine.state()).values(), vars(other.state()).values(), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.slow
def test_what_is_measured_of_a_heap_is_what_separating_axes_say() -> None:
    rng = np.random.default_rng(5)
    scene = Scene("64 hulls")
    scene.add_static(Plane())
    for i in range(64):
        turn = rng.normal(size=4)
        place = (1.5 * (i % 4), 1.5 * (i // 4 % 4), 0.8 + 1.5 * (i // 16))
        scene.add_body(random_shape(rng, "hull"), place, quaternion=tuple(turn / np.linalg.norm(turn)))
    engine = exact_engine(scene)
    engine.step(600)
    states = engine.get_states()
    contacts = exact_contacts(scene, states)
    solids = [Solid.of(scene.shapes[i]).placed(s) for i, s in zip(scene.bodies.shape_id, states, strict=True)]
    expected = []
    for a, b in contacts.bodies:
        expected.append(-solids[a].corners[:, 2].min() if b < 0 else -separation(solids[a], solids[b]))
    touching = np.array(expected) > 0
    np.testing.assert_allclose(contacts.depth[touching], np.array(expected)[touching], rtol=0.011, atol=3e-4)
    assert touching.sum() > 30
    found = {tuple(pair) for pair in contacts.bodies[contacts.depth > 0]}
    for a in range(64):
        for b in range(a + 1, 64):
            near = np.linalg.norm(states[a, :3] - states[b, :3]) < 4
            if near and (a, b) not in found:
                assert separation(solids[a], solids[b]) > -1e-3


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_clearances_are_zero_where_there_is_a_contact_and_no_more_than_the_distance_elsewhere(precision: str) -> None:
    rng = np.random.default_rng(7)
    for apart in (-0.05, -1e-3, 1e-3, 0.01, 0.05, 0.5):
        for _ in range(6):
            scene, _, _ = two_at(rng, (str(rng.choice(KINDS)), str(rng.choice(KINDS))), apart)
            engine = exact_engine(scene, precision)
            engine.contacts(now=True)
            clearance = engine.clearances([(0, 1)], scene.states)[0]
            assert (clearance == 0) == (len(engine.contacts()) > 0)
            if apart <= 0:
                assert clearance == 0
            for direction in rng.normal(size=(4, 3)) if clearance > 0 else ():
                moved = scene.states.copy()
                moved[1, :3] += 0.99 * clearance * direction / np.linalg.norm(direction)
                engine.set_states([0, 1], moved)
                engine.contacts(now=True)
                assert len(engine.contacts()) == 0


def _sphere_points(count: int) -> Array:
    at = np.arange(count) + 0.5
    polar, turn = np.arccos(1 - 2 * at / count), np.pi * (1 + 5**0.5) * at
    return np.stack([np.cos(turn) * np.sin(polar), np.sin(turn) * np.sin(polar), np.cos(polar)], axis=1)


GRID = np.array([(x, y, z) for x in range(4) for y in range(4) for z in range(4)], float)
RING = np.array([(np.cos(t), np.sin(t), z) for t in np.linspace(0, 2 * np.pi, 60, endpoint=False) for z in (0, 0.3)])
DEGENERATE = {
    "thin plate": GRID * (1, 1, 1e-4),
    "needle": GRID * (1e-3, 1e-3, 1),
    "grid of points": GRID,
    "disc of sixty sides": RING,
    "doubled points": np.concatenate([GRID, GRID + 1e-9]),
    "sphere of 150 points": _sphere_points(150),
    "flat tetrahedron": np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0.3, 0.3, 1e-3)]),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_degenerate_hulls_fall_and_come_to_rest_on_each_other(name: str, precision: str) -> None:
    scene = Scene("degenerate")
    scene.add_static(Plane())
    hull = ConvexHull(DEGENERATE[name])
    size = np.ptp(hull.points, axis=0)
    for i in range(4):
        scene.add_body(hull, (0.1 * i, 0.07 * i, size.max() + 1.05 * size.max() * i))
    engine = exact_engine(scene, precision)
    engine.step(200)
    states = engine.get_states()
    assert np.isfinite(states).all()
    assert engine.contacts().penetration < 0.2 * size.max()


def test_coplanar_points_that_no_check_has_seen_make_a_thin_hull() -> None:
    square = np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)], float)
    scene = Scene("flat")
    scene.add_static(Plane())
    scene.add_body(CUBE, (0, 0, 0.4))
    scene.shapes[scene.bodies.shape_id[0]] = ConvexHull.centred(square)
    engine = exact_engine(scene)
    engine.contacts(now=True)
    assert np.isfinite(engine.contacts().depth).all()


@pytest.mark.slow
@pytest.mark.parametrize("shape", [BOX, CUBE, CYLINDER], ids=["box", "hull", "cylinder"])
def test_nothing_stumbles_over_the_edges_inside_a_flat_mesh(shape: Box | ConvexHull | Cylinder) -> None:
    at = np.linspace(-8, 8, 17)
    corners = np.array([(x, y, 0.0) for x in at for y in at])
    first = np.array([17 * i + k for i in range(16) for k in range(16)])
    triangles = np.concatenate([first[:, None] + (0, 17, 18), first[:, None] + (0, 18, 1)])
    smooth = Material(friction=0.0)
    scene = Scene("slide", timestep=1 / 240)
    scene.add_static(TriangleMesh(corners, triangles), material=smooth)
    scene.add_body(shape, (-6.03, 0.21, 0.5), material=smooth)
    states = scene.states.copy()
    states[0, 7] = 5.0
    engine = exact_engine(scene)
    engine.set_states([0], states)
    engine.step(480)
    after = engine.get_states()[0]
    assert after[7] == pytest.approx(5.0, abs=1e-3)
    assert after[2] == pytest.approx(0.5, abs=2e-3)


@pytest.mark.parametrize("below", [SLAB, PLATE, Cylinder(0.7, 1.0)], ids=["box", "hull", "cylinder"])
@pytest.mark.parametrize("aside", [0.0, 0.4], ids=["over the middle", "over the side"])
def test_a_cylinder_stands_on_four_points_at_once(below: Box | ConvexHull | Cylinder, aside: float) -> None:
    scene = Scene("standing")
    at = {SLAB: 2.0 - 0.5 + aside, PLATE: 2.0 - 0.5 + aside}.get(below, aside)
    scene.add_body(below, (0, 0, 0))
    scene.add_body(CYLINDER, (at, 0, 0.999))
    for precision in ("float32", "float64"):
        engine = exact_engine(scene, precision)
        engine.contacts(now=True)
        found = contact_points(engine)
        np.testing.assert_allclose(found.distance, np.full(4, -0.001), atol=1e-5)
        np.testing.assert_allclose(found.normal, np.tile(DOWN, (4, 1)), atol=1e-5)
        assert np.ptp(found.on_a[:, 0]) > 0.4
        assert np.ptp(found.on_a[:, 1]) > 0.4


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, -1], ids=["cylinder first", "cylinder last"])
@pytest.mark.parametrize("kind", ["box", "hull"])
def test_a_cylinder_touches_as_a_prism_of_many_sides_does(kind: str, order: int) -> None:
    rng = np.random.default_rng(11)
    angles = np.linspace(0, 2 * np.pi, 96, endpoint=False)
    prism = ConvexHull(np.array([(np.cos(a) / 2, np.sin(a) / 2, z) for a in angles for z in (-0.5, 0.5)]))
    other = random_shape(rng, kind)
    engines = []
    for shape in (CYLINDER, prism):
        scene = Scene("two")
        for one in (shape, other)[::order]:
            scene.add_body(one, (9.0 * scene.body_count, 0, 0))
        engines.append(exact_engine(scene, length_unit=1.0))
    compared = 0
    for _ in range(300):
        states = scene.states.copy()
        states[:, 3:7] = rng.normal(size=(2, 4))
        states[:, 3:7] /= np.linalg.norm(states[:, 3:7], axis=1)[:, None]
        direction = rng.normal(size=3)
        states[1, :3] = direction / np.linalg.norm(direction) * rng.uniform(0.5, 1.5)
        depths = []
        for engine in engines:
            engine.set_states([0, 1], states)
            engine.change(Changes(forgets_contacts=True))
            engine.contacts(now=True)
            depths.append(engine.contacts().penetration)
        if 0 < depths[1] < 0.08:
            compared += 1
            assert depths[0] == pytest.approx(depths[1], abs=0.01)
    assert compared > 5
