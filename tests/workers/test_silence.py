"""Who hangs is found; who was paused with the whole program, or had no core, does not hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import psutil
import pytest

from host_support import MachinesRuntime
from lapjoint import Failures, Params, Simulation, scenes, waits
from lapjoint.workers.messages import Command, StepReply, StepTimes
from lapjoint.workers.runtimes import fleet
from lapjoint.workers.runtimes.answer_limits import AnswerLimits
from lapjoint.workers.runtimes.base import _RUNTIMES
from lapjoint.workers.runtimes.child import Child
from lapjoint.workers.runtimes.silence import EXAMINE_S, STARVED, CoreTime, Silence
from parallel_support import poll

LIMIT_S = 120.0


class SomeChild(Child):
    """Without a process."""

    pid = 0

    def __init__(self) -> None:
        pass


class Clock:
    """It stands still until it is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        monkeypatch.setattr(waits, "monotonic", lambda: self.now_s)


def pass_time(silence: Silence, clock: Clock, seconds: float, waiting: list[Child], blocking: list[Child]) -> None:
    for _ in range(round(seconds / waits.LOOK_S)):
        clock.now_s += waits.LOOK_S
        silence.running.look()
        silence.note(waiting, blocking)


def test_time_in_which_a_worker_waits_for_others_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    monkeypatch.setattr(CoreTime, "_look", lambda core: (False, 0.0))
    silence, one, other = Silence(), SomeChild(), SomeChild()
    pass_time(silence, clock, 2.0, [one, other], [one])
    pass_time(silence, clock, 1.0, [one, other], [other])
    assert (silence.of(one), silence.of(other)) == (pytest.approx(2.0), pytest.approx(1.0))
    silence.restart()
    pass_time(silence, clock, 0.5, [one, other], [one, other])
    assert silence.of(one) == silence.of(other) == pytest.approx(0.5)


def test_time_in_which_a_worker_has_no_core_hardly_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """But that in which it is stopped, blocks or runs in circles does."""
    clock, used_s = Clock(monkeypatch), [0.0]
    is_ready, share = True, 0.1

    def look(core: CoreTime) -> tuple[bool, float]:
        used_s[0] += share * waits.LOOK_S
        return is_ready, used_s[0]

    monkeypatch.setattr(CoreTime, "_look", look)
    silence, child = Silence(), SomeChild()
    pass_time(silence, clock, EXAMINE_S + 0.2, [child], [child])
    before = silence.of(child)
    pass_time(silence, clock, 10.0, [child], [child])
    assert silence.of(child) - before == pytest.approx(1.0), "it has had a tenth of a core"
    share = 0.0
    pass_time(silence, clock, 10.0, [child], [child])
    assert silence.of(child) - before == pytest.approx(1.0 + 10.0 * STARVED), "and then none"
    before, is_ready = silence.of(child), False
    pass_time(silence, clock, 3.0, [child], [child])
    assert silence.of(child) - before == pytest.approx(3.0), "it is stopped, or blocks"
    before, is_ready, share = silence.of(child), True, 1.0
    pass_time(silence, clock, 3.0, [child], [child])
    assert silence.of(child) - before == pytest.approx(3.0), "it runs in circles"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it is not known who has a core")
def test_who_is_stopped_is_not_ready() -> None:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        core = CoreTime(process.pid)
        assert poll(lambda: core._look()[0] and core._look()[1] > 0.0, LIMIT_S)
        process.send_signal(signal.SIGSTOP)
        assert poll(lambda: not core._look()[0], LIMIT_S)
        assert core._look()[1] > 0.0
    finally:
        process.kill()
        process.wait(LIMIT_S)
    assert core._look() == (False, -1.0)
    assert core.usable_s(1.0) == 1.0


def test_a_pause_does_not_raise_the_limit() -> None:
    limits = AnswerLimits(5.0, 0)
    limits.note([StepReply(times=StepTimes(own_s=6.01))], 1, 6.0)
    assert limits.limit_s(0) == 5.0


