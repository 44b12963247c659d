"""Contacts that start to slide are reported when theory says, once a step, for all workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from lapjoint import (
    Box,
    Checkpoint,
    CheckpointWriter,
    ConstantVelocity,
    LapjointError,
    Material,
    Params,
    Plane,
    Recording,
    Rotation,
    Scene,
    Simulation,
    Sphere,
)
from lapjoint.cli import app
from lapjoint.run import run
from lapjoint.step_tables.slides import Slides

GRAVITY, TIMESTEP, SPEED = 9.81, 0.002, 0.01
INLINE: dict[str, Any] = {"runtime": "inline", "slide_speed": SPEED}


def row(count: int = 1, friction: float = 0.5, **options: Any) -> Scene:
    """Boxes that lie on the ground, apart from each other."""
    scene = Scene("row", timestep=TIMESTEP)
    scene.add_static(Plane(), material=Material(friction=friction))
    places = np.column_stack([np.arange(count) * 0.5, np.zeros(count), np.full(count, 0.1)])
    scene.add_bodies(Box((0.2, 0.2, 0.2)), places, mass=2.0, material=Material(friction=friction), **options)
    return scene


def pushed(scene: Scene, pushes: dict[int, tuple[int, float]], steps: int, **params: Any) -> Slides:
    """What is reported where bodies are pushed, each from a step on with a force along the ground."""
    with Simulation(scene, Params.from_options(**{**INLINE, **params})) as simulation:
        for step in range(steps):
            for body, (first, force) in pushes.items():
                if step >= first:
                    simulation.bodies.add_forces([body], [(force, 0, 0)])
            simulation.step()
        return simulation.events.reported(Slides)


def same(a: Slides, b: Slides) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(vars(a).values(), vars(b).values(), strict=True))


# ---- when ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("friction", [0.2, 0.5, 0.9])
def test_a_box_that_is_pushed_slides_once_the_push_is_more_than_friction(friction: float) -> None:
    """Less than mu m g: never. More: after speed / (force / m - mu g), and it is as fast as that."""
    most = friction * 2.0 * GRAVITY
    assert len(pushed(row(friction=friction), {0: (100, 0.97 * most)}, 250)) == 0
    found = pushed(row(friction=friction), {0: (100, 1.3 * most)}, 250)
    acceleration = 0.3 * friction * GRAVITY
    assert len(found) == 1, "it goes on sliding, and that is no new event"
    assert found.bodies.tolist() == [[0, -1]]
    assert found.step[0] - 100 == pytest.approx(SPEED / acceleration / TIMESTEP, abs=2)
    assert SPEED < found.speed[0] < SPEED + 2 * acceleration * TIMESTEP
    assert found.normal[0] == pytest.approx([0, 0, 1], abs=1e-6)
    assert found.point[0, 2] == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize("friction", [0.3, 0.6])
def test_a_box_on_a_slope_slides_once_that_is_steeper_than_friction_holds(friction: float) -> None:
    """A slab tilts slowly: the box slides at atan(mu), and not before."""
    rate = 0.2  # rad/s
    scene = Scene("slope", timestep=TIMESTEP)
    surface = Material(friction=friction)
    scene.add_kinematic(
        Box((6.0, 2.0, 0.2)), (0, 0, -0.1), motion=Rotation((0, 1, 0), rate, (0, 0, 0)), material=surface
    )
    scene.add_body(Box((0.2, 0.2, 0.1)), (0, 0, 0.05), mass=1.0, material=surface)
    steps = int(1.3 * np.arctan(friction) / rate / TIMESTEP)
    with Simulation(scene, Params(**INLINE)) as simulation:
        simulation.step(steps)
        found = simulation.events.reported(Slides)
    assert found.bodies.tolist() == [[0, -1]]
    angle = rate * found.step[0] * TIMESTEP
    assert angle == pytest.approx(np.arctan(friction), abs=0.02)
    assert found.normal[0] == pytest.approx([np.sin(angle), 0, np.cos(angle)], abs=0.02)


def test_one_that_comes_to_rest_and_is_pushed_again_starts_again() -> None:
    scene = row(linear_velocities=[(0.5, 0, 0)])
    with Simulation(scene, Params(**INLINE)) as simulation:
        simulation.step(200)
        assert len(simulation.events.reported(Slides)) == 0, "it has slid from the start"
        assert np.linalg.norm(simulation.states[0, 7:10]) < 1e-3
        for count in (1, 2):
            before = simulation.step_count
            simulation.bodies.add_forces([0], [(2.0 * 0.5 / TIMESTEP, 0, 0)])
            simulation.step(200)
            assert simulation.events.reported(Slides).step.tolist()[count - 1 :] == [before]


def test_the_ground_may_be_what_starts_to_move() -> None:
    scene = Scene("platform", timestep=TIMESTEP)
    scene.add_kinematic(Box((4.0, 4.0, 0.2)), (0, 0, -0.1))
    scene.add_body(Box((0.2, 0.2, 0.2)), (0, 0, 0.1), mass=1.0)
    with Simulation(scene, Params(**INLINE)) as simulation:
        simulation.step(50)
        simulation.kinematic.set_motion(0, ConstantVelocity((1.0, 0, 0)))
        simulation.step(50)
        found = simulation.events.reported(Slides)
    assert found.step.tolist() == [50]
    assert found.speed[0] == pytest.approx(1.0, abs=0.05)


def test_a_ball_that_rolls_does_not_slide() -> None:
    scene = Scene("ball", timestep=TIMESTEP)
    scene.add_static(Plane())
    scene.add_body(Sphere(0.1), (0, 0, 0.1), linear_velocities=(1.0, 0, 0), angular_velocities=(0, 10.0, 0))
    with Simulation(scene, Params(**INLINE)) as simulation:
        simulation.step(200)
        assert len(simulation.events.reported(Slides)) == 0
        assert simulation.states[0, 7] == pytest.approx(1.0, abs=0.01)


def test_without_the_option_nothing_is_looked_for_and_states_are_the_same() -> None:
    hashes = set()
    for params in ({}, {"slide_speed": SPEED}):
        with Simulation(row(3, linear_velocities=[(1, 0, 0)] * 3), Params(runtime="inline", **params)) as simulation:
            simulation.step(20)
            simulation.bodies.add_forces([0], [(500.0, 0, 0)])
            simulation.step(5)
            hashes.add(simulation.state_hash)
            assert len(simulation.events.reported(Slides)) == 0 or params
    assert len(hashes) == 1


# ---- workers ---------------------------------------------------------------------------------------------------------


def stacks(count: int = 8) -> Scene:
    """Boxes in pairs, one on the other: the lower ones are of even numbers."""
    scene = Scene("stacks", timestep=TIMESTEP)
    scene.add_static(Plane(), material=Material(friction=1.0))
    k = np.arange(2 * count)
    places = np.column_stack([k // 2 * 0.5, np.zeros(2 * count), 0.1 + 0.2 * (k % 2)])
    scene.add_bodies(Box((0.2, 0.2, 0.2)), places, mass=1.0, material=Material(friction=0.3))
    return scene


PUSHES = {2 * k + 1: (20 + 7 * k, 1.5 * 0.3 * GRAVITY) for k in range(8)}
"""Of the upper boxes, more than friction with the lower ones holds."""


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_contacts_between_workers_are_reported_once_and_always_alike(workers: int) -> None:
    """Both boxes of a pair have different workers."""
    partition = np.arange(16) % workers
    options = {"workers": workers, "partition": partition, "repartition": 0} if workers > 1 else {}
    alone = pushed(stacks(), PUSHES, 120)
    first, again = (pushed(stacks(), PUSHES, 120, **options) for _ in range(2))
    assert same(first, again)
    assert alone.bodies.tolist() == first.bodies.tolist() == [[2 * k, 2 * k + 1] for k in range(8)]
    assert np.abs(first.step - alone.step).max() <= 1
    assert first.speed == pytest.approx(alone.speed, rel=0.2)
    assert first.normal == pytest.approx(alone.normal, abs=1e-3)


def test_with_blend_one_of_several_workers_reports() -> None:
    found = pushed(stacks(), PUSHES, 120, workers=2, coupling="blend", partition=np.arange(16) // 8, repartition=0)
    assert sorted(found.bodies.tolist()) == [[2 * k, 2 * k + 1] for k in range(8)]


def test_many_steps_at_once_report_what_single_ones_do() -> None:
    def of(at_once: int) -> Slides:
        scene = row(4, linear_velocities=[(0.2 * k, 0, 0) for k in range(4)])
        flying = [(0.5 * k - 0.25, 0, 0.15) for k in range(4)]
        scene.add_bodies(Sphere(0.05), flying, linear_velocities=[(3.0, 0, 0)] * 4)
        with Simulation(scene, Params(**INLINE)) as simulation:
            for _ in range(100 // at_once):
                simulation.step(at_once)
            return simulation.events.reported(Slides)

    assert same(of(1), of(50))
    assert len(of(50)) > 2


# ---- files -----------------------------------------------------------------------------------------------------------


def test_recordings_checkpoints_and_summaries_have_them(tmp_path: Path) -> None:
    scene = row(2)
    with Simulation(scene, Params(**INLINE, workers=2)) as simulation:
        simulation.bodies.add_forces([0], [(900.0, 0, 0)])
        summary = run(simulation, 20, record=tmp_path / "r", record_every=5)
        CheckpointWriter(tmp_path / "c", simulation).save(simulation)
        found = simulation.events.reported(Slides)
        simulation.bodies.add_forces([1], [(900.0, 0, 0)])
        simulation.step(10)
        later = simulation.events.reported(Slides)
    assert found.bodies.tolist() == [[0, -1]]
    assert later.bodies.tolist() == [[0, -1], [1, -1]]
    assert summary.reported["slides"] == 1
    recording = Recording(tmp_path / "r")
    assert same(recording.reported(Slides), found)
    assert same(recording.reported(Slides, 0), found)
    with Checkpoint(tmp_path / "c").resume() as resumed:
        assert same(resumed.events.reported(Slides), found)
        resumed.bodies.add_forces([1], [(900.0, 0, 0)])
        resumed.step(10)
        assert same(resumed.events.reported(Slides), later)


def test_the_command_line_counts_them(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    arguments = ["drum", "--size", "60", "--steps", "60", "--slide-speed", "0.05", "--runtime", "inline"]
    result = CliRunner().invoke(app, ["run", *arguments, "--json", str(out), "--record", str(tmp_path / "r")])
    assert result.exit_code == 0, result.output
    count = json.loads(out.read_text())["reported"]["slides"]
    assert count > 0
    assert len(Recording(tmp_path / "r").reported(Slides)) == count


@pytest.mark.parametrize("params", [{"solver": "sequential"}, {"engine": "rapier", "solver": "sequential"}])
def test_who_does_not_have_them_says_so(params: dict[str, Any]) -> None:
    with pytest.raises(LapjointError, match=r"slide_speed is 0\.01, which"):
        Simulation(row(), Params(**INLINE, **params))
