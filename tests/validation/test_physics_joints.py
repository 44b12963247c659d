"""Joints against textbook formulas: pendulum, catenary, cantilever, hinge, slider, spring."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from engine_support import BULLET, Kind, Make, gaps_of
from lapjoint import (
    FREE,
    LOCKED,
    WORLD,
    Ball,
    Box,
    Capsule,
    Fixed,
    Hinge,
    Material,
    Motor,
    Params,
    Scene,
    SixAxis,
    Slider,
    Sphere,
    Spring,
    make_engine,
)
from lapjoint.arrays import rotation as rot
from lapjoint.measures import kinetic_energy, potential_energy


@pytest.fixture(params=BULLET, ids="-".join)
def kind(request: pytest.FixtureRequest) -> Kind:
    """These promises are Bullet's; other engines have other tolerances."""
    kind: Kind = request.param
    return kind


G = 9.81
WEIGHTLESS = (0.0, 0.0, 0.0)
AXES = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (-1.0, 0.0, 0.0), (1.0, 2.0, -1.0)]


def unit(axis: tuple[float, float, float]) -> np.ndarray:
    return np.array(axis) / np.linalg.norm(axis)


def angle_about(axis: np.ndarray, quaternion: np.ndarray) -> float:
    return float(2 * np.arctan2(quaternion[1:] @ axis, quaternion[0]))


def rising_zeros(times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """When a sampled oscillation goes through zero upwards."""
    k = np.flatnonzero((values[:-1] < 0) & (values[1:] >= 0))
    return times[k] - values[k] * (times[k + 1] - times[k]) / (values[k + 1] - values[k])


# ---- hanging -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("joint", [Ball(), Hinge((0.0, 1.0, 0.0))], ids=["ball", "hinge"])
def test_a_pendulum_keeps_time(start: Make, joint: Ball | Hinge, length: float) -> None:
    """A rod that hangs by its end: T = 2 pi sqrt(I / (m g d)), I about the pivot."""
    amplitude = 0.05
    turn = rot.from_axis_angle((0.0, 1.0, 0.0), amplitude)
    scene = Scene(timestep=0.001 * np.sqrt(length))
    scene.add_body(Box((0.1 * length, 0.2 * length, length)), rot.rotate(turn, (0.0, 0.0, -length / 2)), turn)
    scene.add_joint(joint, 0, WORLD, (0.0, 0.0, 0.0))
    mass, inertia = scene.bodies.mass[0], scene.bodies.inertia[0][1, 1]
    period = 2 * np.pi * np.sqrt((inertia + mass * length**2 / 4) / (mass * G * length / 2))
    engine = start(scene)
    swing = []
    for _ in range(5000):
        engine.step()
        swing.append(engine.get_states()[0, 0])
    times = scene.timestep * np.arange(1, 5001)
    measured = np.diff(rising_zeros(times, np.array(swing)))
    assert len(measured) >= 2
    np.testing.assert_allclose(measured, period * (1 + amplitude**2 / 16), rtol=2e-3)
    assert max(swing[-2000:]) == pytest.approx(max(swing[:2000]), rel=0.01)
    assert gaps_of(engine)[1].max() < 1e-4 * length


@pytest.mark.slow
def test_a_chain_hangs_in_a_catenary(start: Make) -> None:
    links, length, span = 30, 10.0, 8.0
    link = length / links
    # It starts as a V of the same length, which is not a catenary by far.
    along = np.linspace(0.0, length, links + 1)
    depth = np.sqrt(length**2 - span**2) * np.minimum(along, length - along) / length
    points = np.stack([-span / 2 + along * span / length, 0 * along, -depth], axis=1)
    scene = Scene(timestep=0.005, iterations=200)
    scene.add_bodies(
        Capsule(0.02, link - 0.04),
        (points[1:] + points[:-1]) / 2,
        rot.between((0.0, 0.0, 1.0), points[1:] - points[:-1]),
        mass=1.0,
        inertia=np.diag([1.0, 1.0, 0.5]) * link**2 / 12,
        material=Material(linear_damping=0.8, angular_damping=0.8),
    )
    scene.add_joints(Ball(), range(links - 1), range(1, links), points[1:-1])
    scene.add_joints(Ball(), [0, links - 1], WORLD, points[[0, -1]])
    a = brentq(lambda a: 2 * a * np.sinh(span / (2 * a)) - length, 1.0, 100.0)

    def off(states: np.ndarray) -> float:
        curve = a * (np.cosh(states[:, 0] / a) - np.cosh(span / (2 * a)))
        return float(np.abs(states[:, 2] - curve).max()) / span

    engine = start(scene)
    assert off(scene.states) > 0.03
    engine.step(2000)
    assert np.abs(engine.get_states()[:, 7:10]).max() < 0.01
    assert off(engine.get_states()) < 0.002
    assert gaps_of(engine)[1].max() < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        {"solver": "sequential"},
        {"joints": "direct"},
        {"joints": "swept", "substeps": 1},
        {"joints": "swept"},
    ],
    ids=lambda given: "-".join(map(str, given.values())),
)
def test_a_swinging_chain_gains_no_energy(given: dict[str, Any]) -> None:
    """Thirty links that hang straight down, the lowest with 1 m/s and the others with less."""
    scene, link = Scene(timestep=0.002), 1 / 3
    depth = -link * (np.arange(30) + 0.5)
    places, speeds = np.zeros((30, 3)), np.zeros((30, 3))
    places[:, 2], speeds[:, 0] = depth, np.linspace(0.0, 1.0, 30)
    inertia = np.diag([1.0, 1.0, 0.5]) * link**2 / 12
    scene.add_bodies(Capsule(0.02, link - 0.04), places, linear_velocities=speeds, mass=1.0, inertia=inertia)
    scene.add_joints(Ball(), range(29), range(1, 30), [(0.0, 0.0, -link * (k + 1)) for k in range(29)])
    scene.add_joint(Ball(), 0, WORLD, (0.0, 0.0, 0.0))
    engine = make_engine(scene, Params.from_options(precision="float64", **given))
    engine.activate(np.arange(30), scene.states)

    def energy() -> float:
        states = engine.get_states()
        return kinetic_energy(scene, states) + potential_energy(scene, states)

    given_energy = kinetic_energy(scene, scene.states)
    before = energy()
    engine.step(5000)
    assert energy() - before < 0.05 * given_energy


