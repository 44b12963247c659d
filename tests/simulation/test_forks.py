"""Processes forked from one with a simulation: what is the parent's refuses to be used there, and is not harmed."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from host_support import MachinesRuntime
from lapjoint import CheckpointWriter, LapjointError, Params, Recording, RecordingWriter, Simulation, scenes
from lapjoint.forks import drop_exit_callbacks
from lapjoint.recording import writer
from lapjoint.workers.runtimes import base
from parallel_support import poll, running

SCENE = scenes.build("bowl", 12)
GONE_S = 60.0


@pytest.fixture(autouse=True)
def _machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(base._RUNTIMES, "machines", "host_support:MachinesRuntime")
    monkeypatch.setattr(MachinesRuntime, "is_shared", False)


def in_child(work: Callable[[], object]) -> str:
    """What `work` returns, or the error that it raises, in a process forked from this one."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = str(work())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as stream:
        text = stream.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return text


def refusal_of(use: Callable[[], object]) -> str:
    try:
        return f"not refused: {use()}"
    except LapjointError as error:
        return str(error)


def is_refusal(text: str, title: str) -> bool:
    belongs = f"{title} belongs to process {os.getpid()}; in a process forked from it "
    return re.fullmatch(re.escape(belongs) + r"\(\d+\) it cannot be used: make a new one there", text) is not None


def simulate(runtime: str = "inline", coupling: str = "tight") -> Simulation:
    return Simulation(SCENE, Params(workers=2, runtime=runtime, coupling=coupling))


@pytest.mark.parametrize(
    ("runtime", "coupling"),
    [
        ("inline", "tight"),
        pytest.param("process", "tight", marks=pytest.mark.slow),
        pytest.param("process", "blend", marks=pytest.mark.slow),
        pytest.param("machines", "tight", marks=pytest.mark.slow),
    ],
)
def test_a_simulation_refuses_in_a_child_and_goes_on_in_its_process(runtime: str, coupling: str) -> None:
    with simulate("inline", coupling) as other:
        other.step(8)
        expected = other.state_hash
    with simulate(runtime, coupling) as simulation:
        simulation.step(4)
        workers, own = getattr(simulation._core.runtime, "process_ids", []), simulation._core.runtime
        scene, frames, step = simulation.scene, simulation.frames(2), simulation.step
        uses: list[Callable[[], object]] = [
            step,
            lambda: simulation.step(0),
            lambda: simulation.states,
            lambda: simulation.step_count,
            lambda: simulation.queries.cast_rays([[0, 0, 9]], [[0, 0, -1]]),
            lambda: simulation.bodies.add_forces([0], [[0, 0, 1]]),
            lambda: setattr(simulation, "profile", None),
            lambda: next(frames),
            lambda: simulation.restart(),
            lambda: scene._states_now(),
        ]

        def child() -> str:
            found = {refusal_of(use) for use in uses}
            with simulation:
                found.add(refusal_of(lambda: own.step([None, None])))
            simulation.close()
            own.close()
            weakref.finalize._exitfunc()  # type: ignore[attr-defined]  # as at the end of a program
            return "\n".join(sorted(found))

        of_runtime, of_simulation = in_child(child).splitlines()
        assert is_refusal(of_runtime, "a runtime")
        assert is_refusal(of_simulation, "the simulation")
        simulation.step(4)
        assert simulation.state_hash == expected
        assert simulation.incidents == []
        assert getattr(simulation._core.runtime, "process_ids", []) == workers


def test_a_child_that_is_forked_within_a_step_does_not_take_it() -> None:
    with simulate() as simulation:
        told: list[str] = []
        forked: list[int] = []

        def fork(simulation: Simulation) -> None:
            reader, writer = os.pipe()
            pid = os.fork()
            if pid == 0:
                forked.append(writer)
                return  # into the step
            os.close(writer)
            with open(reader) as stream:
                told.append(stream.read())
            os.waitpid(pid, 0)

        simulation.on_step(fork)
        try:
            simulation.step(2)
        except BaseException as error:
            if forked:
                os.write(forked[0], str(error).encode())
        finally:
            if forked:
                os._exit(0)
        assert len(told) == 2
        assert all(is_refusal(text, "the simulation") for text in told)
        assert simulation.step_count == 2


