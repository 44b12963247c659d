"""Limits and motors of joints that break, of bodies that fall asleep, and of runs that go on from a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arm_support import GHOST, X, Y, Z, arm_of, every_precision, every_timestep, params_of
from lapjoint import (
    WORLD,
    Ball,
    Box,
    Breaks,
    Checkpoint,
    CheckpointWriter,
    Distance,
    Drive,
    Hinge,
    Motor,
    Scene,
    Simulation,
    Slider,
    Sphere,
)
from lapjoint.scene.joints import Joint
from substep_support import G


def lying(timestep: float, count: int, breaks: Breaks | None = None, broken: int = -1) -> Scene:
    """Links of a kilogram that lie level on their limits; one of the joints can break."""
    scene = Scene(timestep=timestep)
    scene.add_bodies(Box((0.8, 0.1, 0.1)), [(0.5 + k, 0, 0) for k in range(count)], mass=1.0, **GHOST)
    for k in range(count):
        joint = Hinge(Y, (-1.0, 0.0), breaks=breaks if k == broken else None)
        scene.add_joint(joint, k, k - 1 if k else WORLD, (k, 0, 0))
    return scene


@every_timestep
@every_precision
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("strength", ["force", "torque"])
def test_a_joint_between_limits_breaks_under_its_load_and_not_under_less(
    strength: str, workers: int, timestep: float, precision: str
) -> None:
    """The third of four holds two of them: 2 m g, with 2 m g times 1 m about it. (Where joints are swept, a load takes
    some steps to build up, and is up to 1.8 times as large meanwhile.)"""
    for share, breaks in [(0.98, True), (1.02, False)]:
        bears = Breaks(**{strength: share * 2 * G})
        scene = lying(timestep, 4, bears, 2)
        with Simulation(scene, params_of(workers, 4, "auto", precision, substeps=8)) as simulation:
            simulation.step(round(0.5 / timestep))
            assert simulation.joints.broken_ids.tolist() == ([2] if breaks else [])
            states = simulation.states
        np.testing.assert_allclose(states[:2, :3], scene.states[:2, :3], atol=5e-3)
        assert (states[2, 2] < -0.5) == breaks


@every_precision
@pytest.mark.parametrize(
    ("masses", "joints"),
    [
        ((1.0, 1.0, 1.0), "direct"),
        ((1.0, 10.0, 1.0), "direct"),
        ((1.0, 1.0, 50.0), "direct"),
        ((1.0, 1.0, 1.0), "swept"),  # from 1:5 on swept limits go on to rattle, by 0.2 m/s
    ],
    ids=str,
)
def test_an_arm_at_its_limits_falls_asleep(masses: Any, joints: str, precision: str) -> None:
    scene = arm_of(1 / 240, Hinge(Y, (-0.3, 0.3)), masses)
    with Simulation(scene, params_of(1, 3, joints, precision, sleep=True)) as simulation:
        simulation.step(960)
        assert simulation.profile.sleeping_count == 3
        angles = simulation.joints.positions([0, 1, 2], 3)
    np.testing.assert_allclose(angles, 0.3, atol=1e-4 if joints == "direct" else 5e-3)


def busy(timestep: float) -> Scene:
    """Limits that hold, motors that slip and that hold, friction, cones, ropes and drives in one arm of twelve."""
    scene = Scene(timestep=timestep)
    masses = [1.0, 5.0] * 6
    scene.add_bodies(Box((0.8, 0.1, 0.1)), [(0.5 + k, 0, 0) for k in range(12)], mass=masses, **GHOST)
    every: tuple[Joint, ...] = (
        Hinge(Y, (-0.2, 0.2)),
        Hinge(Y, motor=Motor(-1.0, 100.0)),
        Ball(swing=0.2, twist=(-0.1, 0.1), friction=1.0),
        Hinge(Z, (-0.2, 0.2), friction=1.0, drive=Drive(position=0.1, stiffness=500.0, damping=20.0)),
        Slider(X, (-0.1, 0.1), friction=20.0),
        Hinge(Y, motor=Motor(0.0, 1e5)),
    )
    for k in range(12):
        scene.add_joint(every[k % 6], k, k - 1 if k else WORLD, (k, 0, 0))
    scene.add_body(Sphere(0.1), (12.0, 0.0, -0.5), mass=10.0, **GHOST)
    scene.add_joint(Distance(upper=0.5), 12, 11, (12.0, 0.0, -0.5), anchor_b=(12.0, 0.0, 0.0))
    return scene


@pytest.mark.slow
@every_precision
@pytest.mark.parametrize(("workers", "joints"), [(1, "direct"), (1, "swept"), (2, "auto"), (2, "swept")])
@pytest.mark.parametrize("timestep", [1 / 60, 1 / 240], ids=["60 Hz", "240 Hz"])
def test_a_run_with_limits_goes_on_as_if_it_had_not_stopped(
    timestep: float, workers: int, joints: str, precision: str, tmp_path: Path
) -> None:
    hashes, saved = [], {}
    with Simulation(busy(timestep), params_of(workers, 13, joints, precision)) as first:
        for step in range(60):
            if step in (0, 1, 5, 20, 40):
                saved[step] = Checkpoint(CheckpointWriter(tmp_path / str(step), first).save(first))
            hashes.append(first.state_hash)
            first.step()
        hashes.append(first.state_hash)
    assert len(set(hashes)) == len(hashes)
    for step, checkpoint in saved.items():
        with checkpoint.resume() as second:
            assert second.state_hash == hashes[step]
            second.step(20)
            assert second.state_hash == hashes[step + 20]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 4])
def test_processes_move_an_arm_as_threads_do(workers: int) -> None:
    hashes = []
    for runtime in ("inline", "process"):
        with Simulation(busy(1 / 60), params_of(workers, 13, precision="float32", runtime=runtime)) as simulation:
            simulation.step(60)
            hashes.append(simulation.state_hash)
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize("workers", [2, 4])
def test_several_workers_move_an_arm_as_one_does(workers: int) -> None:
    """For as long as rounding has not been blown up."""
    ends = []
    for count in (1, workers):
        with Simulation(busy(1 / 240), params_of(count, 13, precision="float64")) as simulation:
            simulation.step(48)
            ends.append(simulation.states.copy())
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-5)