def test_a_fixed_joint_holds_a_beam_under_its_load(start: Make) -> None:
    """Five blocks out from a wall, glued together; more iterations make the glue stiffer, and so does solving all at
    once."""
    sags = []
    given: tuple[dict[str, Any], ...] = ({"iterations": 50}, {"iterations": 500})
    for more in ({"joints": "swept"}, {"joints": "direct"}) if start.solver == "substeps" else given:
        scene = Scene()
        scene.add_bodies(Box((1.0, 0.5, 0.5)), [(k + 0.5, 0.0, 0.0) for k in range(5)])
        scene.add_joint(Fixed(), 0, WORLD, (0.0, 0.0, 0.0))
        scene.add_joints(Fixed(), range(4), range(1, 5), [(k + 1.0, 0.0, 0.0) for k in range(4)])
        engine = start(scene, **more)
        engine.step(500)
        tip = engine.get_states([4])[0]
        sags.append(float(np.linalg.norm(tip[:3] - [4.5, 0.0, 0.0])))
        assert abs(tip[3]) > 1 - 1e-6
        assert gaps_of(engine)[1].max() < 1e-3
    assert sags[0] < 0.01
    assert sags[1] < 0.2 * sags[0]


# ---- hinge and slider --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("velocity", [1.0, -1.5])
def test_a_hinge_motor_turns_a_against_b(
    start: Make, axis: tuple[float, float, float], velocity: float, rounding: float
) -> None:
    scene = Scene(gravity=WEIGHTLESS)
    scene.add_bodies(Sphere(0.5), np.zeros((3, 3)), mass=2.0)
    scene.ignore([0, 0, 1], [1, 2, 2])
    scene.add_joint(Hinge(axis, motor=Motor(velocity, 1e4)), 0, WORLD, (0.0, 0.0, 0.0))
    scene.add_joint(Hinge(axis, motor=Motor(velocity, 1e4)), 1, 2, (0.0, 0.0, 0.0))
    engine = start(scene)
    engine.step(100)
    atol = max(100 * rounding, 1e-9)  # a row in a matrix is a million times as stiff as its bodies
    spins = engine.get_states()[:, 10:]
    np.testing.assert_allclose(spins[0], velocity * unit(axis), atol=atol)
    np.testing.assert_allclose(spins[1] - spins[2], velocity * unit(axis), atol=atol)
    np.testing.assert_allclose(spins[1] + spins[2], 0.0, atol=atol)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("velocity", [1.0, -1.5])
