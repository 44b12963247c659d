"""The fork server: workers have what this process has now, and are replaced when it dies."""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lapjoint import Field, Params, Simulation, scenes
from lapjoint.workers.runtimes import child, starter
from lapjoint.workers.runtimes.fork_server import FORKED, Forked, _servers, start_worker
from lapjoint.workers.runtimes.fork_server_main import ForkServerMain
from parallel_support import children, finish, poll, worker_processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere workers are programs of their own")


@pytest.fixture(autouse=True)
def _has_begun() -> None:
    with Simulation(scenes.build("bowl", 4), Params(workers=1, runtime="process")):
        assert list(_servers) == [sys.executable]


def test_workers_see_modules_that_came_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "came_later.py").write_text(
        "import numpy\ndef up(ids, states, time):\n    return states[:, :3] * 0 + 1\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    from came_later import up  # type: ignore[import-not-found]

    scene = scenes.build("bowl", 4)
    scene.add_field(Field(up))
    states = []
    for runtime in ("inline", "process"):
        with Simulation(scene, Params(workers=2, runtime=runtime)) as simulation:
            simulation.step(3)
            states.append(simulation.states)
    assert np.array_equal(*states)


def test_another_one_takes_its_place_and_its_workers_are_replaced() -> None:
    with Simulation(scenes.build("bowl", 20), Params(workers=2, runtime="process")) as simulation:
        simulation.step(2)
        first, workers = _servers[sys.executable], worker_processes()
        first.process.kill()
        assert poll(lambda: not any(worker.is_running() for worker in workers), 60), "workers end with it"
        simulation.step(3)
        assert simulation.step_count == 5
        assert {incident.worker for incident in simulation.incidents} == {0, 1}
        assert "was killed by SIGKILL" in simulation.incidents[0].text
        assert _servers[sys.executable] is not first
    assert children() == []


def test_how_a_worker_ended_is_known() -> None:
    task = {"index": 0, "params": {}, "mail_room": 0, "sizes": []}
    read, write = os.pipe()
    os.close(read)
    process = start_worker(task, [write])  # which is no socket
    os.close(write)
    assert isinstance(process, Forked)
    process.wait(60)
    assert process.exit_code(60) == 1
    assert process.exit_code(0) == 1, "as often as one likes"
    process.kill()  # of one that has ended: nothing


def test_one_that_cannot_fork_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_more() -> int:
        raise BlockingIOError(errno.EAGAIN, "no more")

    monkeypatch.setattr(os, "fork", no_more)
    mine, theirs = socket.socketpair()
    with mine, theirs:
        server = object.__new__(ForkServerMain)
        server._link = mine
        assert not server._fork({}, [os.dup(mine.fileno())])
        assert FORKED.unpack(theirs.recv(FORKED.size)) == (0, errno.EAGAIN)


def test_a_process_that_is_forked_off_does_not_hold_it() -> None:
    """Else it would not end with this one."""
    server = _servers[sys.executable]
    pid = os.fork()
    if pid == 0:
        os._exit(0 if not _servers and server._link.fileno() == -1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert server._link.fileno() >= 0


def test_one_that_does_not_answer_is_given_up() -> None:
    stopped = _servers[sys.executable]
    stopped.answer_s = 0.2
    os.kill(stopped.process.pid, signal.SIGSTOP)
    with Simulation(scenes.build("bowl", 4), Params(workers=1, runtime="process")) as simulation:
        simulation.step(1)
    assert _servers[sys.executable] is not stopped
    assert poll(lambda: stopped.process.poll() is not None, 60)


@pytest.mark.slow
def test_nobody_waits_for_one_that_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """That a worker has ended is known without it, and so a simulation goes on, and closes."""
    monkeypatch.setattr(child, "REPORT_S", 0.2)
    stopped = _servers[sys.executable]
    simulation = Simulation(scenes.build("bowl", 20), Params(workers=2, runtime="process"))
    simulation.step(2)
    stopped.answer_s = 0.2
    os.kill(stopped.process.pid, signal.SIGSTOP)
    os.kill(simulation._core.runtime.process_ids[1], signal.SIGKILL)  # type: ignore[attr-defined]
    assert finish(lambda: simulation.step(1)) is None
    assert "has ended, and the fork server has not reported how within 0.2 s" in simulation.incidents[0].text
    stopped = _servers[sys.executable]
    os.kill(stopped.process.pid, signal.SIGSTOP)
    assert finish(simulation.close) is None
    os.kill(stopped.process.pid, signal.SIGCONT)
    assert children() == []


BLOCKED = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGPIPE, signal.SIGUSR1}


@pytest.fixture
def _blocks_and_ignores() -> Iterator[None]:
    """A program that has no fork server yet, and blocks and ignores what it can."""
    _servers.pop(sys.executable).end()
    starter._forget()
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (*BLOCKED, signal.SIGHUP)}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)
    yield
    _servers.pop(sys.executable).end()
    starter._forget()
    for number, handler in before.items():
        signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@pytest.mark.slow
@pytest.mark.usefixtures("_blocks_and_ignores")
def test_signals_that_the_program_blocks_or_ignores_are_not_blocked_or_ignored_in_workers() -> None:
    def signals(pid: int, which: str) -> set[signal.Signals]:
        (bits,) = re.findall(rf"^{which}:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        return {number for number in signal.Signals if int(bits, 16) >> (number - 1) & 1}

    by_python = {signal.SIGPIPE, signal.SIGXFSZ}
    with Simulation(scenes.build("bowl", 20), Params(workers=2, runtime="process")) as simulation:
        simulation.step(2)
        first, second = worker_processes()
        for pid in (first.pid, second.pid, _servers[sys.executable].process.pid):
            assert signals(pid, "SigBlk") == set()
        assert signals(first.pid, "SigIgn") == by_python
        assert signals(_servers[sys.executable].process.pid, "SigIgn") == {*by_python, signal.SIGINT}
        first.send_signal(signal.SIGTERM)
        assert finish(lambda: simulation.step(1)) is None
        assert "was killed by SIGTERM" in simulation.incidents[0].text
    assert children() == []
