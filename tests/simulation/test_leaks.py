"""However a program with workers ends, no worker and no named shared memory outlives it for long."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from parallel_support import fork_servers, poll, running, shared_memory_names, worker_processes

WORKERS = 2
GONE_S = 60.0  # it takes a second; a busy machine may need more
START = f"""
import os, signal, sys, time
from lapjoint import Params, Sequential, Simulation, scenes
simulation = Simulation(scenes.build("bowl", 60), Params(workers={WORKERS}))
simulation.step(3)
print("ready", flush=True)
sys.stdin.readline()
"""
START_IN_A_THREAD = f"""
import os, sys, threading, time
from lapjoint import Params, Simulation, scenes
made = []
thread = threading.Thread(target=lambda: made.append(Simulation(scenes.build("bowl", 60), Params(workers={WORKERS}))))
thread.start()
thread.join()
while os.path.exists(f"/proc/self/task/{{thread.native_id}}"):
    time.sleep(0.01)
simulation = made.pop()
pids = simulation._core.runtime.process_ids
simulation.step(3)
assert simulation._core.runtime.process_ids == pids, "none had to be replaced"
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def memory_before() -> set[str]:
    return shared_memory_names()


class Program:
    """A Python program with workers, stopped where its user would be sitting in front of it."""

    def __init__(self, code: str, start: str = START) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", start + code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n", self.process.communicate()[1]
        self.workers = worker_processes(self.process.pid)
        assert len(self.workers) == WORKERS
        self.workers += fork_servers(self.process.pid)

    def go_on(self) -> tuple[int, str]:
        """Let it run to its end; returns its exit code and what it complained of."""
        _, errors = self.process.communicate("\n", timeout=60)
        return self.process.returncode, errors

    def kill(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        self.process.wait(60)  # not communicate(), which would wait for the workers too
        return self.process.returncode


@pytest.fixture
def programs() -> Iterator[list[Program]]:
    started: list[Program] = []
    yield started
    for program in started:
        program.process.kill()
        program.process.communicate()


def assert_nothing_left(workers: list[psutil.Process], memory_before: set[str]) -> None:
    assert poll(lambda: not running(workers), GONE_S), f"still there: {running(workers)}"
    # Other programs of this machine may come and go; ours would stay.
    assert poll(lambda: not shared_memory_names() - memory_before, GONE_S), shared_memory_names() - memory_before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "exit_code", "complaint"),
    [
        ("simulation.step(20); simulation.close()", 0, ""),
        ("simulation.step(20)", 0, ""),  # the user forgot to close
        (
            "for i in range(20):\n    simulation.step()\n    if i == 7: raise RuntimeError('my mistake')",
            1,
            "my mistake",
        ),
    ],
    ids=["closed", "not-closed", "exception"],
)
def test_a_program_that_ends(
    programs: list[Program], memory_before: set[str], code: str, exit_code: int, complaint: str
) -> None:
    program = Program(code)
    programs.append(program)
    code_seen, errors = program.go_on()
    assert code_seen == exit_code, errors
    if complaint:
        assert errors.rstrip().endswith(complaint)
        assert errors.count("Traceback") == 1
    else:
        assert errors == ""
    assert_nothing_left(program.workers, memory_before)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_server_that_is_killed_while_idle(
    programs: list[Program], memory_before: set[str], number: signal.Signals
) -> None:
    program = Program("")
    programs.append(program)
    assert program.kill(number) == -number
    assert_nothing_left(program.workers, memory_before)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a stopped worker stays until it goes on")
@pytest.mark.parametrize("start", [START, START_IN_A_THREAD], ids=["made", "made-in-a-thread-that-has-ended"])
def test_a_stopped_worker_of_a_server_that_is_killed(
    programs: list[Program], memory_before: set[str], start: str
) -> None:
    """It cannot notice anything: the system kills it."""
    program = Program("", start)
    programs.append(program)
    program.workers[1].suspend()
    assert poll(lambda: program.workers[1].status() == psutil.STATUS_STOPPED, GONE_S)
    program.kill(signal.SIGKILL)
    try:
        assert_nothing_left(program.workers, memory_before)
    finally:
        for worker in running(program.workers):
            worker.kill()