def test_a_slider_motor_moves_a_against_b(
    start: Make, axis: tuple[float, float, float], velocity: float, rounding: float
) -> None:
    scene = Scene(gravity=WEIGHTLESS)
    scene.add_bodies(Sphere(0.5), np.zeros((3, 3)), mass=2.0)
    scene.ignore([0, 0, 1], [1, 2, 2])
    scene.add_joint(Slider(axis, motor=Motor(velocity, 1e4)), 0, WORLD, (0.0, 0.0, 0.0))
    scene.add_joint(Slider(axis, motor=Motor(velocity, 1e4)), 1, 2, (0.0, 0.0, 0.0))
    engine = start(scene)
    engine.step(100)
    speeds = engine.get_states()[:, 7:10]
    np.testing.assert_allclose(speeds[0], velocity * unit(axis), atol=100 * rounding)
    np.testing.assert_allclose(speeds[1] - speeds[2], velocity * unit(axis), atol=100 * rounding)


@pytest.mark.parametrize("size", [0.05, 1.0])
def test_a_motor_is_as_strong_as_it_says(start: Make, size: float) -> None:
    scene = Scene(gravity=WEIGHTLESS)
    scene.add_bodies(Box((size, size, size)), [(0.0, 0.0, 0.0), (9.0, 0.0, 0.0)], mass=6.0)
    scene.add_joint(Slider((0.0, 0.0, 1.0), motor=Motor(1e3, 3.0)), 0, WORLD, (0.0, 0.0, 0.0))
    scene.add_joint(Hinge((0.0, 0.0, 1.0), motor=Motor(1e3, 2.0 * size**2)), 1, WORLD, (9.0, 0.0, 0.0))
    engine = start(scene)
    engine.step(500)
    states = engine.get_states()
    assert states[0, 9] == pytest.approx(3.0 / 6.0, rel=1e-4)
    assert states[1, 12] == pytest.approx(2.0, rel=1e-4)  # the moment of inertia is size^2


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize(("velocity", "stop"), [(1.0, 0.9), (-1.0, -0.4)])
def test_a_hinge_stops_at_its_limits(
    start: Make, axis: tuple[float, float, float], velocity: float, stop: float
) -> None:
    scene = Scene(gravity=WEIGHTLESS)
    scene.add_body(Box((1.0, 0.6, 0.4)), mass=1.0)
    scene.add_joint(Hinge(axis, (-0.4, 0.9), Motor(velocity, 10.0)), 0, WORLD, (0.0, 0.0, 0.0))
    engine = start(scene)
    engine.step(700)
    assert angle_about(unit(axis), engine.get_states()[0, 3:7]) == pytest.approx(stop, abs=1e-3)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize(("velocity", "stop"), [(0.5, 0.3), (-0.5, -0.2)])
def test_a_slider_stops_at_its_limits(
    start: Make, axis: tuple[float, float, float], velocity: float, stop: float
) -> None:
    scene = Scene(gravity=WEIGHTLESS)
    scene.add_body(Box((1.0, 0.6, 0.4)), (1.0, 0.0, 0.0), mass=1.0)
    scene.add_joint(Slider(axis, (-0.2, 0.3), Motor(velocity, 10.0)), 0, WORLD, (0.0, 0.0, 0.0))
    engine = start(scene)
    engine.step(700)
    state = engine.get_states()[0]
    np.testing.assert_allclose(state[:3] - [1.0, 0.0, 0.0], stop * unit(axis), atol=1e-3)
    assert abs(state[3]) > 1 - 1e-6
    assert gaps_of(engine)[1].max() < 1e-3


def test_a_trapdoor_falls_open_as_far_as_its_hinge_lets_it(start: Make) -> None:
    scene = Scene()
    scene.add_body(Box((1.0, 1.0, 0.1)), (0.5, 0.0, 0.0), material=Material(angular_damping=0.5))
    scene.add_joint(Hinge((0.0, 1.0, 0.0), (-0.1, 0.8)), 0, WORLD, (0.0, 0.0, 0.0))
    engine = start(scene)
    engine.step(2000)
    assert angle_about(np.array([0.0, 1.0, 0.0]), engine.get_states()[0, 3:7]) == pytest.approx(0.8, abs=0.01)


# ---- springs -----------------------------------------------------------------------------------------------------


def one_free(axis: int) -> dict[str, tuple[tuple[float, float], ...]]:
    moves = [FREE if k == axis else LOCKED for k in range(6)]
    return {"linear": tuple(moves[:3]), "angular": tuple(moves[3:])}


