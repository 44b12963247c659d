"""Checkpoints of runs that fail, and of runs whose number of workers changes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from faulty_engine import register, tell
from lapjoint import Checkpoint, CheckpointWriter, Params, Simulation, SimulationStopped, scenes
from lapjoint.cli import app
from lapjoint.run import run
from lapjoint.workers.runtimes.process import ProcessRuntime

BODY = 150


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(tmp_path, monkeypatch)


def bowl(**params: object) -> Simulation:
    return Simulation(
        scenes.build("bowl", size=300), Params.from_options(workers=3, runtime="inline", validate=True, **params)
    )


def test_a_run_that_a_failure_stops_leaves_a_checkpoint_from_before_the_step(faulty: None, tmp_path: Path) -> None:
    with bowl(engine="faulty") as simulation:
        CheckpointWriter(tmp_path / "c", simulation, every=0)
        simulation.step(10)
        states = simulation.states
        tell("nan", BODY, times=100)
        with pytest.raises(SimulationStopped):
            simulation.step()
    tell("nan", BODY, times=0)
    checkpoint = Checkpoint(tmp_path / "c")
    assert checkpoint.step_count == 10
    with checkpoint.resume() as simulation:
        assert np.array_equal(simulation.states, states)
        simulation.step(5)
        assert simulation.step_count == 15
        assert np.isfinite(simulation.states).all()
    with checkpoint.resume(workers=2) as simulation:
        simulation.step(5)
        assert np.isfinite(simulation.states).all()


def test_the_command_line_saves_a_stopped_run_that_has_no_place_for_checkpoints(
    faulty: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tell("nan", BODY, times=100)
    arguments = ["run", "bowl", "--size", "300", "--workers", "2", "--runtime", "inline", "--engine", "faulty"]
    result = CliRunner().invoke(app, [*arguments, "--steps", "12"])
    assert result.exit_code == 1
    assert "bowl-stopped" in result.output
    checkpoint = Checkpoint("bowl-stopped")
    assert (checkpoint.step_count, checkpoint.end) == (0, 12)


def test_the_name_of_a_scene_leads_out_of_no_directory(
    faulty: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = scenes.build("bowl", 300)
    scene.name = "../../etc/a bowl"
    scene.save(tmp_path / "bowl.npz")
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    tell("nan", BODY, times=100)
    arguments = ["run", str(tmp_path / "bowl.npz"), "--workers", "2", "--runtime", "inline", "--engine", "faulty"]
    assert CliRunner().invoke(app, [*arguments, "--steps", "12"]).exit_code == 1
    assert [path.name for path in Path().iterdir()] == ["etc-a-bowl-stopped"]


@pytest.mark.slow
def test_a_worker_that_is_killed_before_a_checkpoint_costs_only_that_checkpoint(tmp_path: Path) -> None:
    with bowl() as inline:
        inline.step(4)
    with Simulation(inline.scene, Params(workers=3, validate=True)) as simulation:
        writer = CheckpointWriter(tmp_path / "c", simulation, every=4)

        def kill(done: int) -> None:
            if done == 3:
                runtime = simulation._core.runtime
                assert isinstance(runtime, ProcessRuntime)
                simulation.on_step(lambda _: os.kill(runtime.process_ids[1], signal.SIGKILL) if done == 3 else None)
                simulation.on_step(lambda _: simulation._callbacks.clear())

        with pytest.warns(UserWarning, match="engine's state"):
            summary = run(simulation, 8, kill, checkpoints=writer)
        assert (summary.steps, summary.failure_count) == (8, 1)
        assert Checkpoint(tmp_path / "c").step_count == 8


@pytest.mark.slow
@pytest.mark.parametrize("steps", [10, 11, 12])
@pytest.mark.parametrize("counts", [(2, 4), (4, 2)])
def test_a_run_whose_workers_change_goes_on_bit_for_bit(steps: int, counts: tuple[int, int], tmp_path: Path) -> None:
    """Also from the step in which bodies are in old and in new workers."""
    before, after = counts

    def start() -> Simulation:
        simulation = Simulation(scenes.build("bowl", size=300), Params(workers=before, runtime="inline", validate=True))
        simulation.step(10)
        simulation.workers.set_count(after)
        simulation.step(steps - 10)
        return simulation

    with start() as whole:
        CheckpointWriter(tmp_path / "c", whole).save(whole)
        whole.step(8)
        wanted = whole.state_hash
    with Checkpoint(tmp_path / "c").resume() as again:
        again.step(8)
        assert again.state_hash == wanted
        assert again.workers.membership.worker_count == after


def test_a_worker_that_has_failed_and_then_ended_is_no_damage(faulty: None, tmp_path: Path) -> None:
    with bowl(engine="faulty") as simulation:
        simulation.step(3)
        tell("nan", int(simulation.workers.membership.active(2)[0]))
        simulation.step()
        assert [incident.worker for incident in simulation.incidents] == [2]
        simulation.workers.set_count(1)
        simulation.step(3)
        CheckpointWriter(tmp_path / "c", simulation).save(simulation)
        simulation.step(5)
        with Checkpoint(tmp_path / "c").resume() as again:
            again.step(5)
            assert again.state_hash == simulation.state_hash
