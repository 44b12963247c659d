"""Kinematic bodies and moving surfaces against what mechanics says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapjoint import (
    Box,
    ConstantVelocity,
    Keyframes,
    Material,
    Oscillation,
    Params,
    Plane,
    Rotation,
    Scene,
    Simulation,
    Sphere,
    TriangleMesh,
)
from lapjoint.scenes.drum import drum_shell
from substep_support import WEIGHTLESS, G, started

DEFAULT: dict[str, Any] = {"timestep": 0.002}
CUBE = Box((0.5, 0.5, 0.5))
HALF = 0.25


def cube_on(motion: Any = None, surface_velocity: Any = (0, 0, 0), friction: float = 0.5, **cube: Any) -> Scene:
    """A cube of 0.5 m on a plate whose top is at zero."""
    scene, rough = Scene(**DEFAULT), Material(friction=friction)
    options: dict[str, Any] = {"material": rough, "surface_velocity": surface_velocity}
    scene.add_kinematic(Box((20.0, 20.0, 0.2)), (0.0, 0.0, -0.1), motion=motion, **options)
    scene.add_body(CUBE, (0.0, 0.0, HALF), material=rough, **cube)
    return scene


# ---- belts -----------------------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(st.floats(0.5, 3.0), st.floats(0.2, 0.9), st.floats(0, 2 * np.pi), st.sampled_from(["float32", "float64"]))
def test_a_box_on_a_belt_slips_until_it_has_the_belt_s_speed(
    speed: float, friction: float, heading: float, precision: str
) -> None:
    """After v / (mu g), and a way of v^2 / (2 mu g) less than the belt's."""
    along = np.array([np.cos(heading), np.sin(heading), 0.0])
    engine = started(cube_on(surface_velocity=speed * along, friction=friction), precision)
    slips = speed / (friction * G)
    steps = int(slips / 2 / 0.002)
    engine.step(steps)
    half = engine.get_states()[0]
    assert half[7:10] @ along == pytest.approx(friction * G * steps * 0.002, rel=1e-3)
    engine.step(2 * steps + 20)
    end, time = engine.get_states()[0], (3 * steps + 20) * 0.002
    assert end[7:10] == pytest.approx(speed * along, abs=1e-3 * speed)
    assert speed * time - end[:3] @ along == pytest.approx(speed**2 / (2 * friction * G), rel=0.01)


def test_a_surface_velocity_across_the_surface_does_nothing() -> None:
    engine = started(cube_on(surface_velocity=(0.0, 0.0, 3.0)))
    engine.step(200)
    assert engine.get_states()[0] == pytest.approx([0, 0, HALF, 1, *[0] * 9], abs=1e-5)


def test_a_disc_that_turns_under_a_box_turns_it() -> None:
    """A belt's angular velocity is about the body's position: the box turns on the spot."""
    engine = started(cube_on(surface_velocity=(0, 0, 0, 0, 0, 2.0)))
    engine.step(500)
    state = engine.get_states()[0]
    assert state[10:] == pytest.approx([0, 0, 2.0], abs=1e-3)
    assert np.linalg.norm(state[7:9]) < 1e-3


# ---- platforms -------------------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(st.tuples(*[st.floats(-3, 3)] * 3), st.sampled_from(["float32", "float64"]))
def test_a_box_on_a_platform_in_steady_motion_rests_on_it(velocity: tuple[float, float, float], precision: str) -> None:
    rests = started(cube_on(), precision)
    moves = started(cube_on(ConstantVelocity(velocity), linear_velocity=velocity), precision)
    for engine in (rests, moves):
        engine.step(300)
    way = np.array([*np.multiply(velocity, 0.6), 0, 0, 0, 0, *velocity, 0, 0, 0])
    tolerance = 1e-10 if precision == "float64" else 2e-4
    assert moves.get_states()[0] - way == pytest.approx(rests.get_states()[0], abs=tolerance)


@pytest.mark.parametrize(("share", "is_thrown"), [(0.7, False), (0.95, False), (1.1, True), (2.0, True)])
def test_a_plate_that_shakes_throws_what_it_accelerates_away_from(share: float, is_thrown: bool) -> None:
    frequency = 4.0
    amplitude = share * G / (2 * np.pi * frequency) ** 2
    engine = started(cube_on(Oscillation((0, 0, amplitude), frequency, phase=-np.pi / 2)))
    gaps = []
    for step in range(1, 500):
        engine.step()
        plate = amplitude * (1 - np.cos(2 * np.pi * frequency * step * 0.002))
        gaps.append(engine.get_states()[0, 2] - HALF - plate)
    assert min(gaps) > -2e-5
    assert (max(gaps) > 1e-4) == is_thrown
    if not is_thrown:
        assert max(gaps) < 3e-5


def test_a_box_at_the_rim_of_a_turntable_goes_round_with_it() -> None:
    """It holds as long as mu g is more than omega^2 r."""
    for rate, holds in ((1.4, True), (2.0, False)):
        scene = cube_on(Rotation((0, 0, 1), rate, about=(0, 0, 0)))
        state = scene.states[0].copy()
        state[[0, 8, 12]] = 2.0, 2.0 * rate, rate
        scene.set_states([0], state)
        engine = started(scene)
        engine.step(500)
        end, angle = engine.get_states()[0], rate * 1.0
        there = [2 * np.cos(angle), 2 * np.sin(angle), HALF]
        assert (np.linalg.norm(end[:3] - there) < 0.01) == holds


# ---- drums, pushers and rackets --------------------------------------------------------------------------------------


