"""Contacts of the substep solver against textbook formulas: friction, rolling, impact.

Tolerances are a few times what was measured at 2 ms and four substeps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lapjoint import Box, Capsule, Cone, Cylinder, Ellipsoid, Material, Params, Plane, Scene, Sphere, make_engine
from lapjoint.arrays import rotation as rot
from lapjoint.measures import kinetic_energy
from substep_support import PRECISIONS, WEIGHTLESS, G, started

every_precision = pytest.mark.parametrize("precision", PRECISIONS)
every_ground = pytest.mark.parametrize("ground", ["plane", "box"])
H = 0.002


def on_ground(ground: str, material: Material, turn: np.ndarray = rot.IDENTITY) -> Scene:
    """A scene with a plane, or with a static box whose upper face lies in it."""
    scene = Scene(timestep=H)
    if ground == "plane":
        scene.add_static(Plane(), quaternion=turn, material=material)
    else:
        scene.add_static(Box((40.0, 40.0, 1.0)), rot.rotate(turn, (0.0, 0.0, -0.5)), turn, material=material)
    return scene


# ---- slopes ------------------------------------------------------------------------------------------------------


def slide(degrees: float, heading: float, ground: str, friction: float, precision: str, steps: int) -> np.ndarray:
    """A box on a slope: metres it moves, its acceleration downhill and aside [m/s^2]."""
    direction = np.array([np.cos(heading), np.sin(heading), 0.0])
    turn = rot.from_axis_angle(np.cross([0.0, 0.0, 1.0], direction), np.radians(degrees))
    scene = on_ground(ground, Material(friction=friction), turn)
    scene.add_body(Box((1.0, 1.0, 0.4)), rot.rotate(turn, (0.0, 0.0, 0.2)), turn, material=Material(friction=friction))
    engine = started(scene, precision)
    engine.step(50)
    before = engine.get_states()[0]
    engine.step(steps)
    change = engine.get_states()[0] - before
    downhill = rot.rotate(turn, direction)
    along = change[7:10] @ downhill
    aside = np.linalg.norm(change[7:10] - along * downhill)
    return np.array([np.linalg.norm(change[:3]), along / (steps * H), aside / (steps * H)])


HEADINGS = np.linspace(0.0, 2 * np.pi, 16, endpoint=False)


@every_precision
@every_ground
def test_a_box_slides_as_coulomb_says_whatever_the_heading(ground: str, precision: str) -> None:
    _, along, aside = np.transpose([slide(30.0, heading, ground, 0.3, precision, 250) for heading in HEADINGS])
    # On a plane Bullet's manifolds have two to four points while a box slides, and it rocks.
    np.testing.assert_allclose(along, G * (0.5 - 0.3 * np.sqrt(0.75)), rtol=1e-2 if ground == "plane" else 1e-4)
    assert aside.max() < (0.15 if ground == "plane" else 1e-3)


@every_precision
@every_ground
def test_a_box_just_above_the_friction_angle_slides_slowly(ground: str, precision: str) -> None:
    slope = np.radians(26.8)  # the friction angle is 26.57 degrees
    for heading in HEADINGS[::4]:
        along = slide(26.8, heading, ground, 0.5, precision, 300)[1]
        assert along == pytest.approx(G * (np.sin(slope) - 0.5 * np.cos(slope)), rel=0.02)


@every_precision
@every_ground
def test_a_box_just_below_it_stays_whatever_the_heading(ground: str, precision: str) -> None:
    assert max(slide(26.3, heading, ground, 0.5, precision, 250)[0] for heading in HEADINGS) < 1e-6


@every_precision
def test_nothing_creeps_in_twenty_seconds(precision: str) -> None:
    assert slide(25.0, 0.7, "box", 0.5, precision, 10_000)[0] < 1e-6
    slope = 0.03  # the arm over the radius is 0.04
    turn = rot.from_axis_angle((0.0, 1.0, 0.0), slope)
    scene = on_ground("plane", Material(friction=0.8), turn)
    rough = Material(friction=0.8, rolling_friction=0.02)
    scene.add_body(Sphere(0.5), rot.rotate(turn, (0.0, 0.0, 0.5)), material=rough)
    engine = started(scene, precision)
    engine.step(50)
    before = engine.get_states()[0, :3]
    engine.step(10_000)
    assert np.abs(engine.get_states()[0, :3] - before).max() < 1e-6


# ---- rolling and spinning ----------------------------------------------------------------------------------------


@every_precision
@pytest.mark.parametrize("arm", [0.0, 0.01])
def test_a_ball_rolls_down_a_slope(arm: float, precision: str) -> None:
    slope, radius = np.radians(20.0), 0.5
    turn = rot.from_axis_angle((0.0, 1.0, 0.0), slope)
    up, downhill = rot.rotate(turn, (0.0, 0.0, 1.0)), rot.rotate(turn, (1.0, 0.0, 0.0))
    scene = on_ground("plane", Material(friction=0.5), turn)
    scene.add_body(Sphere(radius), radius * up, material=Material(friction=0.5, rolling_friction=arm))
    engine = started(scene, precision)
    engine.step(50)
    before = engine.get_states()[0]
    engine.step(500)
    after = engine.get_states()[0]
    expected = G * (np.sin(slope) - arm / radius * np.cos(slope)) / 1.4
    assert (after[7:10] - before[7:10]) @ downhill == pytest.approx(expected, rel=1e-4)
    slip = after[7:10] + np.cross(after[10:], -radius * up)
    assert np.linalg.norm(slip) < 1e-5


@every_precision
def test_rolling_friction_slows_a_ball_and_stops_it(precision: str) -> None:
    scene = on_ground("plane", Material(friction=0.5))
    scene.add_body(
        Sphere(0.5),
        (0.0, 0.0, 0.5),
        linear_velocity=(1.0, 0.0, 0.0),
        angular_velocity=(0.0, 2.0, 0.0),
        material=Material(friction=0.5, rolling_friction=0.02),
    )
    engine = started(scene, precision)
    engine.step(50)
    before = engine.get_states()[0, 7]
    engine.step(500)
    assert before - engine.get_states()[0, 7] == pytest.approx(0.02 * G / (1.4 * 0.5), rel=2e-4)
    engine.step(2000)
    assert np.abs(engine.get_states()[0, 7:]).max() < 1e-5


SPINNING = {"box": (Box((1.0, 1.0, 0.4)), np.sqrt(0.5)), "cylinder": (Cylinder(0.5, 0.4), 0.5)}


@every_precision
@every_ground
@pytest.mark.parametrize("shape", SPINNING)
def test_a_spinning_body_is_slowed_at_its_rim(shape: str, ground: str, precision: str) -> None:
    """Points lie on corners and on the rim: the torque is mu m g times how far they are from the middle. Where one of
    four is missing, friction acts beside the centre of mass, and is up to a seventh more."""
    solid, lever = SPINNING[shape]
    scene = on_ground(ground, Material(friction=0.3))
    scene.add_body(solid, (0.0, 0.0, 0.2), angular_velocity=(0.0, 0.0, 4.0), material=Material(friction=0.3))
    engine = started(scene, precision)
    engine.step(20)
    before = engine.get_states()[0, 12]
    engine.step(80)
    deceleration = (before - engine.get_states()[0, 12]) / (80 * H)
    inertia = scene.bodies.inertia[0][2, 2]
    assert deceleration == pytest.approx(0.3 * scene.bodies.mass[0] * G * lever / inertia, rel=0.16)
    engine.step(500)
    assert abs(engine.get_states()[0, 12]) < 1e-3
    assert np.linalg.norm(engine.get_states()[0, :2]) < 0.02


def test_a_ball_spins_on_about_the_normal() -> None:
    scene = on_ground("plane", Material())
    scene.add_body(Sphere(0.5), (0.0, 0.0, 0.5), angular_velocity=(0.0, 0.0, 4.0))
    engine = started(scene)
    engine.step(500)
    assert engine.get_states()[0, 12] == pytest.approx(4.0, rel=1e-9)


# ---- impact ------------------------------------------------------------------------------------------------------


@every_precision
@every_ground
@pytest.mark.parametrize("restitution", [0.0, 0.3, 0.5, 0.8, 1.0])
def test_a_ball_bounces_with_its_share_of_speed_and_height(restitution: float, ground: str, precision: str) -> None:
    surface = Material(restitution=restitution)
    scene = on_ground(ground, surface)
    scene.add_body(Sphere(0.1), (0.0, 0.0, 1.1), material=surface)
    engine = started(scene, precision)
    heights, speeds = [], []
    for _ in range(750):
        engine.step()
        heights.append(engine.get_states()[0, 2] - 0.1)
        speeds.append(engine.get_states()[0, 9])
    impact = int(np.argmin(speeds[:260])) + 2
    assert min(heights) > -1e-4, "it is met at the surface"
    squares = np.square(speeds[impact : impact + 5]) + 2 * G * np.array(heights[impact : impact + 5])
    assert np.sqrt(max(squares.max(), 0.0) / (2 * G)) == pytest.approx(restitution, rel=2e-3, abs=1e-4)
    assert max(heights[impact:]) == pytest.approx(restitution**2, rel=4e-3, abs=1e-4)


@every_precision
@every_ground
@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_a_box_that_lands_flat_stays_flat(restitution: float, ground: str, precision: str) -> None:
    surface = Material(restitution=restitution)
    scene = on_ground(ground, surface)
    yaw = rot.from_axis_angle((0.0, 0.0, 1.0), 0.3)
    scene.add_body(Box((0.4, 0.4, 0.4)), (0.013, 0.021, 1.2), yaw, material=surface)
    engine = started(scene, precision)
    heights, speeds, spins = [], [], []
    for _ in range(330):
        engine.step()
        heights.append(engine.get_states()[0, 2] - 0.2)
        speeds.append(engine.get_states()[0, 9])
        spins.append(np.abs(engine.get_states()[0, 10:]).max())
    landed = int(np.argmin(speeds)) + 2
    assert max(heights[landed:]) == pytest.approx(restitution**2, rel=1e-2, abs=1e-4)
    assert max(spins) < (1e-4 if restitution else 0.04)


@every_precision
@pytest.mark.parametrize("shape", [Sphere(0.15), Box((0.25, 0.25, 0.25))], ids=["sphere", "box"])
@pytest.mark.parametrize("restitution", [0.0, 1.0])
@pytest.mark.slow
def test_a_closed_scene_without_friction_gains_no_energy(
    restitution: float, shape: Sphere | Box, precision: str
) -> None:
    """With restitution 1 there is about 1% less after 20 s: what comes together slower than 0.2 m/s stays together."""
    smooth = Material(friction=0.0, restitution=restitution)
    scene = Scene(timestep=H, gravity=WEIGHTLESS)
    for axis in range(3):
        size = tuple(np.where(np.arange(3) == axis, 1.0, 4.0))
        for side in (-1.5, 1.5):
            scene.add_static(Box(size), side * np.eye(3)[axis], material=smooth)
    places = np.stack(np.meshgrid(*[[-0.6, 0.0, 0.6]] * 3), axis=-1).reshape(-1, 3)
    speeds = np.random.default_rng(1).normal(size=(27, 3))
    scene.add_bodies(shape, places, linear_velocities=speeds, material=smooth)
    engine = started(scene, precision)
    start, energies = kinetic_energy(scene, scene.states), []
    for _ in range(100):
        engine.step(100)
        energies.append(kinetic_energy(scene, engine.get_states()) / start)
    assert np.abs(engine.get_states()[:, :3]).max() < 0.95, "nothing leaves the box"
    assert max(energies) < 1.0001
    assert energies[-1] > 0.98 if restitution == 1.0 else energies[-1] < 0.01


# ---- overlap -----------------------------------------------------------------------------------------------------


@every_precision
def test_a_ball_in_the_ground_comes_out_without_a_jump(precision: str) -> None:
    scene = on_ground("plane", Material())
    scene.add_body(Sphere(0.5), (0.0, 0.0, 0.4))
    engine = started(scene, precision)
    heights = []
    for _ in range(300):
        engine.step()
        heights.append(engine.get_states()[0, 2])
    assert heights[-1] == pytest.approx(0.5, abs=1e-4)
    assert max(heights) < 0.5 + 1e-4
    assert heights[5] < 0.4 + 6 * H * 1.01, "no faster than 1 m/s"


@every_precision
@pytest.mark.parametrize(("count", "rise"), [(1, 1e-6), (2, 0.03), (4, 0.35)])
def test_overlapping_boxes_come_apart_with_a_little_jump(count: int, rise: float, precision: str) -> None:
    """By 2 cm each. One sweep takes back most of the push, but not through a stack: two rise by 2 cm, four by 28 cm."""
    scene = on_ground("plane", Material())
    scene.add_bodies(Box((1.0, 1.0, 1.0)), [(0.0, 0.0, 0.49 + 0.98 * k) for k in range(count)])
    engine = started(scene, precision)
    top = 0.0
    for _ in range(400):
        engine.step()
        top = max(top, engine.get_states()[:, 2].max())
    assert top < count - 0.5 + rise


@every_precision
def test_an_overlapping_heap_does_not_explode(precision: str) -> None:
    """27 boxes that overlap by a tenth, weightless: they drift apart."""
    scene = Scene(timestep=H, gravity=WEIGHTLESS)
    places = 0.9 * np.stack(np.meshgrid(*[np.arange(3.0)] * 3), axis=-1).reshape(-1, 3)
    scene.add_bodies(Box((1.0, 1.0, 1.0)), places)
    engine = started(scene, precision)
    for _ in range(200):
        engine.step()
        assert np.linalg.norm(engine.get_states()[:, 7:10], axis=1).max() < 3.5
    engine.contacts(now=True)
    assert engine.contacts().penetration < 1e-3


@pytest.mark.parametrize(
    "round_one", [Cylinder(0.35, 0.8), Capsule(0.2, 0.5), Cone(0.35, 0.8), Ellipsoid((0.45, 0.3, 0.2))]
)
@pytest.mark.parametrize("box_first", [True, False])
def test_bodies_inside_each_other_are_pushed_apart_whichever_comes_first(round_one: Any, box_first: bool) -> None:
    """Deep inside, and where they touch with sides and edges, contacts are closest points, which have a direction."""
    rng = np.random.default_rng(5)
    scene, count = Scene(gravity=(0.0, 0.0, 0.0)), 20
    turns = rng.normal(size=(count, 2, 4))
    turns /= np.linalg.norm(turns, axis=2, keepdims=True)
    for k, (one, other) in enumerate(turns):
        place, away = np.array([5.0 * k, 0.0, 0.0]), rng.normal(size=3)
        away *= 0.3 / np.linalg.norm(away)
        pair = [(Box((0.5, 0.4, 0.4)), place, one), (round_one, place + away, other)]
        for shape, position, turn in pair if box_first else pair[::-1]:
            scene.add_body(shape, position, turn)
    engine = make_engine(scene, Params())
    engine.activate(np.arange(2 * count), scene.states)
    engine.step(400)
    contacts = engine.contacts()
    assert len(contacts) == 0 or contacts.depth.max() < 0.03