def test_a_child_of_a_thread_and_one_of_multiprocessing() -> None:
    with simulate() as simulation:
        told: list[str] = []
        thread = threading.Thread(target=lambda: told.append(in_child(lambda: refusal_of(lambda: simulation.states))))
        thread.start()
        thread.join()
        reader, writer = os.pipe()
        context = multiprocessing.get_context("fork")
        process = context.Process(target=lambda: os.write(writer, refusal_of(lambda: simulation.step()).encode()))
        process.start()
        process.join()
        os.close(writer)
        with open(reader) as stream:
            told.append(stream.read())
        assert process.exitcode == 0
        assert all(is_refusal(text, "the simulation") for text in told)
        simulation.step()


def test_a_child_makes_a_simulation_of_its_own_of_the_same_scene() -> None:
    scene = scenes.build("bowl", 12)
    with Simulation(scene, Params(workers=1, runtime="inline")) as simulation:
        simulation.step(3)

        def child() -> str:
            scene.set_states([0], scene.states[[0]])  # nothing is in motion here
            with Simulation(scene, Params(workers=1, runtime="inline")) as own:
                own.step(3)
                return own.state_hash

        assert in_child(child) == simulation.state_hash
        with pytest.raises(LapjointError, match="a simulation of it is running"):
            scene.set_states([0], scene.states[[0]])


def test_what_writes_files_refuses_in_a_child_and_is_complete_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_exit: list[object] = []
    monkeypatch.setattr(writer, "atexit", SimpleNamespace(register=at_exit.append, unregister=at_exit.remove))
    with simulate() as simulation:
        checkpoints = CheckpointWriter(tmp_path / "c", simulation)
        with RecordingWriter(tmp_path / "r", simulation) as recording:
            simulation.step()
            recording.add(simulation)

            def child() -> str:
                told = [refusal_of(lambda: recording.add(simulation)), refusal_of(lambda: checkpoints.save(simulation))]
                recording.close()
                return "\n".join([*told, str(at_exit)])

            of_recording, of_checkpoints, left = in_child(child).splitlines()
            assert is_refusal(of_recording, f"the recording {tmp_path / 'r'}")
            assert is_refusal(of_checkpoints, f"the writer of {tmp_path / 'c'}")
            assert left == "[]", "what it would do at the end of the child"
            simulation.step()
            recording.add(simulation)
        assert Recording(tmp_path / "r").frame_count == 2


def test_what_others_do_at_the_end_can_be_left_to_the_parent() -> None:
    def child() -> str:
        called: list[str] = []

        def register(module: str) -> None:
            def end() -> None:
                called.append(module)

            end.__module__ = module
            atexit.register(end)

        for module in ("theirs", "theirs.inner", "their"):
            register(module)
        drop_exit_callbacks("theirs")
        atexit._run_exitfuncs()
        return " ".join(called)

    assert in_child(child) == "their"


PROGRAM = """
import os, sys, time
from lapjoint import Params, RecordingWriter, Simulation, scenes
simulation = Simulation(scenes.build("bowl", 12), Params(workers=2))
recording = RecordingWriter(sys.argv[1], simulation)
simulation.step()
recording.add(simulation)
pid = os.fork()
if pid == 0:
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
simulation.step()
recording.add(simulation)
print([event.text for event in simulation.incidents], *simulation._core.runtime.process_ids, flush=True)
if os.fork() == 0:
    print(os.getpid(), flush=True)
    time.sleep(600)
sys.stdin.readline()
"""


@pytest.mark.slow
def test_a_child_that_ends_and_one_that_outlives_its_parent(tmp_path: Path) -> None:
    """Neither ends the parent's workers, nor keeps them."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "r")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "7\n"
        incidents, *pids = program.stdout.readline().rsplit(" ", 2)
        assert incidents == "[]"
        workers = [psutil.Process(int(pid)) for pid in pids]
        child = psutil.Process(int(program.stdout.readline()))
        try:
            assert len(running(workers)) == 2
            program.send_signal(signal.SIGKILL)
            program.wait(GONE_S)
            assert poll(lambda: not running(workers), GONE_S)
            assert running([child])
        finally:
            program.kill()
            child.kill()