def test_a_ball_in_a_turning_drum_is_carried_up_its_wall() -> None:
    """With rolling friction of arm b it settles where the slope's sine is b / r, on the side that goes up."""
    scene = Scene(**DEFAULT)
    material = Material(friction=0.8, rolling_friction=0.02)
    shell = drum_shell(1.0, 1.0, 48)
    assert isinstance(shell, TriangleMesh)
    scene.add_kinematic(shell, motion=Rotation((0, 1, 0), -1.5), material=material)
    scene.add_body(Sphere(0.15), (0.0, 0.0, -0.84), material=material)
    engine = started(scene)
    engine.step(2000)
    sides, spins = [], []
    for _ in range(1000):
        engine.step()
        state = engine.get_states()[0]
        sides.append(state[0])
        spins.append(state[11])
    assert np.mean(sides) > 0.1, "the drum's floor goes to +x"
    assert np.mean(spins) == pytest.approx(-1.5 / 0.15, rel=0.05), "it rolls on the spot"


def test_a_pusher_pushes_a_row_of_boxes_at_its_speed() -> None:
    """Friction with the ground does not stop it, whatever they weigh: their momentum is its speed times their mass."""
    scene = Scene(**DEFAULT)
    scene.add_static(Plane())
    scene.add_kinematic(Box((0.2, 1.0, 1.0)), (-0.1, 0, 0.6), motion=ConstantVelocity((0.8, 0, 0)))
    scene.add_bodies(CUBE, [(HALF + 0.5 * k, 0, HALF) for k in range(5)], mass=[1.0, 3.0, 2.0, 5.0, 4.0])
    engine = started(scene)
    engine.step(500)
    states = engine.get_states()
    assert scene.bodies.mass @ states[:, 7] == pytest.approx(15 * 0.8, rel=1e-3)
    assert states[:, 0] == pytest.approx(0.8 + HALF + 0.5 * np.arange(5), abs=1e-3)
    assert np.abs(states[:, [1, 8, 9]]).max() < 1e-3


@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_a_racket_gives_a_ball_its_speed_and_what_bounces(restitution: float) -> None:
    """u + e (u - v) for a racket of speed u and a ball of speed v."""
    scene, material = Scene(gravity=WEIGHTLESS, **DEFAULT), Material(restitution=restitution)
    scene.add_kinematic(Box((0.2, 1, 1)), (-0.6, 0, 0), motion=ConstantVelocity((2.0, 0, 0)), material=material)
    scene.add_body(Sphere(0.25), linear_velocity=(-1.0, 0.0, 0.0), material=material)
    engine = started(scene)
    engine.step(150)
    assert engine.get_states()[0, 7] == pytest.approx(2.0 + restitution * 3.0, rel=0.01)


def test_a_fast_thin_paddle_is_not_missed() -> None:
    """It moves by half its own thickness and a sixth of the ball in a step."""
    scene = Scene(gravity=WEIGHTLESS, timestep=0.005)
    scene.add_kinematic(Box((0.1, 1, 1)), (-2.0, 0, 0), motion=ConstantVelocity((10.0, 0, 0)))
    scene.add_body(Sphere(0.15))
    engine = started(scene)
    engine.step(100)
    state = engine.get_states()[0]
    assert state[0] > 10 * 0.5 - 2.0
    assert state[7] == pytest.approx(10.0, rel=0.1)


def test_a_plane_can_move() -> None:
    scene = Scene(**DEFAULT)
    scene.add_kinematic(Plane(), motion=Keyframes((0, 0.2, 0.6), [(0, 0, 0), (0, 0, 0), (0, 0, 0.4)]))
    scene.add_body(CUBE, (0.0, 0.0, HALF))
    engine = started(scene)
    engine.step(290)
    assert engine.get_states()[0, [2, 9]] == pytest.approx([HALF + 0.38, 1.0], abs=1e-3)
    engine.step(500)
    assert engine.get_states()[0, [2, 9]] == pytest.approx([HALF + 0.4, 0.0], abs=1e-3)


# ---- on many workers -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["tight", "blend"])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_stack_on_a_lift_and_a_row_on_a_belt_on_many_workers(workers: int, coupling: str) -> None:
    """Boxes on a belt keep its speed, a stack on a lift rises with it, whoever has which of them."""
    scene, rough = Scene(**DEFAULT), Material(friction=0.6)
    lift = scene.add_kinematic(
        Box((2, 2, 0.2)), (0, 0, -0.1), motion=Oscillation((0, 0, 0.1), 0.5, -np.pi / 2), material=rough
    )
    scene.add_static(Box((40, 2, 0.2)), (20, 5, -0.1), material=rough, surface_velocity=(1.5, 0, 0))
    scene.add_bodies(CUBE, [(0, 0, HALF + 0.5 * k) for k in range(4)], material=rough)
    scene.add_bodies(CUBE, [(1 + 0.6 * k, 5, HALF) for k in range(8)], material=rough)
    params = Params(workers=workers, coupling=coupling, runtime="inline")
    with Simulation(scene, params) as simulation:
        simulation.step(400)
        states, platform = simulation.states, simulation.kinematic.states[0]
        assert platform[2] == pytest.approx(-0.1 + 0.1 * (1 - np.cos(np.pi * 0.8)))
        assert simulation.kinematic.static_poses[lift] == pytest.approx(platform[:7])
        heights = platform[2] + 0.1 + HALF + 0.5 * np.arange(4)
        assert states[:4, 2] == pytest.approx(heights, abs=2e-3)
        assert states[:4, 9] == pytest.approx(np.full(4, platform[9]), abs=0.02 if coupling == "tight" else 0.05)
        assert states[4:, 7] == pytest.approx(np.full(8, 1.5), abs=0.01)
        assert np.diff(states[4:, 0]) == pytest.approx(np.full(7, 0.6), abs=0.01)
