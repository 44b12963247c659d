"""Drives and new kinds of joints on several workers: targets, turns, checkpoints, lost workers, scenes that change."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapjoint import (
    FREE,
    LOCKED,
    WORLD,
    Ball,
    Box,
    Breaks,
    Checkpoint,
    CheckpointWriter,
    Cylinder,
    Distance,
    Drive,
    Gear,
    Hinge,
    LapjointError,
    Motor,
    Params,
    Scene,
    Simulation,
    SixAxis,
    Slider,
    Sphere,
)
from lapjoint.workers.runtimes.process import ProcessRuntime

Y, Z = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
BASE, SECOND, RAIL, FAR = 0, 1, 2, 8
"""Driven joints of the machine: two hinges, a slider, and a hinge with a target of several turns."""


def machine() -> Scene:
    """An arm of five parts with a load on a rope; two wheels with a gear, and a third on top of one, driven by it."""
    scene = Scene("machine", timestep=1 / 120)
    scene.add_bodies(Box((0.5, 0.2, 0.2)), [(0.6 * i, 0.0, 2.0) for i in range(5)], mass=1.0)
    scene.add_joint(Hinge(Y, drive=Drive(0.0, 0.0, 400.0, 40.0, 300.0)), 0, WORLD, (-0.3, 0.0, 2.0))
    joints = [
        Hinge(Y, drive=Drive(0.0, 0.0, 300.0, 20.0, 200.0)),
        Slider((1.0, 0.0, 0.0), limits=(-0.2, 0.2), drive=Drive(0.0, 0.0, 4000.0, 100.0, 500.0)),
        Ball(swing=0.5, twist=(-0.3, 0.3), friction=0.2),
        SixAxis(angular=(FREE, (-0.5, 0.5), LOCKED), drives={3: Drive(0.3, 0.0, 20.0, 2.0)}, frictions={4: 0.5}),
    ]
    for i, joint in enumerate(joints):
        scene.add_joint(joint, i + 1, i, (0.6 * i + 0.3, 0.0, 2.0))
    wheels = scene.add_bodies(Cylinder(0.2, 0.1), [(0.0, 3.0, 1.0), (0.5, 3.0, 1.0), (0.5, 3.0, 1.3)], mass=0.5)
    scene.add_joint(Hinge(Z, motor=Motor(6.0, 5.0)), wheels[0], WORLD, (0.0, 3.0, 1.0))
    scene.add_joint(Hinge(Z), wheels[1], WORLD, (0.5, 3.0, 1.0))
    scene.add_joint(Gear(-2.0, Z, Z), wheels[0], wheels[1], (0.25, 3.0, 1.0))
    assert scene.add_joint(Hinge(Z, drive=Drive(20.0, 0.0, 5.0, 1.0)), wheels[2], wheels[1], (0.5, 3.0, 1.3)) == FAR
    load = scene.add_body(Sphere(0.1), (2.4, 0.0, 1.5), mass=0.3)
    scene.add_joint(Distance(upper=0.6), load, 4, (2.4, 0.0, 1.6), anchor_b=(2.4, 0.0, 1.9))
    return scene


def simulate(workers: int = 1, coupling: str = "auto", scene: Scene | None = None, **more: Any) -> Simulation:
    given = {"engine": "bullet:float64", "runtime": "inline", "workers": workers, **more}
    return Simulation(scene or machine(), Params.from_options(coupling=coupling if workers > 1 else "auto", **given))


def drive(simulation: Simulation) -> None:
    simulation.joints.set_targets([SECOND, BASE], positions=[0.4, -0.3])
    simulation.joints.set_targets(RAIL, 0.1)
    simulation.joints.set_targets(FAR, positions=35.0)


def half_turns(simulation: Simulation) -> list[int]:
    return simulation._core.now.commands.drives.half_turns(np.arange(simulation.scene.joint_count)).tolist()


def run(simulation: Simulation) -> np.ndarray:
    with simulation:
        simulation.step(30)
        drive(simulation)
        simulation.step(90)
        return simulation.states


@pytest.fixture(scope="module")
def alone() -> dict[str, np.ndarray]:
    return {joints: run(simulate(joints=joints)) for joints in ("auto", "swept")}


@pytest.mark.slow
@pytest.mark.parametrize("joints", ["auto", "swept"])
@pytest.mark.parametrize("workers", [2, 5])
def test_workers_agree_with_one(alone: dict[str, np.ndarray], workers: int, joints: str) -> None:
    states = run(simulate(workers, "tight", joints=joints))
    # Sweeps are in another order.
    apart = np.abs(states - alone[joints])[:, :3]
    assert apart.max() < 0.015
    assert apart[5:8].max() < 1e-4


def test_workers_agree_with_one_in_float32(alone: dict[str, np.ndarray]) -> None:
    states = run(simulate(2, "tight", engine="bullet:float32"))
    assert np.abs(states - alone["auto"])[:, :3].max() < 0.015


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 4])
def test_wheels_turn_the_same_in_blended_workers(workers: int) -> None:
    with simulate(workers, "blend") as simulation:
        simulation.step(30)
        drive(simulation)
        simulation.step(300)
        assert simulation.states[5:7, 12] == pytest.approx([6.0, -3.0], abs=0.05)
        assert half_turns(simulation)[FAR] in (10, 11)  # of 35 rad: 11.1


@pytest.mark.slow
def test_results_are_the_same_in_all_runtimes() -> None:
    hashes = []
    for runtime in ("inline", "process"):
        with simulate(2, "tight", runtime=runtime) as simulation:
            simulation.step(20)
            drive(simulation)
            simulation.step(100)
            hashes.append((simulation.state_hash, half_turns(simulation)))
    assert hashes[0] == hashes[1]


@pytest.mark.slow
def test_steps_taken_at_once_are_those_one_by_one() -> None:
    hashes = []
    for at_once in (1, 50):
        with simulate(2, "tight") as simulation:
            simulation.step(10)
            drive(simulation)
            for _ in range(100 // at_once):
                simulation.step(at_once)
            hashes.append((simulation.state_hash, half_turns(simulation)))
    assert hashes[0] == hashes[1]


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "coupling"), [(1, "auto"), (2, "tight"), (5, "tight"), (2, "blend")])
def test_a_checkpoint_has_targets_and_turns(workers: int, coupling: str, tmp_path: Path) -> None:
    with simulate(workers, coupling, engine="bullet:float32") as simulation:
        simulation.step(100)
        drive(simulation)  # after the last step: the first step that follows has to take them
        CheckpointWriter(tmp_path / "c", simulation).save(simulation)
        simulation.step(60)
        after, turned = simulation.state_hash, half_turns(simulation)
    with Checkpoint(tmp_path / "c").resume() as resumed:
        assert resumed.joints.targets([BASE, SECOND, RAIL, FAR])[:, 0].tolist() == [-0.3, 0.4, 0.1, 35.0]
        resumed.step(60)
        assert resumed.state_hash == after
        assert half_turns(resumed) == turned
        last = resumed.states
    if coupling == "tight" and workers == 2:
        for other in (1, 3):
            with Checkpoint(tmp_path / "c").resume(workers=other) as resumed:
                resumed.step(60)
                assert half_turns(resumed) == turned
                assert np.abs(resumed.states - last)[:, :3].max() < 0.01


def test_a_checkpoint_with_targets_of_what_is_not_driven_is_refused(tmp_path: Path) -> None:
    with simulate() as simulation:
        drive(simulation)
        state = simulation.state()
        state["drives"].arrays["axes"][0] += 1
        with pytest.raises(ValueError, match="drives/axes has 4, which the scene does not have"):
            simulation.restore(state, simulation.params)


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "coupling"), [(2, "tight"), (3, "blend")])
def test_targets_and_turns_survive_a_lost_worker(workers: int, coupling: str) -> None:
    results = []
    for is_lost in (False, True):
        with simulate(workers, coupling, runtime="process") as simulation:
            simulation.step(30)
            drive(simulation)
            simulation.step(150)
            if is_lost:
                assert isinstance(simulation._core.runtime, ProcessRuntime)
                os.kill(simulation._core.runtime.process_ids[1], signal.SIGKILL)
            simulation.step(150)
            assert len(simulation.incidents) == is_lost
            results.append((simulation.states, half_turns(simulation)))
    assert results[0][1] == results[1][1]
    assert results[0][1][FAR] == 11
    assert np.abs(results[0][0] - results[1][0])[5:8, :3].max() < 1e-3


def test_workers_may_come_and_go() -> None:
    with simulate(1, coupling="tight") as simulation:
        simulation.step(60)
        drive(simulation)
        for workers in (3, 1, 2):
            simulation.workers.set_count(workers)
            simulation.step(60)
        simulation.step(60)
        assert half_turns(simulation)[FAR] == 11
        assert simulation.states[5, 12] == pytest.approx(6.0, abs=1e-3)


def test_targets_are_told_only_when_they_change() -> None:
    with simulate() as simulation:
        simulation.step()
        commands = simulation._core.now.commands
        assert commands.drives.changed_targets() is None
        drive(simulation)
        told = commands.drives.changed_targets()
        assert told is not None
        assert (told.axes // 6).tolist() == [BASE, SECOND, RAIL, FAR]
        assert (told.axes % 6).tolist() == [3, 3, 0, 3]
        simulation.step()
        drive(simulation)
        assert commands.drives.changed_targets() is None
        everything = commands.drives.all_targets()
        assert everything is not None
        assert np.array_equal(everything.targets, told.targets)
        assert everything.turned.tolist() == [BASE, SECOND, FAR]


def test_a_joint_named_twice_gets_the_last_target() -> None:
    with simulate() as simulation:
        simulation.joints.set_targets([BASE, BASE], positions=[1.0, 0.2])
        assert simulation.joints.targets([BASE]).tolist() == [[0.2, 0.0]]
        simulation.joints.set_targets([BASE], velocities=0.5)
        assert simulation.joints.targets(BASE).tolist() == [[0.2, 0.5]]


def test_an_axis_is_needed_where_there_are_several() -> None:
    scene = Scene()
    scene.add_body(Sphere(0.1))
    drives = {0: Drive(damping=1.0), 4: Drive(stiffness=1.0)}
    scene.add_joint(SixAxis((FREE, LOCKED, LOCKED), (LOCKED, FREE, LOCKED), drives=drives), 0, WORLD, (0.0, 0.0, 0.0))
    scene.add_body(Sphere(0.1), (1.0, 0.0, 0.0))
    scene.add_joint(Slider(), 1, WORLD, (1.0, 0.0, 0.0))
    with simulate(scene=scene) as simulation:
        simulation.joints.set_targets([0, 0], positions=None, velocities=[0.25, 0.5], axis=0)
        simulation.joints.set_targets(0, positions=0.75, axis=[4])
        assert simulation.joints.targets([0, 0], axis=[4, 0]).tolist() == [[0.75, 0.0], [0.0, 0.5]]
        for arguments, message in (
            (([0], 1.0), "joints.set_targets: joint 0 has drives on the axes 0, 4, expected one with `axis`"),
            (([1], 1.0), "joints.set_targets: joint 1 has no drive and no motor"),
            (([0], None, 1.0, 3), "joint 0 has no drive and no motor on axis 3"),
            (([2], 1.0), "joints.set_targets: joint 2 does not exist"),
            (([0], 1.0, None, 0), "joint 0 has no stiffness, so a position could do nothing"),
            (([0], None, 1.0, 4), "joint 0 has no damping, so a velocity could do nothing"),
            (([0], [1.0, 2.0], None, 4), "position"),
            (([0], np.nan, None, 4), "position"),
            (([0],), "neither positions nor velocities are given"),
        ):
            with pytest.raises(LapjointError, match=message.replace("`", ".")):
                simulation.joints.set_targets(*arguments)  # type: ignore[arg-type]
        assert simulation.joints.targets([0, 0], axis=[4, 0]).tolist() == [[0.75, 0.0], [0.0, 0.5]]
        simulation.joints.remove([0])
        with pytest.raises(LapjointError, match="joint 0 has broken or was removed before"):
            simulation.joints.set_targets(0, 1.0, axis=4)


def test_another_solver_and_engine_refuse_targets() -> None:
    scene = Scene()
    scene.add_body(Sphere(0.1))
    scene.add_joint(Slider(motor=Motor(1.0, 1.0)), 0, WORLD, (0.0, 0.0, 0.0))
    with (
        simulate(scene=scene, solver="sequential") as simulation,
        pytest.raises(LapjointError, match="the solver is sequential, expected substeps"),
    ):
        simulation.joints.set_targets(0, velocities=2.0)


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["tight", "blend"])
def test_driven_joints_are_added_while_it_runs(coupling: str) -> None:
    with simulate(2, coupling) as simulation:
        simulation.step(20)
        drive(simulation)
        body = simulation.bodies.add_one(Cylinder(0.2, 0.1), (5.0, 0.0, 1.0), mass=0.5)
        wheel = simulation.joints.add_one(Hinge(Z, drive=Drive(0.0, 0.0, 5.0, 1.0)), body, WORLD, (5.0, 0.0, 1.0))
        simulation.step(5)
        simulation.joints.set_targets([wheel, BASE], positions=[12.0, 0.1])
        simulation.step(400)
        assert half_turns(simulation)[wheel] == 4
        assert simulation.joints.targets([wheel])[0, 0] == 12.0
        simulation.restart()
        assert simulation.joints.targets([BASE])[0, 0] == 0.0
        assert not any(half_turns(simulation))


@pytest.mark.parametrize(
    ("joint", "options"),
    [
        (Distance(upper=1.0, breaks=Breaks(force=25.0)), {"anchor_b": (0.0, 0.0, 1.0)}),
        (Slider(Z, drive=Drive(0.0, 0.0, 1e4, 1e3), breaks=Breaks(force=25.0)), {}),
        (Slider(Z, friction=50.0, breaks=Breaks(force=25.0)), {}),
    ],
    ids=["rope", "drive", "friction"],
)
def test_what_holds_too_much_breaks(joint: Any, options: dict[str, Any]) -> None:
    for mass, breaks in ((2.0, False), (3.0, True)):
        scene = Scene(timestep=1 / 120)
        scene.add_body(Sphere(0.1), mass=mass)
        scene.add_joint(joint, 0, WORLD, (0.0, 0.0, 0.0), **options)
        with simulate(scene=scene) as simulation:
            simulation.step(120)
            assert len(simulation.events.all.of("broke")) == breaks
            assert (simulation.states[0, 2] < -1.0) == breaks


def test_gears_break_of_the_torque_between_them() -> None:
    for torque, breaks in ((0.2, True), (5.0, False)):
        scene = Scene(timestep=1 / 120)
        scene.add_bodies(Cylinder(0.2, 0.1), [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)], mass=1.0)
        scene.add_joint(Hinge(Z, motor=Motor(5.0, 2.0)), 0, WORLD, (0.0, 0.0, 0.0))
        scene.add_joint(Hinge(Z, friction=0.8), 1, WORLD, (1.0, 0.0, 0.0))
        scene.add_joint(Gear(2.0, Z, Z, breaks=Breaks(torque=torque)), 0, 1, (0.0, 0.0, 0.0))
        with simulate(scene=scene) as simulation:
            simulation.step(60)
            assert len(simulation.events.all.of("broke")) == breaks


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_positions_are_read_over_turns(workers: int) -> None:
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    scene.add_bodies(Box((0.5, 0.5, 0.1)), [(0.0, 0.0, 0.0), (2.0, 0.0, 0.0)])
    for body, turns in enumerate((2.5, -3.25)):
        drive = Drive(2 * np.pi * turns, stiffness=200.0, damping=150.0)
        scene.add_joint(Hinge(Z, drive=drive), body, WORLD, (2.0 * body, 0.0, 0.0))
    with Simulation(scene, Params(workers=workers, runtime="inline")) as simulation:
        simulation.step(4000)
        found = simulation.joints.positions([0, 1], "free")
    np.testing.assert_allclose(found / (2 * np.pi), (2.5, -3.25), rtol=1e-3)
