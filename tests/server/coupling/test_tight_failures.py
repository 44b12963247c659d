"""Workers that die, hang, fail or answer with NaN while the others are within a tight step, and after it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faulty_engine import register, tell
from lapjoint import Scene, Simulation, SimulationStopped
from lapjoint.workers.messages import Migrate, ReadState
from parallel_support import children, poll, running, worker_processes
from tight_runs import inner_body, interface, jump, owner_of, pids, tight

STEPS, AFTER = 6, 5
NAMES = ["two-way-bridge", "building"]
SETTINGS: dict[str, Any] = {"timestep": 0.002}
BEYOND = 3e32
"""A force that float32 holds, and not what it makes of a body [N]."""

moments = pytest.mark.parametrize("when", ["begin", "end"])


@pytest.fixture(autouse=True)
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, list[np.ndarray]]:
    """States after 0, 1, 2... steps."""
    found = {}
    for name in NAMES:
        with tight(name, **SETTINGS) as simulation:
            found[name] = [simulation.states]
            for _ in range(STEPS + 1 + AFTER):
                simulation.step()
                found[name].append(simulation.states)
    return found


def start(scene: Scene | str, **params: Any) -> Simulation:
    return tight(scene, **{**SETTINGS, "engine": "faulty", "runtime": "process", **params})


def end(simulation: Simulation, undisturbed: list[np.ndarray], near: float = 1e-4) -> None:
    """It goes on from the faulty step, near to where it would have been, and no body is lost."""
    assert simulation.step_count == STEPS + 1
    assert (simulation.workers.membership.worker_counts() == 1).all()
    assert jump(simulation.states, undisturbed[STEPS + 1]) < near
    events = len(simulation.incidents)
    simulation.step(AFTER)
    assert len(simulation.incidents) == events
    assert jump(simulation.states, undisturbed[STEPS + 1 + AFTER]) < 20 * near


# ---- dead and hanging processes --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "worker", "when"),
    [(NAMES[0], 0, "begin"), (NAMES[1], 1, "begin"), (NAMES[1], 2, "end")],
)
def test_a_killed_worker_is_replaced(
    name: str, when: str, worker: int, undisturbed: dict[str, list[np.ndarray]]
) -> None:
    with start(name) as simulation:
        simulation.step(STEPS)
        assert np.array_equal(simulation.states, undisturbed[name][STEPS])
        before = pids(simulation)
        tell("kill", inner_body(simulation, worker), when=when)
        simulation.step()
        (event,) = simulation.incidents
        assert (event.kind, event.worker, event.step_count) == ("gone", worker, STEPS)
        assert f"process {before[worker]} was killed by SIGKILL" in event.text
        after = pids(simulation)
        assert [old != new for old, new in zip(before, after, strict=True)] == [w == worker for w in range(3)]
        end(simulation, undisturbed[name])
        assert len(children()) == 3


@pytest.mark.slow
def test_workers_killed_at_random_moments(undisturbed: dict[str, list[np.ndarray]]) -> None:
    chance = random.Random(3)
    with start("building", engine="bullet") as simulation:
        for worker in (1, 2):
            events = len(simulation.incidents)
            pid = pids(simulation)[worker]
            killer = threading.Timer(chance.uniform(0, 0.02), os.kill, (pid, signal.SIGKILL))
            killer.start()
            while len(simulation.incidents) == events:
                simulation.step()
            killer.join()
        assert [event.worker for event in simulation.incidents] == [1, 2]
        assert np.isfinite(simulation.states).all()


@pytest.mark.slow
def test_all_workers_killed_at_once(undisturbed: dict[str, list[np.ndarray]]) -> None:
    with start("building", engine="bullet") as simulation:
        simulation.step(STEPS)
        for pid in pids(simulation):
            os.kill(pid, signal.SIGKILL)
        simulation.step()
        assert [(event.kind, event.worker) for event in simulation.incidents] == [("gone", w) for w in range(3)]
        end(simulation, undisturbed["building"], near=3e-4)


@pytest.mark.slow
@moments
def test_a_stopped_worker_is_replaced_and_the_others_stay(when: str, undisturbed: dict[str, list[np.ndarray]]) -> None:
    name = "two-way-bridge"
    with start(name, hang_limit=3.0) as simulation:
        simulation.step(STEPS)
        before = pids(simulation)
        tell("stop", inner_body(simulation), when=when)
        simulation.step()
        (event,) = simulation.incidents
        assert (event.kind, event.worker) == ("hung", 1)
        assert [old == new for old, new in zip(before, pids(simulation), strict=True)] == [True, False, True]
        limits = simulation._core.runtime._limits  # type: ignore[attr-defined]
        assert [limits.limit_s(worker) for worker in (0, 2)] == [3.0, 3.0], "they waited, and that is not their time"
        end(simulation, undisturbed[name])


@pytest.mark.slow
def test_a_worker_that_dies_again_and_again_stops_the_run() -> None:
    with start("two-way-bridge") as simulation:
        simulation.step(STEPS)
        before = simulation.states
        body = inner_body(simulation)
        simulation.bodies.add_forces(body, [1.0, 0.0, 0.0])
        tell("kill", body, times=-1, when="begin")
        with pytest.raises(SimulationStopped, match="worker 1 failed 2 times in this step; bodies concerned: body "):
            simulation.step()
        assert np.array_equal(simulation.states, before)
        assert simulation.bodies.forces.keys() == {body}
    assert children() == []


# ---- errors and NaN --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "runtime", "when"),
    [
        ("error", "inline", "begin"),
        ("error", "inline", "end"),
        ("nan", "inline", "end"),
        ("nan", "process", "begin"),
    ],
)
def test_a_fault_that_does_not_come_back(
    when: str, kind: str, runtime: str, undisturbed: dict[str, list[np.ndarray]]
) -> None:
    with start("building", runtime=runtime) as simulation:
        simulation.step(STEPS)
        body = inner_body(simulation)
        tell(kind, body, when=when)
        simulation.step()
        (event,) = simulation.incidents
        assert (event.kind, event.worker) == ("failed" if kind == "error" else "not finite", 1)
        assert event.body_ids == (() if kind == "error" else (body,))
        end(simulation, undisturbed["building"])


def test_nan_that_nobody_notices_in_time(undisturbed: dict[str, list[np.ndarray]]) -> None:
    with start("building", runtime="inline") as simulation:
        simulation.step(STEPS)
        body = int(interface(simulation)[0])
        tell("silent nan", body)
        simulation.step()
        (event,) = simulation.incidents
        assert (event.kind, event.worker, event.body_ids) == ("not finite", owner_of(simulation)[body], (body,))
        end(simulation, undisturbed["building"])


@pytest.mark.parametrize(
    ("place", "runtime"), [("inside", "inline"), pytest.param("interface", "process", marks=pytest.mark.slow)]
)
def test_real_nan_names_the_bodies_of_its_worker_alone(place: str, runtime: str) -> None:
    """A force beyond all measure: the numbers of one worker overflow, and nobody else hears of them."""
    with start("building", engine="bullet", runtime=runtime) as simulation:
        simulation.step(STEPS)
        before = simulation.states
        mine = simulation.workers.membership.active(1)
        body = inner_body(simulation) if place == "inside" else int(np.intersect1d(mine, interface(simulation))[0])
        simulation.bodies.add_forces(body, [BEYOND, 0.0, 0.0])
        with pytest.raises(SimulationStopped, match="worker 1 failed 2 times in this step") as caught:
            simulation.step()
        assert {(event.kind, event.worker) for event in simulation.incidents if event.is_failure} == {("not finite", 1)}
        assert body in caught.value.body_ids
        assert np.isin(caught.value.body_ids, mine).all()
        assert np.array_equal(simulation.states, before)


def test_what_joints_carry_on_is_named_with_its_cause() -> None:
    with start("two-way-bridge", engine="bullet", runtime="inline") as simulation:
        simulation.step(STEPS)
        body = inner_body(simulation)
        simulation.bodies.add_forces(body, [BEYOND, 0.0, 0.0])
        with pytest.raises(SimulationStopped, match="failed 2 times in this step") as caught:
            simulation.step()
        assert body in caught.value.body_ids
        assert len(caught.value.body_ids) > 1


@pytest.mark.parametrize("runtime", ["inline", pytest.param("process", marks=pytest.mark.slow)])
def test_on_failure_stop(runtime: str, undisturbed: dict[str, list[np.ndarray]]) -> None:
    with start("building", runtime=runtime, on_failure="stop") as simulation:
        simulation.step(STEPS)
        tell("error", inner_body(simulation), when="begin")
        with pytest.raises(SimulationStopped, match=rf"stopped in step {STEPS + 1}: worker 1 failed; bodies concerned"):
            simulation.step()
        assert np.array_equal(simulation.states, undisturbed["building"][STEPS])


# ---- quarantine ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "runtime"),
    [(NAMES[0], "inline"), pytest.param(NAMES[0], "process", marks=pytest.mark.slow), (NAMES[1], "inline")],
)
def test_a_body_at_the_interface_is_frozen_and_then_taken_out(name: str, runtime: str) -> None:
    with start(name, runtime=runtime, quarantine=True) as simulation:
        simulation.step(STEPS)
        before = simulation.states
        body = int(interface(simulation)[1])
        simulation.bodies.add_forces(body, [5.0, 0.0, 0.0])
        tell("nan", body, times=2, when="begin")
        simulation.step(AFTER)
        assert [event.kind for event in simulation.incidents] == ["not finite", "not finite", "quarantine"]
        assert simulation.bodies.frozen_ids.tolist() == [body]
        assert body in interface(simulation)
        assert np.array_equal(simulation.states[body, :7], before[body, :7])
        tell("nan", body, times=-1, when="begin")
        simulation.step(AFTER)
        assert [event.kind for event in simulation.incidents][3:] == ["not finite", "removed"]
        assert body not in interface(simulation)
        assert body not in simulation.contacts.pairs().bodies
        assert not simulation.alive[body]
        assert np.isfinite(simulation.states).all()
        simulation.workers.set_count(2)
        simulation.step(2 * AFTER)
        assert np.isfinite(simulation.states).all()


def test_forces_beyond_all_measure_are_contained() -> None:
    with start("two-way-bridge", engine="bullet", runtime="inline", quarantine=True) as simulation:
        simulation.step(STEPS)
        body = inner_body(simulation)
        simulation.bodies.add_forces(body, [BEYOND, 0.0, 0.0])
        simulation.step(AFTER)
        assert body in simulation.bodies.frozen_ids
        assert np.isfinite(simulation.states).all()


@pytest.mark.parametrize("runtime", ["inline", pytest.param("process", marks=pytest.mark.slow)])
def test_a_force_that_no_engine_takes_stops_the_run_and_names_the_body(runtime: str) -> None:
    with start("two-way-bridge", engine="bullet", runtime=runtime) as simulation:
        simulation.step(STEPS)
        before, body = simulation.states, int(interface(simulation)[0])
        simulation.bodies.add_forces(body, [3e38, 0.0, 0.0])
        with pytest.raises(SimulationStopped, match=rf"body {body}: forces .* are not finite in float32"):
            simulation.step()
        assert np.array_equal(simulation.states, before)


# ---- hand-over -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["asked", "given", "asked in parts"])
def test_a_worker_that_dies_while_bodies_change_hands(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if moment == "asked in parts":
        monkeypatch.setattr("lapjoint.workers.engine_states.part_size", lambda body_count: 700)
    with (
        start("building", engine="bullet", repartition=0) as simulation,
        start("building", engine="bullet", repartition=0, runtime="inline") as other,
    ):
        for each in (simulation, other):
            each.step(STEPS)
            each.workers.repartition(np.roll(owner_of(each), 7).astype(np.int32))
        runtime, told = simulation._core.runtime, 0
        step = runtime.step

        def step_and_kill(commands: Any, meanwhile: Any = None) -> Any:
            nonlocal told
            if any(isinstance(command, Migrate if moment == "given" else ReadState) for command in commands):
                told += 1
                if told == (2 if moment == "asked in parts" else 1):
                    os.kill(pids(simulation)[1], signal.SIGKILL)
            return step(commands, meanwhile)

        monkeypatch.setattr(runtime, "step", step_and_kill)
        for each in (simulation, other):
            each.step()
        assert told > (1 if moment == "asked in parts" else 0)
        assert [(event.kind, event.worker) for event in simulation.incidents] == [("gone", 1)]
        assert np.array_equal(owner_of(simulation), owner_of(other))
        assert jump(simulation.states, other.states) < 1e-4
        simulation.step(AFTER)
        assert len(simulation.incidents) == 1


# ---- Ctrl-C ----------------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
from lapjoint import Failures, Params, Simulation, Substeps, scenes
if __name__ == "__main__":
    scene = scenes.build("joint-grid", 250)  # whose step takes a minute
    params = Params(coupling="tight", workers=2, substeps=Substeps(1000), failures=Failures(hang_limit=600))
    with Simulation(scene, params) as simulation:
        print("ready", flush=True)
        try:
            simulation.step(1000)
        except KeyboardInterrupt:
            print("interrupted after", simulation.step_count, flush=True)
            raise
"""


@pytest.mark.slow
@pytest.mark.parametrize("stopped", [False, True], ids=["in a step", "while a worker hangs"])
def test_a_second_interrupt_within_a_step(stopped: bool) -> None:
    """The first one waits for the step; this one is heard long before it is done, or the worker counts as hung."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == "ready\n"
            workers = worker_processes(program.pid)
            assert len(workers) == 2
            used = [worker.cpu_times().user for worker in workers]
            assert poll(lambda: all(w.cpu_times().user > u + 0.3 for w, u in zip(workers, used, strict=True)), 60)
            if stopped:
                os.kill(workers[0].pid, signal.SIGSTOP)
            program.send_signal(signal.SIGINT)
            with pytest.raises(subprocess.TimeoutExpired):
                program.wait(1.0)
            program.send_signal(signal.SIGINT)
            output, errors = program.communicate(timeout=60)
        finally:
            program.kill()
    assert output == "interrupted after 0\n"
    assert "KeyboardInterrupt" in errors
    assert poll(lambda: not running(workers), 60)
