"""Workers that die, hang, fail or answer with NaN: the run goes on, or stops cleanly."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from faulty_engine import register, tell
from lapjoint import (
    Checkpoint,
    CheckpointWriter,
    Incident,
    LapjointError,
    Params,
    Recording,
    Scene,
    Simulation,
    SimulationStopped,
    Sphere,
    scenes,
)
from lapjoint.cli import app
from lapjoint.run import run
from lapjoint.workers.runtimes.process import ProcessRuntime
from parallel_support import children

BODY = 150

slow = pytest.mark.slow
every_runtime = pytest.mark.parametrize("runtime", ["inline", pytest.param("process", marks=slow)])


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that a failure stops leaves a checkpoint in the current directory."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def bowl() -> Scene:
    return scenes.build("bowl", size=300)


@pytest.fixture(scope="module")
def without_fault(bowl: Scene) -> list[np.ndarray]:
    """States after 0, 1, 2... steps of three workers."""
    with Simulation(bowl, Params(workers=3, runtime="inline")) as simulation:
        states = [simulation.states]
        for _ in range(40):
            simulation.step()
            states.append(simulation.states)
    return states


def start(scene: Scene, **params: Any) -> Simulation:
    # The solver by name: auto takes the substep solver for the engine bullet alone.
    given = {"workers": 3, "coupling": "blend", "solver": "substeps", "validate": True, **params}
    return Simulation(scene, Params.from_options(**given))


def pids(simulation: Simulation) -> list[int]:
    assert isinstance(simulation._core.runtime, ProcessRuntime)
    return simulation._core.runtime.process_ids


def jump(states: np.ndarray, wanted: np.ndarray) -> float:
    """Largest distance between positions [m]."""
    return float(np.linalg.norm(states[:, :3] - wanted[:, :3], axis=1).max())


# ---- dead and hanging processes --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_workers_killed_at_random_moments_are_replaced(bowl: Scene, without_fault: list[np.ndarray]) -> None:
    chance = random.Random(1)
    for _ in range(2):
        step, worker, delay = chance.randrange(1, 30), chance.randrange(3), chance.uniform(0.0, 0.01)
        with start(bowl, runtime="process") as simulation:
            simulation.step(step)
            assert np.array_equal(simulation.states, without_fault[step])
            pid = pids(simulation)[worker]
            killer = threading.Timer(delay, os.kill, (pid, signal.SIGKILL))
            killer.start()
            while killer.is_alive() or not simulation.incidents:
                if not simulation.incidents:
                    before = simulation.step_count
                simulation.step()
            killer.join()
            (event,) = simulation.incidents
            assert (event.kind, event.worker, event.is_failure) == ("gone", worker, True)
            assert f"process {pid} was killed by SIGKILL" in event.text
            assert event.recovery_s > 0
            assert event.step_count >= before
            assert pids(simulation)[worker] != pid
            assert len(children()) == 3
            while simulation.step_count < 40:
                simulation.step()
            if simulation.step_count == 40:  # more if the killer had to wait for a core
                assert jump(simulation.states, without_fault[40]) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("name", "workers"), [("building", 1), ("bowl", 2), ("two-way-bridge", 2)])
def test_the_step_of_a_dead_worker_is_taken_by_its_successor(name: str, workers: int) -> None:
    scene = scenes.build(name, size=200)
    with start(scene, runtime="process", workers=workers) as simulation, start(scene, workers=workers) as untouched:
        simulation.step(10)
        untouched.step(11)
        os.kill(pids(simulation)[0], signal.SIGKILL)
        simulation.step()
        assert simulation.step_count == 11
        apart = (simulation.states != untouched.states).any(axis=1)
        assert not (apart & ~simulation.workers.membership.column(0)).any(), (
            "bodies of the other workers are as they were"
        )
        # Contacts start without the impulses of the step before, and rotations are rounded on their way. Balls that
        # fall have neither.
        assert jump(simulation.states, untouched.states) < 1e-4
        assert apart.any() == (name != "bowl")


@pytest.mark.slow
def test_forces_and_iterations_are_those_of_the_step_that_is_repeated() -> None:
    scene = Scene("balls", gravity=(0, 0, 0))
    scene.add_bodies(Sphere(0.5), [[3 * i, 0, 0] for i in range(4)])
    given = {"workers": 2, "solver": "sequential"}
    with start(scene, runtime="process", **given) as simulation, start(scene, **given) as untouched:
        for each in (simulation, untouched):
            each.step()
            each.workers.set_iterations(7)
            each.step()
            each.bodies.add_forces([0, 3], [[1.0, 2.0, 3.0]])
        for pid in pids(simulation):
            os.kill(pid, signal.SIGKILL)
        for each in (simulation, untouched):
            each.step(2)
        assert simulation.state_hash == untouched.state_hash
        assert [event.worker for event in simulation.incidents] == [0, 1]


@pytest.mark.slow
def test_a_hanging_worker_is_replaced(bowl: Scene) -> None:
    with start(bowl, runtime="process", hang_limit=3.0) as simulation:
        simulation.step(3)
        os.kill(pids(simulation)[1], signal.SIGSTOP)
        simulation.step(3)
        (event,) = simulation.incidents
        assert (event.kind, event.worker, event.step_count) == ("hung", 1, 3)
        assert simulation.step_count == 6


@pytest.mark.slow
def test_a_worker_that_dies_again_and_again_stops_the_run(bowl: Scene) -> None:
    with start(bowl, runtime="process") as simulation:
        for _ in range(2):
            simulation.step(5)
            os.kill(pids(simulation)[2], signal.SIGKILL)
        simulation.step(5)
        before = simulation.states
        os.kill(pids(simulation)[2], signal.SIGKILL)
        seen: list[np.ndarray] = []

        def fail(stopped: Simulation) -> None:
            seen.append(stopped.states)
            raise LapjointError("the disk is full")

        simulation.before_stop += [fail, lambda stopped: seen.append(stopped.states)]
        with pytest.raises(SimulationStopped) as caught:
            simulation.step()
        assert "worker 2 failed 3 times within 100 steps; bodies concerned: body " in str(caught.value)
        assert "was killed by SIGKILL" in str(caught.value)
        assert caught.value.body_ids == tuple(simulation.workers.membership.active(2).tolist())
        assert [event.kind for event in simulation.incidents] == ["gone", "gone", "gone", "stop"]
        assert simulation.step_count == 15
        assert np.array_equal(simulation.states, before)
        assert np.array_equal(seen, [before, before])
        assert caught.value.__notes__ == ["the disk is full"]
        with pytest.raises(SimulationStopped):
            simulation.step()
    assert children() == []


@pytest.mark.slow
def test_a_run_that_goes_on_counts_what_failed_before(bowl: Scene, tmp_path: Path) -> None:
    with start(bowl, runtime="process") as simulation:
        for _ in range(2):
            simulation.step(5)
            os.kill(pids(simulation)[2], signal.SIGKILL)
        simulation.step(5)
        path = CheckpointWriter(tmp_path / "kept", simulation).save(simulation)
    with Checkpoint(path).resume() as resumed:
        os.kill(pids(resumed)[2], signal.SIGKILL)
        with pytest.raises(SimulationStopped, match="worker 2 failed 3 times within 100 steps"):
            resumed.step()


@pytest.mark.slow
def test_failures_far_apart_do_not_stop_the_run(bowl: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapjoint.server.recovery.WITHIN", 4)
    with start(bowl, runtime="process", workers=1) as simulation:
        for _ in range(4):
            simulation.step(3)
            os.kill(pids(simulation)[0], signal.SIGKILL)
        simulation.step()
        assert len(simulation.incidents) == 4


# ---- what goes wrong within a step -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("runtime", "kind"),
    [("inline", "nan"), ("inline", "silent nan"), ("inline", "error"), pytest.param("process", "nan", marks=slow)],
)
def test_a_fault_that_does_not_come_back(
    bowl: Scene, without_fault: list[np.ndarray], faulty: None, runtime: str, kind: str
) -> None:
    with start(bowl, runtime=runtime, engine="faulty") as simulation:
        simulation.step(10)
        worker = min(simulation.workers.membership.workers(BODY))
        tell(kind, BODY)
        simulation.step()
        (event,) = simulation.incidents
        assert event.kind == ("failed" if kind == "error" else "not finite")
        assert event.worker == worker
        assert event.body_ids == (() if kind == "error" else (BODY,))
        assert "\n" not in event.text
        if kind == "error":
            assert "ZeroDivisionError: body 150 divides by zero" in event.text
        assert jump(simulation.states, without_fault[11]) < 1e-3
        simulation.step(10)
        assert len(simulation.incidents) == 1


@pytest.mark.parametrize(("runtime", "kind"), [("inline", "nan"), pytest.param("process", "silent nan", marks=slow)])
def test_nan_that_comes_back_stops_the_run_and_names_the_body(
    bowl: Scene, without_fault: list[np.ndarray], faulty: None, runtime: str, kind: str
) -> None:
    with start(bowl, runtime=runtime, engine="faulty") as simulation:
        simulation.step(10)
        tell(kind, BODY, times=-1)
        with pytest.raises(
            SimulationStopped, match="failed 2 times in this step; bodies concerned: body 150"
        ) as caught:
            simulation.step(5)
        assert caught.value.body_ids == (BODY,)
        assert np.array_equal(simulation.states, without_fault[10])


@pytest.mark.slow
def test_an_exit_that_comes_back_stops_the_run(bowl: Scene, faulty: None) -> None:
    with start(bowl, runtime="process", engine="faulty") as simulation:
        simulation.step(2)
        tell("exit", BODY, times=-1)
        with pytest.raises(SimulationStopped, match="ended with exit code 7"):
            simulation.step()


@every_runtime
def test_on_failure_stop(bowl: Scene, without_fault: list[np.ndarray], faulty: None, runtime: str) -> None:
    with start(bowl, runtime=runtime, engine="faulty", on_failure="stop") as simulation:
        simulation.step(10)
        simulation.bodies.add_forces(7, [1.0, 0.0, 0.0])
        tell("error", BODY)
        with pytest.raises(SimulationStopped, match=r"stopped in step 11: worker \d failed; bodies concerned"):
            simulation.step()
        assert np.array_equal(simulation.states, without_fault[10])
        assert simulation.bodies.forces.keys() == {7}, "what the step would have had"


# ---- quarantine ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("runtime", "kind"), [("inline", "nan"), ("inline", "silent nan"), pytest.param("process", "nan", marks=slow)]
)
def test_nan_is_contained_to_its_body(bowl: Scene, faulty: None, runtime: str, kind: str) -> None:
    with start(bowl, runtime=runtime, engine="faulty", quarantine=True) as simulation:
        simulation.step(10)
        before = simulation.states
        tell(kind, BODY, times=2)
        simulation.step(20)
        assert [event.kind for event in simulation.incidents] == ["not finite", "not finite", "quarantine"]
        assert simulation.incidents[-1].body_ids == (BODY,)
        assert simulation.bodies.frozen_ids.tolist() == [BODY]
        assert np.array_equal(simulation.states[BODY, :7], before[BODY, :7])
        assert np.isfinite(simulation.states).all()
        moved = np.linalg.norm(simulation.states[:, :3] - before[:, :3], axis=1) > 0
        assert moved.sum() == bowl.body_count - 1


def test_a_body_of_several_workers_is_frozen_before_it_is_removed(faulty: None) -> None:
    """It was removed at the word of the second worker, and left NaN in its row; with three workers the run ended."""
    with start(scenes.build("chain", 24), runtime="inline", engine="faulty", quarantine=True) as simulation:
        simulation.step(10)
        body = int(
            simulation.workers.overlap[
                np.argmax(simulation.workers.membership.worker_counts()[simulation.workers.overlap])
            ]
        )
        count = int(simulation.workers.membership.worker_counts()[body])
        assert count > 1
        tell("silent nan", body, times=2 * count)
        simulation.step(3)
        failed = count * ["not finite"]
        assert [event.kind for event in simulation.incidents] == [*failed, *failed, "quarantine"]
        assert simulation.bodies.frozen_ids.tolist() == [body]
        simulation.bodies.release([body])
        tell("silent nan", body, times=-1)
        simulation.step(3)
        assert [event.kind for event in simulation.incidents][-1] == "removed"
        assert not simulation.alive[body]
        assert not simulation.states[body].any()
        assert np.isfinite(simulation.states).all()


def test_bodies_that_leave_one_after_the_other_in_one_step_all_have_empty_rows(faulty: None) -> None:
    with start(scenes.build("chain", 24), runtime="inline", engine="faulty", quarantine=True) as simulation:
        simulation.step(10)
        one, other = simulation.workers.overlap[:2].tolist()
        for body in (one, other):
            tell("silent nan", body, times=2)
            simulation.step()
        simulation.bodies.release([one, other])
        tell("silent nan", one, other, times=-1)
        simulation.step()
        removed = [event.body_ids for event in simulation.incidents if event.kind == "removed"]
        assert removed == [(one,), (other,)]
        assert not simulation.states[[one, other]].any()


@pytest.mark.parametrize("workers", [1, 3])
def test_nan_that_comes_back_though_frozen_leaves_the_engines(bowl: Scene, faulty: None, workers: int) -> None:
    with start(bowl, runtime="inline", engine="faulty", quarantine=True, workers=workers) as simulation:
        simulation.step(10)
        tell("silent nan", BODY, times=-1)
        simulation.step(30)
        kinds = [event.kind for event in simulation.incidents]
        assert kinds == ["not finite", "not finite", "quarantine", "not finite", "removed"]
        assert np.isfinite(simulation.states).all()
        assert len(simulation.bodies.frozen_ids) == 0
        assert not simulation.alive[BODY]
        assert BODY not in simulation.contacts.pairs().bodies
        if workers > 1:
            simulation.workers.set_count(2)
            simulation.step(3)
            simulation.workers.set_growth_depth(3)
            simulation.step(10)
            assert np.isfinite(simulation.states).all()


def test_a_runaway_is_frozen_where_it_was() -> None:
    scene = scenes.build("bowl", size=100)
    with start(scene, runtime="inline", quarantine=True) as simulation:
        limit = simulation.params.failures.speed_limit
        assert limit is not None
        extent = np.linalg.norm(np.ptp(scene.states[:, :3], axis=0)) + 4 * scene.bounding_radii().max()
        assert limit * simulation.timestep == pytest.approx(extent, rel=0.2)
        simulation.step(5)
        before = simulation.states[7]
        force = 2 * limit * scene.bodies.mass[7] / simulation.timestep
        simulation.bodies.add_forces(7, [0.0, 0.0, force])
        simulation.step(10)
        (event,) = simulation.incidents
        assert (event.kind, event.body_ids, event.step_count) == ("quarantine", (7,), 5)
        assert "passes the speed limit" in event.text
        assert np.array_equal(simulation.states[7, :7], before[:7])


def test_forces_beyond_all_measure_are_contained() -> None:
    scene = Scene("balls")
    scene.add_bodies(Sphere(0.5), [[3 * i, 0, 0] for i in range(4)])
    with start(scene, runtime="inline", workers=4, quarantine=True) as simulation:
        simulation.step()
        for _ in range(3):
            simulation.bodies.add_forces(2, [1e32, 0.0, 0.0])
        simulation.step(20)
        assert simulation.bodies.frozen_ids.tolist() == [2]
        assert np.isfinite(simulation.states).all()


# ---- what a run tells of it ------------------------------------------------------------------------------------------


@every_runtime
def test_a_run_that_stops_is_summed_up_and_its_recording_is_whole(
    bowl: Scene, faulty: None, tmp_path: Path, runtime: str
) -> None:
    def arm(done: int) -> None:
        if done == 3:
            tell("nan", BODY)
        if done == 6:
            tell("nan", BODY, times=-1)

    with start(bowl, runtime=runtime, engine="faulty") as simulation:
        summary = run(simulation, 10, arm, record=tmp_path / "run.zarr")
        assert np.isfinite(simulation.states).all()
        assert summary.state_hash == simulation.state_hash
    assert summary.steps == 6
    assert summary.failure_count == 3
    assert summary.stopped is not None
    assert "body 150" in summary.stopped
    assert [event["kind"] for event in summary.events] == ["not finite", "not finite", "not finite", "stop"]
    recording = Recording(tmp_path / "run.zarr")
    assert recording.complete
    assert recording.frame_count == 6
    assert recording.incidents == simulation.incidents
    assert recording.incidents[0].step_count == 3
    assert recording.incidents[0].recovery_s > 0
    assert [event.to_dict() for event in recording.incidents] == summary.events


def test_events_of_another_version_are_read() -> None:
    event = Incident(3, "gone", "worker 1 is gone", 1, (2, 3), 0.5)
    assert Incident.from_dict({**event.to_dict(), "colour": "red"}) == event
    assert Incident.from_dict({"step_count": 1, "kind": "stop", "text": "x"}) == Incident(1, "stop", "x")
    assert str(event) == "step 4: worker 1 is gone (0.50 s)"


def test_what_cannot_be_is_refused() -> None:
    for params, message in (
        ({"on_failure": "ignore"}, "on_failure is 'ignore', expected one of replace, stop"),
        ({"hang_limit": 0.0}, "hang_limit is 0.0, expected a positive number"),
        ({"speed_limit": -1.0}, "speed_limit is -1.0, expected a positive number"),
        ({"workers": 4, "max_workers": 2}, "max_workers is 2, expected at least workers, 4"),
    ):
        with pytest.raises(LapjointError) as caught:
            Params.from_options(**params)
        assert message in str(caught.value)


# ---- the command line ------------------------------------------------------------------------------------------------


def test_the_command_line_tells_of_a_quarantine_and_of_a_stop(faulty: None, tmp_path: Path) -> None:
    run_it = ["run", "bowl", "--size", "300", "--workers", "3", "--runtime", "inline", "--engine", "faulty"]
    files = ["--steps", "5", "--json", str(tmp_path / "run.json"), "--record", str(tmp_path / "run.zarr")]
    tell("nan", BODY, times=2)
    assert CliRunner().invoke(app, [*run_it, "--steps", "5", "--quarantine"]).exit_code == 0
    tell("nan", BODY, times=-1)
    result = CliRunner().invoke(app, [*run_it, *files])
    assert isinstance(result.exception, LapjointError)
    assert "stopped in step 1: worker 1 failed 2 times in this step; bodies concerned: body 150" in str(
        result.exception
    )
    assert "step 1: worker 1: body 150: not finite after the step; replaced, the step is repeated" in result.output
    summary = json.loads((tmp_path / "run.json").read_text())
    assert summary["stopped"] == str(result.exception)
    assert (summary["failure_count"], summary["steps"]) == (2, 0)
    assert [event.kind for event in Recording(tmp_path / "run.zarr").incidents] == ["not finite", "not finite", "stop"]
    tell("nan", BODY)
    result = CliRunner().invoke(app, [*run_it, "--on-failure", "stop"])
    assert "stopped in step 1: worker 1 failed; bodies concerned: body 150" in str(result.exception)
