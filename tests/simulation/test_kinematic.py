"""Kinematic bodies in a simulation: what is set while it runs, on any workers, after failures and from checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faulty_engine import register, tell
from lapjoint import (
    Box,
    Checkpoint,
    CheckpointWriter,
    ConstantVelocity,
    Keyframes,
    LapjointError,
    Material,
    Oscillation,
    Params,
    Plane,
    Rotation,
    Scene,
    Simulation,
    scenes,
)
from lapjoint.measures.step import Measures

ROUGH = Material(friction=0.6)
TIMESTEP = 0.002


def workshop(seed: int = 0) -> Scene:
    """Boxes on a table that turns (0), beside a pusher (1) that rests, on a shaking ground (2), and on a belt (3)."""
    random = np.random.default_rng(seed)
    scene = Scene("workshop", timestep=TIMESTEP)
    scene.add_kinematic(Box((3, 3, 0.2)), (0, 0, 0.4), motion=Rotation((0, 0, 1), 0.7), material=ROUGH)
    scene.add_kinematic(Box((0.2, 3, 1.0)), (-2.0, 0, 1.05), material=ROUGH)
    scene.add_kinematic(Plane(), motion=Oscillation((0.02, 0, 0), 3.0), material=ROUGH)
    scene.add_static(Box((8, 1.5, 0.3)), (0, 3, 0.15), material=ROUGH, surface_velocity=(0.5, 0, 0))
    on_table = [(0.6 * i - 0.6, 0.6 * k - 0.6, 0.75 + 0.5 * z) for i in range(3) for k in range(3) for z in range(2)]
    on_belt = [(0.7 * i - 2.0, 3.0, 0.55) for i in range(6)]
    places = np.array(on_table + on_belt) + random.uniform(-0.02, 0.02, (24, 3)) * [1, 1, 0]
    scene.add_bodies(Box((0.5, 0.5, 0.5)), places, material=ROUGH)
    return scene


def play(simulation: Simulation, start: int, stop: int, at_once: int = 10) -> None:
    """From step to step, with what is done at some of them."""
    for step in range(start, stop, at_once):
        if step == 20:
            simulation.kinematic.set_motion([1], ConstantVelocity((0.6, 0, 0)))
        if step == 40:
            simulation.kinematic.set_motion([0, 2], Rotation((0, 0, 1), -0.5))
        if step == 60:
            simulation.kinematic.move_to([1], [(-1.4, 0.0, 1.05)], [(1, 0, 0, 0)])
        if step == 80:
            simulation.kinematic.set_motion(1, None)
        simulation.step(at_once)


def final(scene: Scene, steps: int = 100, at_once: int = 10, **params: Any) -> str:
    with Simulation(scene, Params.from_options(**{"runtime": "inline", "repartition": 0, **params})) as simulation:
        play(simulation, 0, steps, at_once)
        return simulation.state_hash + np.array2string(simulation.kinematic.states)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "coupling"), [(1, "tight"), (2, "tight"), (3, "tight"), (2, "blend"), (3, "blend")]
)
def test_a_run_does_not_depend_on_where_workers_live_and_how_steps_are_taken(workers: int, coupling: str) -> None:
    scene, params = workshop(), {"workers": workers, "coupling": coupling}
    wanted = final(scene, validate=True, **params)
    assert final(scene, runtime="process", **params) == wanted
    assert final(scene, at_once=1, **params) == wanted
    assert final(scene, at_once=20, **params) == wanted


@pytest.mark.slow
@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.integers(0, 99), st.sampled_from(["tight", "blend"]), st.integers(1, 3))
def test_a_checkpoint_goes_on_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, seed: int, middle: int, coupling: str, workers: int
) -> None:
    scene, params = workshop(seed), Params(workers=workers, coupling=coupling, runtime="inline", repartition=0)
    with Simulation(scene, params) as simulation:
        play(simulation, 0, middle, 1)
        writer = CheckpointWriter(tmp_path_factory.mktemp("checkpoints"), simulation)
        checkpoint = Checkpoint(writer.save(simulation))
        play(simulation, middle, 100, 1)
        wanted, poses = simulation.state_hash, simulation.kinematic.states
    with checkpoint.resume() as simulation:
        play(simulation, middle, 100, 1)
        assert simulation.state_hash == wanted
        assert np.array_equal(simulation.kinematic.states, poses)


@pytest.mark.parametrize("coupling", ["tight", "blend"])
def test_with_another_number_of_workers_bodies_go_on_where_they_are(tmp_path: Path, coupling: str) -> None:
    with Simulation(workshop(), Params(workers=2, coupling=coupling, runtime="inline")) as simulation:
        play(simulation, 0, 70)
        checkpoint = Checkpoint(CheckpointWriter(tmp_path, simulation).save(simulation))
        play(simulation, 70, 80)
        states, poses = simulation.states, simulation.kinematic.states
    for workers in (1, 3):
        with checkpoint.resume(workers=workers) as other:
            play(other, 70, 80)
            assert np.array_equal(other.kinematic.states, poses)
            assert np.abs(other.states - states)[:, :3].max() < 2e-3
    with Simulation(workshop(), Params(workers=2, coupling=coupling, runtime="inline")) as simulation:
        play(simulation, 0, 70)
        simulation.workers.set_count(3)
        play(simulation, 70, 80)
        assert np.abs(simulation.states - states)[:, :3].max() < 2e-3


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["tight", "blend"])
@pytest.mark.parametrize("at", [5, 65])
def test_a_fresh_worker_has_bodies_where_the_others_have_them(
    at: int, coupling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(tmp_path, monkeypatch)
    params: dict[str, Any] = {"workers": 2, "coupling": coupling, "solver": "substeps", "repartition": 0}
    with Simulation(workshop(), Params.from_options(runtime="inline", **params)) as simulation:
        play(simulation, 0, 100, 5)
        states, poses = simulation.states, simulation.kinematic.states
    with Simulation(workshop(), Params.from_options(engine="faulty", runtime="process", **params)) as simulation:
        play(simulation, 0, at, 5)
        tell("kill", 0, when="end")
        play(simulation, at, 100, 5)
        assert [incident.kind for incident in simulation.incidents] == ["gone"]
        assert np.array_equal(simulation.kinematic.states, poses)
        assert np.abs(simulation.states - states)[:, :3].max() < 5e-3


def test_a_restart_begins_with_the_scene_s_motions() -> None:
    with Simulation(workshop(), Params(workers=2, runtime="inline")) as simulation:
        play(simulation, 0, 100)
        wanted = simulation.state_hash
        simulation.restart()
        assert simulation.kinematic.states[0, :3].tolist() == [0, 0, 0.4]
        play(simulation, 0, 100)
        assert simulation.state_hash == wanted


def test_one_engine_takes_the_same_steps() -> None:
    with Simulation(workshop(), Params(runtime="inline")) as simulation:
        measures = Measures(simulation, ["one_step_error"])
        for step in range(50):
            if step == 20:
                simulation.kinematic.set_motion([1], ConstantVelocity((0.6, 0, 0)))
            measures.before_step(simulation)
            simulation.step()
            assert measures.after_step(simulation)["one_step_error"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["tight", "blend"])
def test_bodies_that_are_added_are_carried_along(coupling: str, tmp_path: Path) -> None:
    """And those that a checkpoint has, though the scene that it began with has not."""
    with Simulation(workshop(), Params(workers=2, coupling=coupling, runtime="inline", repartition=0)) as simulation:
        play(simulation, 0, 50)
        added = simulation.bodies.add(Box((0.4, 0.4, 0.4)), [(-3.0, 3.0, 0.51), (2.9, 3.0, 0.51)], material=ROUGH)
        simulation.bodies.remove([0])
        play(simulation, 50, 70)
        checkpoint = Checkpoint(CheckpointWriter(tmp_path, simulation).save(simulation))
        play(simulation, 70, 170)
        assert simulation.states[list(added), 7] == pytest.approx([0.5, 0.5], abs=0.02)
        wanted = simulation.state_hash
    with checkpoint.resume() as simulation:
        play(simulation, 70, 170)
        assert simulation.state_hash == wanted


# ---- what a user does ------------------------------------------------------------------------------------------------


def test_bodies_are_moved_to_where_they_are_told() -> None:
    with Simulation(workshop(), Params(runtime="inline")) as simulation:
        simulation.step(3)
        there, turn = (-1.9, 0.1, 1.05), (np.cos(0.05), 0, 0, np.sin(0.05))
        simulation.kinematic.move_to([1], there, turn)
        before = simulation.kinematic.states[1]
        assert before[:3].tolist() == [-2.0, 0.0, 1.05]
        assert before[7:] == pytest.approx([0.1 / TIMESTEP, 0.1 / TIMESTEP, 0, 0, 0, 0.1 / TIMESTEP])
        simulation.step()
        assert simulation.kinematic.states[1] == pytest.approx([*there, *turn, 0, 0, 0, 0, 0, 0])
        simulation.step(5)
        assert simulation.kinematic.states[1] == pytest.approx([*there, *turn, 0, 0, 0, 0, 0, 0])
        simulation.kinematic.set_motion(1, ConstantVelocity((0, 0, 1)))
        simulation.step(10)
        assert simulation.kinematic.states[1, :3] == pytest.approx([-1.9, 0.1, 1.05 + 10 * TIMESTEP])
        simulation.kinematic.set_motion(1, Keyframes((0, 1), [(5, 0, 0), (6, 0, 0)]))
        assert simulation.kinematic.static_poses[1, 0] == pytest.approx(5.0)
        assert simulation.kinematic.static_poses[3].tolist() == [0, 3, 0.15, 1, 0, 0, 0]


def test_what_is_refused_changes_nothing() -> None:
    with Simulation(workshop(), Params(runtime="inline")) as simulation:
        before = simulation.kinematic.states
        for wrong, message in (
            (
                lambda: simulation.kinematic.set_motion([3], None),
                "set_motion: static body 3 is not kinematic; .*: 0, 1, 2",
            ),
            (lambda: simulation.kinematic.set_motion([0, 9], None), "set_motion: static body 9 is not kinematic"),
            (lambda: simulation.kinematic.move_to([0], [(0, np.nan, 0)]), "move_to: static body 0: position is .*nan"),
            (
                lambda: simulation.kinematic.move_to([0], [(0, 0, 0)], [(2, 0, 0, 0)]),
                "move_to: static body 0: quaternion",
            ),
            (
                lambda: simulation.kinematic.set_motion([0], Rotation((0, 0, 0), 1.0)),
                "set_motion: static body 0: axis is zero",
            ),
            (
                lambda: simulation.kinematic.set_motion([0], Keyframes(np.arange(20_000), np.zeros((20_000, 3)))),
                "motions that are set while a simulation runs have 160013 numbers, expected 100000 at most",
            ),
        ):
            with pytest.raises(LapjointError, match=message):
                wrong()
        simulation.step()
        simulation.restart()
        assert np.array_equal(simulation.kinematic.states, before)


def test_long_keyframes_reach_workers_in_other_processes() -> None:
    """A message has room for them, however few bodies a scene has."""
    times = np.linspace(0, 1, 10_000)
    places = np.stack([times, 0 * times, np.full(10_000, 0.5)], axis=1)
    scene = Scene(timestep=TIMESTEP)
    scene.add_kinematic(Box((1, 1, 1)), (0, 0, 0.5), material=ROUGH)
    scene.add_body(Box((0.4, 0.4, 0.4)), (0, 0, 1.2), material=ROUGH)
    with Simulation(scene, Params(runtime="process")) as simulation:
        simulation.kinematic.set_motion([0], Keyframes(times, places))
        simulation.step(300)
        assert simulation.states[0, [0, 7]] == pytest.approx([0.6, 1.0], abs=0.12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["drum", "belt"])
def test_the_library_s_scenes_run(name: str) -> None:
    with Simulation(scenes.build(name, 60), Params(workers=2, runtime="inline", validate=True)) as simulation:
        simulation.step(300)
        assert np.abs(simulation.states[:, :3]).max() < 5.0, "nothing has left"
        assert np.linalg.norm(simulation.states[:, 7:10], axis=1).mean() > 0.3, "all are carried along"
