"""Bodies at rest sleep as islands: what lets them, what wakes them, and that nobody else notices."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapjoint import (
    WORLD,
    Ball,
    Box,
    Checkpoint,
    CheckpointWriter,
    ConstantVelocity,
    Drive,
    Fixed,
    Gravity,
    Hinge,
    Keyframes,
    LapjointError,
    Params,
    Plane,
    Scene,
    Simulation,
    Sphere,
)
from tight_runs import pids

SIDE, WEIGHT = 0.5, 1000 * 0.125 * 9.81
BY_LABEL = {"partition": "labels", "repartition": 0.0}


def piles(count: int = 3, height: int = 3, workers: int = 1, **options: Any) -> Scene:
    """Piles of cubes 2 m apart. Each is cut in the middle, if there are two workers: its upper half is another's."""
    scene = Scene("piles", timestep=0.005)
    scene.add_static(Plane())
    places = [(2.0 * pile, 0.0, SIDE * (0.5 + row)) for pile in range(count) for row in range(height)]
    labels = [int(row >= height // 2) % workers for _ in range(count) for row in range(height)]
    scene.add_bodies(Box((SIDE, SIDE, SIDE)), places, labels=labels, density=1000.0, **options)
    return scene


def start(scene: Scene, **params: Any) -> Simulation:
    return Simulation(scene, Params.from_options(**{"runtime": "inline", "sleep": True, "sleep_after": 0.1, **params}))


def asleep(simulation: Simulation) -> int:
    return simulation.profile.sleeping_count


def of_two(workers: int) -> dict[str, Any]:
    return {"workers": workers, **(BY_LABEL if workers > 1 else {})}


# ---- what is promised ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_bits_whoever_steps_and_however_often(workers: int) -> None:
    """A ball wakes one pile of three, whatever the runtime, and for one command of many steps or many of one."""
    found = set()
    for runtime, together in [("inline", 1), ("inline", 200), ("process", 13), ("process", 200)]:
        scene = piles(workers=workers)
        scene.add_body(Sphere(0.2), (-3.0, 0.0, 1.2), linear_velocity=(6.0, 0.0, 2.0), mass=50.0, label=0)
        with start(scene, runtime=runtime, **of_two(workers)) as simulation:
            hashes = []
            for until in (80, 100, 200):
                while simulation.step_count < until:
                    simulation.step(min(together, until - simulation.step_count))
                hashes.append((simulation.state_hash, asleep(simulation)))
            found.add(tuple(hashes))
    assert len(found) == 1
    counts = [count for _, count in found.pop()]
    assert counts[0] == 9, "all piles sleep while the ball flies"
    assert counts[1] == 6, "and one wakes"


@pytest.mark.parametrize("workers", [1, 2])
def test_what_sleeps_is_not_touched(workers: int) -> None:
    with start(piles(workers=workers), **of_two(workers)) as simulation:
        simulation.step(40)
        assert asleep(simulation) == 9
        states, profile = simulation.states, simulation.profile
        assert not states[:, 7:].any()
        simulation.step(200)
        np.testing.assert_array_equal(simulation.states, states)
        later = simulation.profile
        assert (later.contact_count, later.contact_point_count) == (profile.contact_count, profile.contact_point_count)
        assert later.contact_count == 9 == len(simulation.contacts.pairs())
        assert later.penetration == pytest.approx(profile.penetration)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_resumed_run_sleeps_on(workers: int, tmp_path: Path) -> None:
    """From where some sleep and some are about to, with as many workers bit for bit; with others they sleep on."""
    scene = piles(workers=workers)
    scene.add_body(Sphere(0.25), (-1.0, 0.0, 0.25), linear_velocity=(0.3, 0.0, 0.0), label=0)
    with start(scene, **of_two(workers)) as first:
        first.step(45)
        assert asleep(first) == 9
        checkpoint = Checkpoint(CheckpointWriter(tmp_path, first).save(first))
        first.step(300)
        end = first.state_hash, asleep(first)
    with checkpoint.resume() as second:
        second.step()
        assert asleep(second) == 9
        second.step(299)
        assert (second.state_hash, asleep(second)) == end
    with checkpoint.resume(workers=3 - workers) as other:
        other.step(2)
        assert asleep(other) == 9


def test_a_resumed_run_finds_what_has_come_to_a_sleeper_and_stands_still_there(tmp_path: Path) -> None:
    """A wall, which is nearer than the reach of contacts only where it stops."""
    scene = piles(1, 1)
    arrives, nearest = 60, SIDE / 2 + 0.1 + 0.005
    times = np.array([arrives - 10, arrives]) * scene.timestep
    motion = Keyframes(times, [(nearest + 0.3, 0.0, 0.5), (nearest, 0.0, 0.5)])
    scene.add_kinematic(Box((0.2, 1.0, 1.0)), (nearest + 0.3, 0.0, 0.5), motion=motion)
    with start(scene) as first:
        first.step(arrives)
        assert asleep(first) == 1
        checkpoint = Checkpoint(CheckpointWriter(tmp_path, first).save(first))
        first.step()
        assert asleep(first) == 0, "it touches now"
        end = first.state_hash
    with checkpoint.resume() as second:
        second.step()
        assert (second.state_hash, asleep(second)) == (end, 0)


# ---- what wakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_a_hit_does_what_it_does_without_sleep(workers: int) -> None:
    def after_the_hit(sleep: bool) -> tuple[np.ndarray, np.ndarray, int]:
        scene = piles(workers=workers)
        ball = scene.add_body(Sphere(0.2), (-4.0, 0.0, 0.2), mass=100.0, label=0)
        with start(scene, sleep=sleep, **of_two(workers)) as simulation:
            simulation.step(40)
            before = asleep(simulation)
            simulation.set_states([ball], [[-0.8, 0, 0.75, 1, 0, 0, 0, 10.0, 0, 0, 0, 0, 0]])
            simulation.step(20)
            momentum = (simulation.scene.bodies.mass[:, None] * simulation.states[:, 7:10]).sum(axis=0)
            return momentum, simulation.states, before - asleep(simulation)

    momentum, states, woken = after_the_hit(True)
    expected, states_without, _ = after_the_hit(False)
    assert woken == 4, "the ball and the pile that it hits"
    assert expected[0] < 950.0
    np.testing.assert_allclose(momentum, expected, atol=2.0)
    np.testing.assert_allclose(states[:, :3], states_without[:, :3], atol=2e-3)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_pile_falls_when_its_lowest_body_is_removed(workers: int) -> None:
    with start(piles(workers=workers), **of_two(workers)) as simulation:
        simulation.step(40)
        simulation.bodies.remove([3])
        simulation.step(2)
        assert asleep(simulation) == 6
        simulation.step(250)
        np.testing.assert_allclose(simulation.states[4:6, 2], [0.25, 0.75], atol=1e-3)
        assert asleep(simulation) == 8


def test_forces_states_and_new_joints_wake_what_they_are_about() -> None:
    with start(piles()) as simulation:
        simulation.step(40)
        simulation.bodies.add_forces([2], [[0.0, 0.0, 3 * WEIGHT]])
        simulation.step()
        assert asleep(simulation) == 6
        assert simulation.states[2, 9] > 0.0
        states = simulation.states_of([5])
        states[0, 0] += 0.7
        simulation.set_states([5], states)
        simulation.step()
        assert asleep(simulation) == 3
        simulation.joints.add_one(Fixed(), 8, WORLD, simulation.states[8, :3])
        simulation.step()
        assert asleep(simulation) == 0


def test_a_joint_that_is_let_go_wakes_what_hung_on_it() -> None:
    scene = Scene("hung", timestep=0.005)
    scene.add_bodies(Box((SIDE, SIDE, SIDE)), [(2.0 * k, 0.0, 0.0) for k in range(2)], density=1000.0)
    scene.add_joints(Ball(), [0, 1], [WORLD, WORLD], [[0, 0, 0.5], [2.0, 0, 0.5]])
    with start(scene, keep_forces=True) as simulation:
        simulation.step(40)
        assert asleep(simulation) == 2
        simulation.step(3)
        np.testing.assert_allclose(simulation.joints.forces([0, 1])[:, 2], WEIGHT, rtol=1e-4)
        simulation.joints.remove([1])
        simulation.step(20)
        assert asleep(simulation) == 1
        assert simulation.states[1, 2] < -0.04


def test_a_drive_holds_asleep_and_wakes_for_another_target() -> None:
    scene = Scene("arm", timestep=0.005)
    arm = scene.add_body(Box((1.0, 0.1, 0.1)), (0.5, 0.0, 0.0), mass=1.0)
    drive = Drive(stiffness=2000.0, damping=200.0, max_force=1e4)
    joint = scene.add_joint(Hinge((0, 1, 0), drive=drive), arm, WORLD, (0, 0, 0))
    with start(scene) as simulation:
        simulation.step(200)
        assert asleep(simulation) == 1
        simulation.joints.set_targets([joint], positions=simulation.joints.targets([joint])[:, 0])
        simulation.step()
        assert asleep(simulation) == 1, "the target that it has"
        simulation.joints.set_targets([joint], positions=[0.5])
        simulation.step(100)
        assert simulation.joints.positions([joint], "free")[0] == pytest.approx(0.5, abs=0.02)
        simulation.joints.set_targets([joint], velocities=[1e-4])
        simulation.step(200)
        assert asleep(simulation) == 0, "it is to move, however slowly"


@pytest.mark.parametrize("workers", [1, 2])
def test_what_lies_on_a_lift_wakes_when_it_starts(workers: int) -> None:
    scene = Scene("lifts", timestep=0.005)
    lifts = [scene.add_kinematic(Box((1.0, 1.0, 0.2)), (2.0 * k, 0.0, -0.1)) for k in range(2)]
    places = [(2.0 * k, 0.0, SIDE * (0.5 + row)) for k in range(2) for row in range(2)]
    scene.add_bodies(Box((SIDE, SIDE, SIDE)), places, labels=[row % workers for _ in range(2) for row in range(2)])
    with start(scene, **of_two(workers)) as simulation:
        simulation.step(40)
        assert asleep(simulation) == 4
        simulation.kinematic.set_motion([lifts[0]], ConstantVelocity((0.0, 0.0, 0.01)))
        simulation.step(200)
        assert asleep(simulation) == 2, "what a lift moves does not sleep, however slow it is"
        np.testing.assert_allclose(simulation.states[:, 2], [0.26, 0.76, 0.25, 0.75], atol=1e-3)
        simulation.kinematic.set_motion([lifts[0]], None)
        simulation.step(40)
        assert asleep(simulation) == 4


def test_what_comes_too_fast_to_be_seen_wakes_before_it_is_there() -> None:
    scene = piles(1)
    ball = scene.add_body(Sphere(0.05), (-3.0, 0.0, 0.8), mass=20.0)
    with start(scene) as simulation:
        simulation.step(40)
        simulation.set_states([ball], [[-2.0, 0, 0.8, 1, 0, 0, 0, 300.0, 0, 0, 0, 0, 0]])
        simulation.step(3)
        assert simulation.states[ball, 0] < 0.1, "it has not passed through"
        assert simulation.states[1, 7] > 1.0


# ---- who does not sleep --------------------------------------------------------------------------------------------


def test_nothing_sleeps_in_the_air() -> None:
    """Neither where it turns back nor where it falls ever so slowly."""
    scene = Scene("thrown", timestep=0.005)
    scene.add_body(Sphere(0.2), linear_velocity=(0.0, 0.0, 0.2))
    feather = scene.add_body(Sphere(0.2), (1.0, 0.0, 0.0))
    scene.add_field(Gravity((0.0, 0.0, 9.809)), bodies=[feather])
    with start(scene, sleep_after=0.02) as simulation:
        for _ in range(20):
            simulation.step(5)
            assert asleep(simulation) == 0


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=6, deadline=None)
def test_balls_thrown_at_random(seed: int) -> None:
    """Who rests sleeps, who sleeps rests on something, and all others move."""
    rng = np.random.default_rng(seed)
    scene = Scene("thrown", timestep=0.005)
    scene.add_static(Plane())
    places = np.stack([rng.uniform(-1, 1, 12), rng.uniform(-1, 1, 12), 0.3 + 0.5 * np.arange(12)], axis=1)
    scene.add_bodies(Sphere(0.2), places, linear_velocities=rng.normal(size=(12, 3)))
    with start(scene) as simulation:
        for _ in range(12):
            simulation.step(40)
            rests = (simulation.states[:, 7:] == 0).all(axis=1)
            assert rests.sum() == asleep(simulation)
            touching = simulation.contacts.pairs().bodies
            assert np.isin(np.flatnonzero(rests), touching).all()


# ---- what is read --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_forces_touches_and_sensors_are_right_while_bodies_sleep(workers: int) -> None:
    scene = piles(1, workers=workers, touch_events=True)
    sensor = scene.add_sensor(Box((1.0, 1.0, 0.2)), (0.0, 0.0, 0.5))
    with start(scene, keep_forces=True, **of_two(workers)) as simulation:
        simulation.step(12)
        touches, inside = simulation.contacts.touching.tolist(), simulation.queries.inside([sensor]).body.tolist()
        assert asleep(simulation) == 0
        for _ in range(3):
            simulation.step(30)
            for body, below in ((0, -1), (1, 0), (2, 1)):
                force = simulation.contacts.forces([body], [below])
                assert np.ravel(force)[2] == pytest.approx((3 - body) * WEIGHT, rel=2e-3)
            assert len(simulation.contacts.points().depth) == 12
            assert simulation.contacts.touching.tolist() == touches == [[0, 1], [0, -1], [1, 2]]
            assert simulation.queries.inside([sensor]).body.tolist() == inside == [0, 1]
        assert asleep(simulation) == 3
        assert len(simulation.events.touches.step) == 3, "each begins once"


# ---- workers -------------------------------------------------------------------------------------------------------


def test_bodies_migrate_asleep_and_sleep_again_at_once() -> None:
    with start(piles(workers=2), **of_two(2)) as simulation:
        simulation.step(40)
        states = simulation.states
        simulation.workers.repartition([1, 1, 0, 0, 1, 1, 0, 0, 1])
        simulation.step(16)
        assert asleep(simulation) == 9
        np.testing.assert_allclose(simulation.states[:, :3], states[:, :3], atol=1e-4)


@pytest.mark.slow
def test_a_killed_worker_leaves_the_others_awake() -> None:
    with start(piles(workers=2), runtime="process", **of_two(2)) as simulation:
        simulation.step(40)
        os.kill(pids(simulation)[1], signal.SIGKILL)
        simulation.step()
        assert asleep(simulation) == 0
        simulation.step(60)
        assert asleep(simulation) == 9
        np.testing.assert_allclose(simulation.states[::3, 2], 0.25, atol=1e-3)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"workers": 2, "coupling": "blend"}, "sleep is on and coupling is blend, expected tight"),
        ({"solver": "sequential"}, "sleep is on, which only the solver substeps has, and solver is sequential"),
        ({"sleep_speed": 0.0}, "sleep_speed is 0.0"),
    ],
)
def test_what_cannot_sleep_is_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(LapjointError, match=message):
        start(piles(), **params)