ENDLESS = """
endless = Simulation(scenes.build("bridge"), Params(workers=2, sequential=Sequential(iterations=1_000_000)))
print("stepping", flush=True)
endless.step()
"""


@pytest.mark.slow
def test_a_server_that_is_killed_in_the_middle_of_a_long_step(programs: list[Program], memory_before: set[str]) -> None:
    """The workers are inside the engine for many seconds; they leave all the same."""
    program = Program(ENDLESS)
    programs.append(program)
    assert program.process.stdin is not None
    assert program.process.stdout is not None
    program.process.stdin.write("\n")
    program.process.stdin.flush()
    assert program.process.stdout.readline() == "stepping\n"
    workers = worker_processes(program.process.pid)
    assert len(workers) == WORKERS + 2
    burnt = sum(worker.cpu_times().user for worker in workers)
    assert poll(lambda: sum(worker.cpu_times().user for worker in workers) > burnt + 0.5, 60)
    program.process.kill()
    program.process.wait()  # not communicate(): that would wait for the workers, who have the same stderr
    assert_nothing_left(workers, memory_before)


def wait_until_they_step(workers: list[psutil.Process]) -> None:
    """A worker that steps goes to sleep and wakes up hundreds of times a second, one that starts does not."""

    def naps() -> list[int]:
        return [worker.num_ctx_switches().voluntary for worker in workers]

    before = naps()
    assert poll(lambda: all(now > then + 100 for now, then in zip(naps(), before, strict=True)), 60)


@pytest.fixture
def command_line() -> Iterator[subprocess.Popen[str]]:
    """A long run, as a user starts it in a terminal."""
    program = Path(sys.executable).with_name("lapjoint")
    arguments = f"run bowl --size 300 --workers {WORKERS} --steps 100000".split()
    process = subprocess.Popen(
        [str(program), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    yield process
    process.kill()
    process.communicate()


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    assert poll(lambda: len(worker_processes(process.pid)) == WORKERS, 60)
    return worker_processes(process.pid)


@pytest.mark.slow
def test_interrupt_of_the_command_line(command_line: subprocess.Popen[str], memory_before: set[str]) -> None:
    workers = workers_of(command_line)
    wait_until_they_step(workers)
    os.killpg(command_line.pid, signal.SIGINT)  # as the terminal does: to all of its process group
    output, errors = command_line.communicate(timeout=60)
    assert command_line.returncode == 130, errors
    assert "of 100000 steps" in output
    assert "state hash" in output, "what was done is summed up"
    assert errors == ""
    assert_nothing_left(workers, memory_before)


@pytest.mark.slow
def test_interrupt_while_workers_start(command_line: subprocess.Popen[str], memory_before: set[str]) -> None:
    assert poll(lambda: worker_processes(command_line.pid), 60)
    workers = worker_processes(command_line.pid)
    os.killpg(command_line.pid, signal.SIGINT)
    output, errors = command_line.communicate(timeout=60)
    assert command_line.returncode != 0
    assert "Traceback" not in output + errors
    assert_nothing_left(workers, memory_before)


@pytest.mark.slow
def test_termination_of_the_command_line(command_line: subprocess.Popen[str], memory_before: set[str]) -> None:
    """It ends as by Ctrl-C, and dies of the signal all the same."""
    workers = workers_of(command_line)
    wait_until_they_step(workers)
    command_line.send_signal(signal.SIGTERM)
    output, errors = command_line.communicate(timeout=60)
    assert command_line.returncode == -signal.SIGTERM
    assert "of 100000 steps" in output
    assert "state hash" in output, "what was done is summed up"
    assert errors == ""
    assert_nothing_left(workers, memory_before)


@pytest.mark.slow
def test_death_of_the_command_line(command_line: subprocess.Popen[str], memory_before: set[str]) -> None:
    workers = workers_of(command_line)
    wait_until_they_step(workers)
    command_line.kill()
    _, errors = command_line.communicate(timeout=60)
    assert command_line.returncode == -signal.SIGKILL
    assert errors == ""
    assert_nothing_left(workers, memory_before)