# ---- the whole program is paused -----------------------------------------------------------------------------------


@pytest.fixture(params=["process", "machines"])
def runtime(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(_RUNTIMES, "machines", "host_support:MachinesRuntime")
    monkeypatch.setattr(MachinesRuntime, "cpu_counts", (1, 1))
    monkeypatch.setattr(fleet, "LEAVE_S", 0.1)  # hosts are threads of this process, which does not leave
    name: str = request.param
    return name


class JumpingClock:
    """It goes on as ever, and may jump by an hour."""

    def __init__(self) -> None:
        self.jumped_s = 0.0

    def now(self) -> float:
        return time.monotonic() + self.jumped_s

    def jump(self) -> None:
        self.jumped_s += 3600.0


def pause(simulation: Simulation, clock: JumpingClock) -> None:
    """In the next step, stop a worker before it has its command; when the clock has jumped it goes on."""
    runtime, step = simulation._core.runtime, simulation._core.runtime.step
    process = psutil.Process(runtime.process_ids[1])  # type: ignore[attr-defined]

    def go_on() -> None:
        clock.jump()
        time.sleep(0.5)
        process.send_signal(signal.SIGCONT)

    def paused(commands: Sequence[Command | None], meanwhile: Callable[[], None] | None = None) -> Any:
        runtime.step = step  # type: ignore[method-assign]
        process.send_signal(signal.SIGSTOP)
        assert poll(lambda: process.status() == psutil.STATUS_STOPPED, LIMIT_S)
        timer = threading.Timer(0.5, go_on)
        timer.start()
        answers = step(commands, meanwhile)
        timer.join(LIMIT_S)
        return answers

    runtime.step = paused  # type: ignore[method-assign]


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["blend", "tight"])
def test_a_worker_that_was_paused_with_the_program_goes_on(
    coupling: str, runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, hashes = JumpingClock(), []
    monkeypatch.setattr(waits, "monotonic", clock.now)
    for is_paused in (False, True):
        params = Params(workers=2, runtime=runtime, coupling=coupling, failures=Failures(hang_limit=30.0))
        with Simulation(scenes.build("bowl", 20), params) as simulation:
            simulation.step(2)
            if is_paused:
                pause(simulation, clock)
            simulation.step(3)
            assert simulation.incidents == []
            hashes.append(simulation.state_hash)
    assert hashes[0] == hashes[1]
    assert clock.jumped_s > 0.0


PAUSED = """
    import sys
    from lapjoint import Failures, Params, Simulation, scenes
    for coupling in ("blend", "tight"):
        for is_paused in (False, True):
            params = Params(workers=2, runtime="process", coupling=coupling, failures=Failures(hang_limit=1.5))
            with Simulation(scenes.build("bowl", 20), params) as simulation:
                simulation.step(60)  # how slow the first step was is forgotten
                if is_paused:
                    print(simulation._core.runtime.process_ids[1], flush=True)
                    sys.stdin.readline()
                simulation.step(3)
                print(coupling, simulation.state_hash, [event.text for event in simulation.incidents], flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes have no states to look at elsewhere")
def test_all_processes_are_stopped_for_longer_than_the_hang_limit() -> None:
    program = [sys.executable, "-c", textwrap.dedent(PAUSED)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for _ in range(2):
            undisturbed = server.stdout.readline()
            worker = int(server.stdout.readline())
            os.kill(worker, signal.SIGSTOP)  # so that it has not answered when all are stopped
            server.stdin.write("go on\n")
            server.stdin.flush()
            processes = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
            time.sleep(0.1)
            for process in processes:
                process.send_signal(signal.SIGSTOP)
            time.sleep(3.0)
            for process in processes:
                process.send_signal(signal.SIGCONT)
            assert server.stdout.readline() == undisturbed
            assert undisturbed.endswith(" []\n")
