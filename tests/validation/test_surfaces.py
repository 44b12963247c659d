"""Surfaces against formulas: slopes for every combine rule, parts of ice and rubber, parts that pass through."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from engine_support import BULLET, Kind, params_of
from lapjoint import (
    Box,
    Compound,
    Cone,
    Ellipsoid,
    Engine,
    HeightField,
    Material,
    Params,
    Part,
    Plane,
    Scene,
    Simulation,
    Sphere,
    TriangleMesh,
    make_engine,
)
from lapjoint.scene.materials import COMBINE_RULES

FORMULAS = {
    "geometric": lambda a, b: np.sqrt(a * b),
    "average": lambda a, b: (a + b) / 2,
    "minimum": min,
    "multiply": lambda a, b: a * b,
    "maximum": max,
}


@pytest.fixture(params=BULLET, ids="-".join)
def kind(request: pytest.FixtureRequest) -> Kind:
    kind: Kind = request.param
    return kind


def started(kind: Kind, scene: Scene) -> Engine:
    engine = make_engine(scene, params_of(kind))
    engine.activate(np.arange(scene.body_count), scene.states)
    return engine


def rule_of(first: str, second: str) -> str:
    return max(first, second, key=COMBINE_RULES.index)


# ---- combine rules -----------------------------------------------------------------------------------------------


def test_a_box_slides_down_a_slope_by_the_rule_of_the_two(kind: Kind) -> None:
    """For every two rules: it accelerates by g (sin - mu cos), with the later of both rules' mu."""
    angle, mu_a, mu_b = 0.8, 0.3, 0.6
    gravity = 9.81 * np.array([np.sin(angle), 0.0, -np.cos(angle)])
    pairs = [*itertools.product(COMBINE_RULES, COMBINE_RULES)]
    scene = Scene(gravity=gravity)
    for k, (first, second) in enumerate(pairs):
        place = 10.0 * np.array([k % 5, k // 5, 0.0])
        scene.add_static(
            Box((6.0, 4.0, 1.0)), place - [0, 0, 0.5], material=Material(friction=mu_a, friction_combine=first)
        )
        scene.add_body(
            Box((1.0, 1.0, 0.2)), place + [0, 0, 0.1], material=Material(friction=mu_b, friction_combine=second)
        )
    engine = started(kind, scene)
    engine.step(150)
    mu = np.array([FORMULAS[rule_of(*pair)](mu_a, mu_b) for pair in pairs])
    expected = 9.81 * (np.sin(angle) - mu * np.cos(angle)) * 0.3
    np.testing.assert_allclose(engine.get_states()[:, 7], expected, rtol=0.01)


def test_a_ball_bounces_by_the_rule_of_the_two(kind: Kind) -> None:
    first, second = 0.5, 0.9
    pairs = [*itertools.product(COMBINE_RULES, COMBINE_RULES)]
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    for k, (rule, other) in enumerate(pairs):
        place = 10.0 * np.array([k % 5, k // 5, 0.0])
        scene.add_static(
            Box((4.0, 4.0, 1.0)), place, material=Material(restitution=first, restitution_combine=rule, friction=0)
        )
        scene.add_body(
            Sphere(0.5),
            place + [0, 0, 1.05],
            linear_velocity=(0.0, 0.0, -3.0),
            material=Material(restitution=second, restitution_combine=other, friction=0),
        )
    engine = started(kind, scene)
    engine.step(50)
    expected = [3.0 * FORMULAS[rule_of(*pair)](first, second) for pair in pairs]
    np.testing.assert_allclose(engine.get_states()[:, 9], expected, rtol=0.02)


def test_naming_the_default_rule_changes_no_bit_even_where_others_have_another(kind: Kind) -> None:
    """Once one body has a rule, contacts ask for it; those of others get what they had before."""

    def heap(rule: str) -> bytes:
        scene = Scene()
        scene.add_static(Plane(), material=Material(friction=0.7, restitution=0.3, rolling_friction=0.01))
        rough = Material(friction=0.3, restitution=0.7, rolling_friction=0.02)
        scene.add_bodies(Sphere(0.5), [(0.1 * k, 0.0, 0.6 + 1.1 * k) for k in range(4)], material=rough)
        scene.add_bodies(Box((1, 1, 1)), [(9.0, 0.2 * k, 0.6 + 1.1 * k) for k in range(4)], material=rough)
        scene.add_body(Sphere(0.5), (50.0, 0.0, 0.6), material=Material(friction_combine=rule))
        engine = started(kind, scene)
        engine.step(150)
        return engine.get_states()[:8].tobytes()

    assert heap("geometric") == heap("maximum")


# ---- parts -------------------------------------------------------------------------------------------------------

ICE, RUBBER = Material(friction=0.0), Material(friction=1.0)


def two_boxes(first: Any, second: Any) -> Compound:
    """A plate with one face of each: the first below, the second above."""
    plate = Box((1.0, 1.0, 0.2))
    return Compound((Part(plate, (0.0, 0.0, -0.1), **first), Part(plate, (0.0, 0.0, 0.1), **second)))


UPSIDE_DOWN = (0.0, 1.0, 0.0, 0.0)


@pytest.mark.parametrize("ground", [Plane(), Box((20.0, 20.0, 1.0)), HeightField(np.zeros((11, 11)), 2.0)])
def test_ice_below_slides_and_rubber_below_sticks(kind: Kind, ground: Any) -> None:
    angle = 0.3
    scene = Scene(gravity=9.81 * np.array([np.sin(angle), 0.0, -np.cos(angle)]))
    scene.add_static(ground, (0.0, 0.0, -0.5 if isinstance(ground, Box) else 0.0), material=RUBBER)
    shape = two_boxes({"material": ICE}, {"material": RUBBER})
    scene.add_body(shape, (0.0, -2.0, 0.2))
    scene.add_body(shape, (0.0, 2.0, 0.2), UPSIDE_DOWN)
    engine = started(kind, scene)
    engine.step(200)
    sliding, sticking = engine.get_states()
    np.testing.assert_allclose(sliding[7], 9.81 * np.sin(angle) * 0.4, rtol=0.01)
    assert np.abs(sticking[7:10]).max() < 0.01


def test_a_part_without_a_material_has_the_bodys(kind: Kind) -> None:
    angle = 0.3
    scene = Scene(gravity=9.81 * np.array([np.sin(angle), 0.0, -np.cos(angle)]))
    scene.add_static(Plane(), material=RUBBER)
    shape = two_boxes({}, {"material": RUBBER})
    scene.add_bodies(shape, [(0.0, -2.0, 0.2)], material=ICE)
    scene.add_bodies(shape, [(0.0, 2.0, 0.2)], material=RUBBER)
    engine = started(kind, scene)
    engine.step(200)
    np.testing.assert_allclose(engine.get_states()[0, 7], 9.81 * np.sin(angle) * 0.4, rtol=0.01)
    assert abs(engine.get_states()[1, 7]) < 0.01


def test_parts_of_two_compounds_have_their_own_surfaces(kind: Kind) -> None:
    """Static compound below, moving one above: the faces between them decide."""
    angle = 0.3
    scene = Scene(gravity=9.81 * np.array([np.sin(angle), 0.0, -np.cos(angle)]))
    wide = Box((8.0, 3.0, 0.4))
    bed = Compound((Part(wide, (0.0, -1.5, 0.0), material=ICE), Part(wide, (0.0, 1.5, 0.0), material=RUBBER)))
    scene.add_static(bed, (0.0, 0.0, -0.2))
    shape = two_boxes({"material": RUBBER}, {"material": ICE})
    scene.add_bodies(shape, [(0.0, -1.5, 0.2), (0.0, 1.5, 0.2)])
    engine = started(kind, scene)
    engine.step(200)
    np.testing.assert_allclose(engine.get_states()[0, 7], 9.81 * np.sin(angle) * 0.4, rtol=0.01)
    assert abs(engine.get_states()[1, 7]) < 0.01


def row_of_balls(workers: int, coupling: str) -> np.ndarray:
    """Balls on ice, each with a rod that reaches through its neighbours and the floor; the first hits the others."""
    scene = Scene()
    scene.add_static(Plane(), group=1, mask=1, material=RUBBER)
    parts = Part(Box((2.4, 0.2, 1.2)), group=2, mask=1), Part(Sphere(0.5), material=ICE)
    places = [(1.001 * k, 0.0, 0.5) for k in range(10)]
    scene.add_bodies(Compound(parts), places, group=1, mask=1, inertia=(50.0, 50.0, 50.0))
    scene.bodies.linear_velocity[0, 0] = 0.5
    scene.ignore([0], [9])  # one pair alone needs no group
    with Simulation(scene, Params(workers=workers, coupling=coupling, runtime="inline")) as simulation:
        simulation.step(100)
        return np.array(simulation.states)


def test_the_part_that_may_touches_and_the_other_passes_through(kind: Kind) -> None:
    scene = Scene()
    scene.add_static(Plane(), group=1, mask=1)
    shape = Compound((Part(Box((0.2, 0.2, 2.0)), (0.0, 0.0, -0.5), group=2, mask=2), Part(Sphere(0.45))))
    scene.add_body(shape, (0.0, 0.0, 0.45 + shape.centre[2]), group=1, mask=1)
    engine = started(kind, scene)
    engine.step(100)
    np.testing.assert_allclose(engine.get_states()[0, 2], 0.45 + shape.centre[2], atol=2e-3)
    assert engine.contacts().point_count.tolist() == [1]


def test_clearances_know_which_parts_may_touch(kind: Kind) -> None:
    """Two bodies whose first parts overlap, which may not touch, and whose second parts do not."""
    scene = Scene()
    parts = Part(Sphere(0.6), (0.0, 0.0, -1.0), group=2, mask=1), Part(Sphere(0.3), (0.0, 0.0, 1.0))
    scene.add_bodies(Compound(parts), [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)])
    engine = started(kind, scene)
    engine.contacts(now=True)
    assert len(engine.contacts()) == 0
    assert engine.clearances([[0, 1]], scene.states)[0] > 0


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["blend", "tight"])
@pytest.mark.parametrize("workers", [2, 5])
def test_any_number_of_workers_has_the_same_parts_and_surfaces(workers: int, coupling: str) -> None:
    alone, shared = row_of_balls(1, coupling), row_of_balls(workers, coupling)
    loose = coupling == "blend"  # which loses some of the momentum of a hit, whatever the shapes
    np.testing.assert_allclose(shared[:, :3], alone[:, :3], atol=6e-3 if loose else 1e-3)
    np.testing.assert_allclose(shared[:, 2], 0.5, atol=2e-3)
    np.testing.assert_allclose(shared[:, 7].sum(), 0.5, rtol=0.6 if loose else 0.02)  # no floor slows them
    assert shared[-1, 7] > 0.01  # the push has come through


# ---- round shapes ------------------------------------------------------------------------------------------------


def on_ground(ground: Any) -> Scene:
    scene = Scene()
    scene.add_static(ground, (0.0, 0.0, -0.5 if isinstance(ground, Box) else 0.0))
    return scene


FLAT = HeightField(np.zeros((9, 9)), 0.5)
GROUNDS = {
    "plane": Plane(),
    "box": Box((4.0, 4.0, 1.0)),
    "field": FLAT,
    "mesh": TriangleMesh(FLAT.vertices, FLAT.triangles),
}


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_cone_rests_on_its_base_without_rocking(ground: str, precision: str) -> None:
    scene = on_ground(GROUNDS[ground])
    scene.add_body(Cone(0.5, 1.0), (0.07, 0.03, 0.25), angular_velocity=(0.3, 0.0, 0.0))
    engine = started(("bullet", precision, "substeps"), scene)
    engine.step(500)
    state = engine.get_states()[0]
    assert engine.contacts().point_count.min() >= 3
    np.testing.assert_allclose(state[2], 0.25, atol=1e-4)
    np.testing.assert_allclose(state[3], 1.0, atol=1e-4)
    assert np.abs(state[7:]).max() < 1e-2


@pytest.mark.parametrize("ground", GROUNDS)
def test_a_cone_on_its_side_lies_on_a_line(ground: str) -> None:
    """Its axis is as far from level as half its angle at the tip."""
    half = np.arctan2(0.5, 1.0)
    turn = np.pi / 2 + half + 0.05
    scene = on_ground(GROUNDS[ground])
    scene.add_body(
        Cone(0.5, 1.0),
        (0.0, 0.0, 0.36),
        (np.cos(turn / 2), 0.0, np.sin(turn / 2), 0.0),
        material=Material(rolling_friction=0.01),
    )
    engine = started(("bullet", "float32", "substeps"), scene)
    engine.step(1000)
    state = engine.get_states()[0]
    np.testing.assert_allclose(state[2], 0.75 * np.sin(half), atol=1e-3)
    assert np.abs(state[7:]).max() < 5e-3


@pytest.mark.parametrize("ground", GROUNDS)
def test_an_ellipsoid_settles_on_its_flat_side(ground: str) -> None:
    scene = on_ground(GROUNDS[ground])
    damped = Material(linear_damping=0.6, angular_damping=0.95, rolling_friction=0.002)
    scene.add_body(Ellipsoid((0.6, 0.4, 0.2)), (0.0, 0.0, 0.45), (0.9, 0.3, 0.3, 0.1), material=damped)
    scene.bodies.quaternion[0] /= np.linalg.norm(scene.bodies.quaternion[0])
    engine = started(("bullet", "float32", "substeps"), scene)
    engine.step(2500)
    np.testing.assert_allclose(engine.get_states()[0, 2], 0.2, atol=1e-3)


def test_an_ellipsoid_with_equal_radii_is_a_sphere() -> None:
    """It rolls down a slope of boxes as a sphere does, and both against their formula."""
    gravity = 9.81 * np.array([np.sin(0.2), 0.0, -np.cos(0.2)])
    scene = Scene(gravity=gravity)
    scene.add_static(Box((30.0, 30.0, 1.0)), (0.0, 0.0, -0.5))
    scene.add_bodies([Sphere(0.5), Ellipsoid((0.5, 0.5, 0.5))], [(0.0, -2.0, 0.5), (0.0, 2.0, 0.5)])
    engine = started(("bullet", "float32", "substeps"), scene)
    engine.step(400)
    np.testing.assert_allclose(engine.get_states()[:, 7], 5 / 7 * 9.81 * np.sin(0.2) * 0.8, rtol=0.01)


# ---- height fields -----------------------------------------------------------------------------------------------

SLIDING = {
    "box": (Box((0.5, 0.5, 0.5)), 0.25),
    "sphere": (Sphere(0.25), 0.25),
    "hull": (Compound((Part(Box((0.6, 0.4, 0.3))),)), 0.15),
    "cone": (Cone(0.3, 0.6), 0.15),
    "ellipsoid": (Ellipsoid((0.4, 0.3, 0.2)), 0.2),
}


def slide(ground: Any, shape: Any, height: float) -> np.ndarray:
    """Where a body is after a second on ground without friction, askew to the grid: far from it, if nothing catches."""
    scene = Scene()
    scene.add_static(ground, material=Material(friction=0.0))
    scene.add_body(shape, (-3.0, -1.0, height), linear_velocity=(4.0, 1.3, 0.0), material=Material(friction=0.0))
    engine = started(("bullet", "float32", "substeps"), scene)
    engine.step(500)
    return np.asarray(engine.get_states()[0])


@pytest.mark.parametrize("shape", SLIDING)
def test_nothing_catches_on_inner_edges_more_than_on_a_mesh(shape: str) -> None:
    field = HeightField(np.zeros((25, 25)), 0.4)
    on_field = slide(field, *SLIDING[shape])
    on_mesh = slide(TriangleMesh(field.vertices, field.triangles), *SLIDING[shape])
    expected = np.array([1.0, 0.3])
    lost_on_field, lost_on_mesh = (np.linalg.norm(state[:2] - expected) for state in (on_field, on_mesh))
    assert lost_on_field <= max(lost_on_mesh, 0.002)
    np.testing.assert_allclose(on_field[:2], expected, atol=0.002)
    np.testing.assert_allclose(on_field[2], SLIDING[shape][1], atol=2e-3)


def test_balls_rest_in_the_hollows_of_a_height_field_as_in_those_of_its_mesh() -> None:
    x = np.arange(33) * 0.25
    field = HeightField(0.3 * (2 + np.cos(np.pi * x)[None] + np.cos(np.pi * x)[:, None]), 0.25)
    ends = []
    for ground in (field, TriangleMesh(field.vertices, field.triangles)):
        scene = Scene()
        scene.add_static(ground)
        places = [(a, b, 1.5) for a in (-2.9, -1.1, 0.8) for b in (-1.2, 0.9)]
        scene.add_bodies(Sphere(0.2), places, material=Material(linear_damping=0.9, rolling_friction=0.005))
        engine = started(("bullet", "float32", "substeps"), scene)
        engine.step(1500)
        ends.append(engine.get_states())
    np.testing.assert_allclose(ends[0][:, :3], ends[1][:, :3], atol=0.03)
    over = ends[0][:, 2] - field.height_at(*ends[0][:, :2].T)
    assert (over > 0.19).all()
    assert np.abs(ends[0][:, 7:10]).max() < 0.05


def test_a_height_field_is_where_its_body_is() -> None:
    """Turned and moved, with rows and columns that differ."""
    field = HeightField(np.arange(12.0).reshape(3, 4) * 0.05, (0.5, 0.7))
    turn = np.array([np.cos(0.4), 0.0, 0.0, np.sin(0.4)])
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    scene.add_static(field, (1.0, 2.0, 3.0), turn)
    c, s = np.cos(0.8), np.sin(0.8)
    local = np.array([(-0.6, -0.5), (0.5, 0.3), (0.1, -0.2)])
    ground = field.height_at(*local.T)
    for (x, y), z in zip(local, ground, strict=True):
        scene.add_body(Sphere(0.01), (1.0 + c * x - s * y, 2.0 + s * x + c * y, 3.0 + z))
    engine = started(("bullet", "float64", "substeps"), scene)
    engine.contacts(now=True)
    assert engine.contacts().bodies.tolist() == [[0, -1], [1, -1], [2, -1]]
    np.testing.assert_allclose(engine.contacts().depth, 0.01, atol=1e-3)