@pytest.mark.parametrize("size", [0.05, 1.0])
@pytest.mark.parametrize("axis", range(6))
def test_a_spring_swings_at_its_frequency(start: Make, axis: int, size: float) -> None:
    """omega = sqrt(k / m), or sqrt(k / I) for a rotation: here 10 rad/s."""
    scene = Scene(gravity=WEIGHTLESS, timestep=0.001)
    mass = 6.0  # and a moment of inertia of size^2
    scene.add_body(Box((size, size, size)), mass=mass)
    stiffness = 100.0 * (mass if axis < 3 else size**2)
    scene.add_joint(SixAxis(**one_free(axis), springs={axis: Spring(stiffness)}), 0, WORLD, (0.0, 0.0, 0.0))
    engine = start(scene)
    away, direction = scene.states.copy(), np.eye(3)[axis % 3]
    if axis < 3:
        away[0, axis] = 0.1 * size
    else:
        away[0, 3:7] = rot.from_axis_angle(direction, 0.1)
    engine.set_states([0], away)
    swing = []
    for _ in range(2000):
        engine.step()
        state = engine.get_states()[0]
        swing.append(state[axis] / size if axis < 3 else angle_about(direction, state[3:7]))
    zeros = rising_zeros(0.001 * np.arange(1, 2001), np.array(swing))
    assert 2 * np.pi / np.diff(zeros).mean() == pytest.approx(10.0, rel=0.01)
    assert max(swing[-700:]) == pytest.approx(0.1, rel=0.01)


@pytest.mark.parametrize("rest", [0.0, 0.3])
def test_a_spring_gives_way_by_weight_over_stiffness(start: Make, rest: float) -> None:
    scene = Scene(timestep=0.001)
    scene.add_body(Sphere(0.5), mass=2.0)
    scene.add_joint(SixAxis(**one_free(2), springs={2: Spring(200.0, 20.0, rest)}), 0, WORLD, (0.0, 0.0, 0.0))
    engine = start(scene)
    engine.step(3000)
    # Substeps swing at the right frequency, but give way by less, by damping times substep over twice the mass: 0.125%.
    less = 1.3e-3 * 2.0 * G / 200.0 if start.solver == "substeps" else 1e-4
    assert engine.get_states()[0, 2] == pytest.approx(rest - 2.0 * G / 200.0, abs=less)


@pytest.mark.parametrize("axis", range(3, 6))
def test_a_torsion_spring_comes_to_rest_at_its_angle(start: Make, axis: int) -> None:
    scene = Scene(gravity=WEIGHTLESS, timestep=0.002)
    scene.add_body(Box((1.0, 1.0, 1.0)), mass=6.0)
    scene.add_joint(SixAxis(**one_free(axis), springs={axis: Spring(100.0, 20.0, 0.3)}), 0, WORLD, (0.0, 0.0, 0.0))
    engine = start(scene)
    engine.step(1000)
    assert angle_about(np.eye(3)[axis - 3], engine.get_states()[0, 3:7]) == pytest.approx(0.3, abs=1e-3)


def test_a_damped_spring_dies_down_at_half_damping_over_mass(start: Make) -> None:
    scene = Scene(gravity=WEIGHTLESS, timestep=0.001)
    scene.add_body(Sphere(0.5), mass=2.0)
    scene.add_joint(SixAxis(**one_free(0), springs={0: Spring(200.0, 4.0)}), 0, WORLD, (0.0, 0.0, 0.0))
    engine = start(scene)
    away = scene.states.copy()
    away[0, 0] = 0.1
    engine.set_states([0], away)
    swing = []
    for _ in range(2500):
        engine.step()
        swing.append(engine.get_states()[0, 0])
    x = np.array(swing)
    peaks = 1 + np.flatnonzero((x[1:-1] > x[:-2]) & (x[1:-1] >= x[2:]))
    rate = -np.diff(np.log(x[peaks])) / np.diff(0.001 * peaks)
    np.testing.assert_allclose(rate, 4.0 / (2 * 2.0), rtol=0.02)


@pytest.mark.parametrize("axis", range(6))
@pytest.mark.parametrize(("velocity", "stop"), [(1.0, 0.5), (-1.0, -0.2)])
def test_six_axes_have_limits_and_motors(start: Make, axis: int, velocity: float, stop: float) -> None:
    limits = [(-0.2, 0.5) if k == axis else LOCKED for k in range(6)]
    scene = Scene(gravity=WEIGHTLESS)
    scene.add_body(Box((1.0, 1.0, 1.0)), mass=6.0)
    joint = SixAxis(tuple(limits[:3]), tuple(limits[3:]), motors={axis: Motor(velocity, 50.0)})
    scene.add_joint(joint, 0, WORLD, (0.0, 0.0, 0.0))
    engine = start(scene)
    engine.step(500)
    state = engine.get_states()[0]
    moved = [*state[:3], *(angle_about(np.eye(3)[k], state[3:7]) for k in range(3))]
    np.testing.assert_allclose(moved, stop * np.eye(6)[axis], atol=1e-3)
