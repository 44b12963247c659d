"""What every engine promises about contacts (`lapjoint/engines/base.py`): order, depth, filters, detection, memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from engine_support import Make
from lapjoint import (
    WORLD,
    Ball,
    Box,
    Capsule,
    Compound,
    Cone,
    ConvexHull,
    Cylinder,
    Ellipsoid,
    Fixed,
    HeightField,
    LapjointError,
    Part,
    Plane,
    Scene,
    Sphere,
    TriangleMesh,
)
from lapjoint.engines import Changes

CUBE = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))
SHAPES = {
    "sphere": Sphere(0.5),
    "box": Box((1.0, 1.0, 1.0)),
    "capsule": Capsule(0.3, 0.4),
    "cylinder": Cylinder(0.5, 1.0),
    "ellipsoid": Ellipsoid((0.5, 0.6, 0.45)),
    "cone": Cone(0.7, 1.2),
    "hull": ConvexHull(CUBE),
    "skewed hull": ConvexHull(np.random.default_rng(0).random((20, 3))),
    "compound": Compound((Part(Sphere(0.4)), Part(Box((0.6, 0.2, 0.2)), (0.5, 0.1, 0.0)))),
}
GROUND = {
    "plane": Plane(),
    "field": HeightField(np.zeros((5, 7)), (2.0, 3.0)),
    "mesh": TriangleMesh([(-5.0, -5.0, 0.0), (5.0, -5.0, 0.0), (0.0, 5.0, 0.0)], [(0, 1, 2)]),
}


def pair(**options: object) -> Scene:
    """Two balls of radius 0.5 that overlap by 0.1."""
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    scene.add_bodies(Sphere(0.5), [(0.0, 0.0, 0.0), (0.9, 0.0, 0.0)], **options)
    return scene


# ---- order -------------------------------------------------------------------------------------------------------


def apart(count: int) -> np.ndarray:
    """Places so far from each other that nothing at one touches what is at another."""
    return np.array([(20.0 * (k % 7), 20.0 * (k // 7), 0.0) for k in range(count)])


def test_every_two_shapes_touch_and_the_lower_number_comes_first(start: Make) -> None:
    shapes = {name: shape for name, shape in SHAPES.items() if start.supports.has_shape(shape)}
    pairs = [*itertools.product(shapes, shapes)]
    scene = Scene()
    for (first, second), place in zip(pairs, apart(len(pairs)), strict=True):
        scene.add_bodies([shapes[first], shapes[second]], [place, place + [0.4, 0.1, 0.05]])
    engine = start(scene)
    engine.contacts(now=True)
    contacts = engine.contacts()
    found = dict(zip(map(tuple, contacts.bodies.tolist()), range(len(contacts)), strict=True))
    assert [pair for k, pair in enumerate(pairs) if (2 * k, 2 * k + 1) not in found] == []
    assert len(contacts) == len(pairs)
    assert contacts.between_bodies.all()
    assert (contacts.point_count >= 1).all()
    assert [pair for pair, depth in zip(pairs, contacts.depth, strict=True) if depth <= 0.05] == []


def test_every_shape_touches_every_static_shape_which_comes_second(start: Make) -> None:
    """On the plane, which is everywhere, and each on one of its own."""
    shapes = {name: shape for name, shape in SHAPES.items() if start.supports.has_shape(shape)}
    grounds = {name: shape for name, shape in {**SHAPES, **GROUND}.items() if start.supports.has_shape(shape)}
    plane = grounds.pop("plane")
    pairs = [*itertools.product(shapes, grounds)]
    on_plane, on_others = Scene(), Scene()
    for scene in (on_plane, on_others):
        scene.add_static(Sphere(0.1), (-50.0, 0.0, 0.0))
    on_plane.add_static(plane)
    on_plane.add_bodies([*shapes.values()], apart(len(shapes)) + [0.0, 0.0, 0.1])
    for (shape, ground), place in zip(pairs, apart(len(pairs)), strict=True):
        on_others.add_static(grounds[ground], place)
        on_others.add_body(shapes[shape], place + [0.0, 0.0, 0.1])
    for scene, touching, numbers in (
        (on_plane, [(shape, "plane") for shape in shapes], [[k, -2] for k in range(len(shapes))]),
        (on_others, pairs, [[k, -2 - k] for k in range(len(pairs))]),
    ):
        engine = start(scene)
        engine.contacts(now=True)
        contacts = engine.contacts()
        found = contacts.bodies.tolist()
        assert [pair for pair, wanted in zip(touching, numbers, strict=True) if wanted not in found] == []
        assert found == numbers
        assert (contacts.point_count >= 1).all()
        assert [pair for pair, depth in zip(touching, contacts.depth, strict=True) if depth <= 0.0] == []
        assert not contacts.between_bodies.any()


def test_contacts_are_in_ascending_order_whatever_the_order_of_activation(make: Make) -> None:
    scene = Scene()
    for x in (-10.0, 0.0, 10.0):
        scene.add_static(Box((10.0, 10.0, 1.0)), (x, 0.0, -0.5))
    grid = np.stack(np.meshgrid(range(6), range(3), range(3), indexing="ij"), axis=-1).reshape(-1, 3)
    rng = np.random.default_rng(1)
    scene.add_bodies(Box((1.0, 1.0, 1.0)), rng.permutation(grid) + [2.5, 0.0, 0.5])
    engine = make(scene)
    for ids in np.array_split(rng.permutation(len(grid)), 7):
        engine.activate(ids, scene.states[ids])
    engine.contacts(now=True)
    contacts = engine.contacts()
    a, b = contacts.bodies.T
    assert (a >= 0).all()
    assert (b[contacts.between_bodies] > a[contacts.between_bodies]).all()
    # Static bodies come after all bodies, by their numbers.
    order = np.lexsort((np.where(b >= 0, b, len(grid) - 1 - b), a))
    assert order.tolist() == list(range(len(contacts)))
    assert len(np.unique(contacts.bodies, axis=0)) == len(contacts)
    assert set(b[~contacts.between_bodies]) == {-2, -3}


# ---- depth and points --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.05, 1.0, 30.0])
def test_depth_is_in_metres_and_negative_while_apart(start: Make, scale: float) -> None:
    scene = Scene()
    scene.add_static(Plane())
    scene.add_bodies(Sphere(0.5 * scale), scale * np.array([(0.0, 0.0, 0.505), (0.9, 0.0, 0.505)]))
    engine = start(scene)
    engine.contacts(now=True)
    contacts = engine.contacts()
    assert contacts.bodies.tolist() == [[0, 1], [0, -1], [1, -1]]
    np.testing.assert_allclose(contacts.depth / scale, [0.1, -0.005, -0.005], rtol=1e-3)
    assert contacts.penetration == contacts.depth[0]


def test_a_box_on_a_box_has_four_points_and_a_ball_one(start: Make) -> None:
    scene = Scene()
    scene.add_static(Box((10.0, 10.0, 1.0)), (0.0, 0.0, -0.5))
    scene.add_body(Box((1.0, 1.0, 1.0)), (0.0, 0.0, 0.49))
    scene.add_body(Sphere(0.5), (3.0, 0.0, 0.49))
    engine = start(scene)
    engine.contacts(now=True)
    assert engine.contacts().point_count.tolist() == [4, 1]


def test_parts_of_a_compound_are_one_contact(start: Make) -> None:
    dumbbell = Compound((Part(Sphere(0.5), (-1.0, 0.0, 0.0)), Part(Sphere(0.5), (1.0, 0.0, 0.0))))
    scene = Scene()
    scene.add_static(Box((10.0, 10.0, 1.0)), (0.0, 0.0, -0.5))
    scene.add_body(dumbbell, (0.0, 0.0, 0.48))
    engine = start(scene)
    engine.contacts(now=True)
    contacts = engine.contacts()
    assert contacts.bodies.tolist() == [[0, -1]]
    assert contacts.point_count.tolist() == [2]
    np.testing.assert_allclose(contacts.depth, 0.02, rtol=1e-3)


# ---- when --------------------------------------------------------------------------------------------------------


def test_detect_looks_at_the_present_and_changes_no_state(start: Make) -> None:
    scene = pair()
    engine = start(scene)
    before = engine.get_states()
    engine.contacts(now=True)
    assert len(engine.contacts()) == 1
    np.testing.assert_array_equal(engine.get_states(), before)
    far = scene.states[[1]]
    far[0, 0] = 7.0
    engine.set_states([1], far)
    engine.contacts(now=True)
    assert len(engine.contacts()) == 0
    engine.set_states([1], scene.states[[1]])
    engine.contacts(now=True)
    assert len(engine.contacts()) == 1


def test_a_steps_contacts_are_those_it_began_with(start: Make) -> None:
    """Two balls in contact fly apart so fast that they are far from each other after the step."""
    scene = pair(linear_velocities=[(-300.0, 0.0, 0.0), (300.0, 0.0, 0.0)])
    engine = start(scene)
    engine.step()
    assert engine.get_states()[1, 0] > 1.4
    assert engine.contacts().bodies.tolist() == [[0, 1]]
    np.testing.assert_allclose(engine.contacts().depth, 0.1, rtol=1e-3)
    engine.step()
    assert len(engine.contacts()) == 0


def test_contacts_leave_with_their_body(start: Make) -> None:
    engine = start(pair())
    engine.contacts(now=True)
    engine.deactivate([0])
    assert len(engine.contacts()) == 0
    engine.step()
    assert len(engine.contacts()) == 0


def test_cleared_contacts_are_found_again_without_their_impulses(start: Make) -> None:
    """A ball at rest that forgets its contact is, for one step, a ball that has just arrived there."""
    start.needs("warm start")
    scene = Scene(iterations=1)
    scene.add_static(Plane())
    scene.add_bodies(Sphere(0.5), [(0.0, 0.0, 0.5), (0.0, 0.0, 1.5), (0.0, 0.0, 2.5)])
    warm, cold, fresh = start(scene), start(scene), start(scene)
    for engine in (warm, cold):
        engine.step(200)
    settled = warm.get_states()
    fresh.set_states(range(3), settled)
    fresh.change(Changes(forgets_contacts=True))
    for engine in (warm, cold):
        engine.set_states(range(3), settled)
    cold.change(Changes(forgets_contacts=True))
    for engine in (warm, cold, fresh):
        engine.step()
    assert cold.get_states().tobytes() == fresh.get_states().tobytes()
    if start.solver != "substeps":  # which sweeps contacts that are all new for as long as it takes
        assert np.abs(cold.get_states()[:, 9]).max() > 10 * np.abs(warm.get_states()[:, 9]).max()
    assert cold.contacts().bodies.tolist() == warm.contacts().bodies.tolist() == [[0, 1], [0, -1], [1, 2]]


@pytest.mark.slow
@pytest.mark.parametrize("gap", [0.3, 0.9, 1.4])
def test_clearances_say_what_detection_would_and_leave_no_trace(make: Make, start: Make, gap: float) -> None:
    """For pairs at random places and turns, some of which touch, none of them active."""
    rng = np.random.default_rng(9)
    shapes = [shape for shape in SHAPES.values() if make.supports.has_shape(shape)]
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    pairs = np.arange(100).reshape(50, 2)
    places = np.repeat(np.arange(50)[:, None] * [10.0, 0.0, 0.0], 2, axis=0)
    places[1::2] += gap * rng.normal(size=(50, 3)) / np.sqrt(3)
    turns = rng.normal(size=(100, 4))
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    scene.add_bodies([shapes[k] for k in rng.integers(len(shapes), size=100)], places, turns)
    detected = start(scene)
    detected.contacts(now=True)
    found = {tuple(pair) for pair in detected.contacts().bodies.tolist()}
    engine, untouched = make(scene), make(scene)
    touch = engine.clearances(pairs, scene.states) == 0
    touching = np.array([tuple(pair) in found for pair in pairs.tolist()])
    assert not (touching & ~touch).any(), "a contact is never missed"
    if "exact clearances" in make.supports.features:
        assert touching.tolist() == touch.tolist()
    else:
        radii, apart = (
            scene.bounding_radii().reshape(-1, 2).sum(axis=1),
            np.linalg.norm(places[1::2] - places[::2], axis=1),
        )
        assert (apart[touch] < radii[touch] + 0.05).all(), "only near pairs may be taken for touching"
    assert (engine.clearances(pairs[:, ::-1], scene.states) == 0).tolist() == touch.tolist()
    assert touch.sum() > 5
    assert len(engine.contacts()) == 0
    for one in (engine, untouched):
        one.activate(range(60), scene.states[:60])
        one.step(3)
    assert engine.get_states().tobytes() == untouched.get_states().tobytes()


@pytest.mark.parametrize("seed", range(4))
def test_bodies_that_moved_less_than_their_clearance_do_not_touch(make: Make, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shapes = [shape for shape in SHAPES.values() if make.supports.has_shape(shape)]
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    places = np.repeat(np.arange(50)[:, None] * [10.0, 0.0, 0.0], 2, axis=0)
    places[1::2] += 1.5 * rng.normal(size=(50, 3)) / np.sqrt(3)
    turns = rng.normal(size=(100, 4))
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    scene.add_bodies([shapes[k] for k in rng.integers(len(shapes), size=100)], places, turns)
    engine, pairs, states = make(scene), np.arange(100).reshape(50, 2), scene.states
    clearance = engine.clearances(pairs, states)
    apart = clearance > 0
    assert (clearance[apart] > 0.05).sum() > 5, "far pairs have a useful clearance"
    for _ in range(20):
        way = rng.normal(size=(50, 3))
        way *= (clearance / np.linalg.norm(way, axis=1))[:, None]
        moved = states.copy()
        share = rng.random((50, 1))
        moved[0::2, :3] += share * way
        moved[1::2, :3] -= (1 - share) * way
        assert (engine.clearances(pairs, moved)[apart] > 0).all()


def test_clearances_refuse_what_is_not_there(make: Make) -> None:
    scene = pair()
    engine = make(scene)
    assert engine.clearances(np.empty((0, 2), int), scene.states).tolist() == []
    for pairs, states, message in (
        ([(0, 2)], scene.states, "body 2 does not exist"),
        ([(-1, 0)], scene.states, "body -1 does not exist"),
        ([(0, 1)], scene.states[:1], "expected \\(2, 13\\)"),
    ):
        with pytest.raises(LapjointError, match=message):
            engine.clearances(pairs, states)


# ---- who may touch whom ------------------------------------------------------------------------------------------


def touching(start: Make, scene: Scene) -> list[list[int]]:
    engine = start(scene)
    engine.contacts(now=True)
    pairs: list[list[int]] = engine.contacts().bodies.tolist()
    return pairs


def test_ignored_pairs_pass_through_each_other(start: Make) -> None:
    scene = Scene()
    scene.add_bodies(Sphere(0.5), [(0.0, 0.0, 0.0), (0.8, 0.0, 0.0), (0.4, 0.6, 0.0)])
    assert touching(start, scene) == [[0, 1], [0, 2], [1, 2]]
    scene.ignore([1, 2], [0, 1])
    assert touching(start, scene) == [[0, 2]]


def test_bodies_that_ignore_each_other_still_touch_static_ones(start: Make) -> None:
    scene = Scene()
    for z in (0.0, -0.01, -0.02, -9.0):
        scene.add_static(Plane(), (0.0, 0.0, z))
    scene.add_bodies(Sphere(0.5), [(0.4 * k, 0.0, 0.4) for k in range(3)])
    scene.ignore([0, 0, 1], [1, 2, 2])
    assert touching(start, scene) == [[body, -1 - static] for body in range(3) for static in range(3)]


def test_jointed_neighbours_do_not_touch_unless_asked_to(start: Make) -> None:
    for collide, wanted in ((False, []), (True, [[0, 1]])):
        scene = pair()
        scene.add_joint(Fixed(), 1, 0, (0.45, 0.0, 0.0), collide=collide)
        scene.add_joint(Ball(), 0, WORLD, (0.0, 0.0, 0.0))
        assert touching(start, scene) == wanted


def test_neighbours_do_not_touch_even_where_the_joint_is_not_live(make: Make) -> None:
    """Else bodies would jump when a neighbour of both leaves or arrives."""
    scene = pair()
    scene.add_joint(Ball(), 0, 1, (0.45, 0.0, 0.0))
    engine = make(scene)
    for body in (1, 0):
        engine.activate([body], scene.states[[body]])
        engine.contacts(now=True)
        assert len(engine.contacts()) == 0


@pytest.mark.parametrize(
    ("group_a", "mask_a", "group_b", "mask_b", "touch"),
    [
        (1, 0xFFFFFFFF, 1, 0xFFFFFFFF, True),
        (1, 1, 2, 2, False),
        (1, 2, 2, 1, True),
        (1, 2, 2, 2, False),
        (0x80000000, 0xFFFFFFFF, 1, 0x80000000, True),
        (1, 0, 1, 0xFFFFFFFF, False),
    ],
)
def test_groups_and_masks_must_agree_on_both_sides(
    start: Make, group_a: int, mask_a: int, group_b: int, mask_b: int, touch: bool
) -> None:
    scene = Scene()
    scene.add_static(Sphere(0.5), group=group_a, mask=mask_a)
    scene.add_body(Sphere(0.5), (0.0, 0.9, 0.0), group=group_b, mask=mask_b)
    scene.add_body(Sphere(0.5), (0.0, 1.8, 0.0), group=group_a, mask=mask_a)
    assert touching(start, scene) == ([[0, 1], [0, -1]] if touch else [])


# ---- the solver --------------------------------------------------------------------------------------------------


def test_the_residual_falls_with_iterations(start: Make) -> None:
    start.needs("residual", "iterations")
    scene = Scene()
    scene.add_static(Plane())
    scene.add_bodies(Box((1.0, 1.0, 1.0)), [(0.0, 0.0, 0.5 + k) for k in range(8)])
    residuals = []
    for iterations in (5, 50, 500):
        engine = start(scene, iterations=iterations)
        engine.step()
        residuals.append(engine.report().residual)
    assert residuals[0] > 2 * residuals[1] > 4 * residuals[2] > 0.0


def test_the_residual_is_a_velocity_whatever_the_unit(start: Make, rounding: float) -> None:
    """One ball that rests on the plane: the first sweep takes away what gravity gave it. In substeps nothing is left of
    that; there a chain's first joint is still to answer for the last."""
    start.needs("residual")
    residuals = []
    scene = Scene(iterations=1)
    scene.add_static(Plane())
    scene.add_body(Sphere(0.5), (0.0, 0.0, 0.5))
    in_substeps = start.solver == "substeps"
    if in_substeps:
        scene.add_bodies(Sphere(0.1), [(5.0 + 0.5 * k, 0.0, 5.0) for k in range(8)])
        for k in range(8):
            scene.add_joint(Ball(), k + 1, k if k else WORLD, (4.75 + 0.5 * k, 0.0, 5.0))
    for unit in (0.125, 1.0, 8.0):
        engine = start(scene, length_unit=unit, **({"joints": "swept"} if in_substeps else {}))
        engine.step()
        residuals.append(engine.report().residual)
    assert residuals[0] > 0.0
    velocity = residuals[0] if in_substeps else 9.81 * scene.timestep
    np.testing.assert_allclose(residuals, velocity, rtol=1e4 * rounding if in_substeps else 100 * rounding)


def test_the_residual_falls_with_substeps(start: Make) -> None:
    scene = Scene()
    scene.add_static(Plane())
    scene.add_bodies(Box((1.0, 1.0, 1.0)), [(0.0, 0.0, 0.5 + k) for k in range(8)])
    residuals = []
    for substeps in (1, 4, 16, 64):
        engine = start(scene, substeps=substeps)
        engine.step()
        residuals.append(engine.report().residual)
    assert residuals == sorted(residuals, reverse=True)
    assert residuals[0] > 4 * residuals[-1] > 0.0
