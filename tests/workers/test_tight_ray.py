"""Tight coupling with Ray's actors: the same bits, failures within the rounds, and who may connect."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from lapjoint.engines.exchange import Links

from lapjoint import Checkpoint, CheckpointWriter, Params, Scene, Simulation, scenes
from lapjoint.engines.bullet import BulletEngine
from lapjoint.scene import STATE_SIZE
from lapjoint.scene.shared import SceneLayout
from lapjoint.workers.codec import from_bytes
from lapjoint.workers.messages import Command, Reply, WorkerFailure
from lapjoint.workers.runtimes import base
from lapjoint.workers.runtimes.ray_link import CONNECT_S, MOST_SILENT, Entrance, connect
from lapjoint.workers.runtimes.ray_worker import RayWorker
from lapjoint.workers.runtimes.remote import RemoteStates
from parallel_support import poll
from ray_support import LIMIT_S
from tight_runs import owner_of

pytest.importorskip("ray")
slow = pytest.mark.slow
SIZES = {"bowl": 120, "bridge": 106}


def tight(name: str, **more: Any) -> Simulation:
    params: dict[str, Any] = {"workers": 3, "timestep": 0.005, "iterations": 20, "rounds": 5, "validate": True}
    return Simulation(scenes.build(name, SIZES[name]), Params(coupling="tight", **{**params, **more}))


def inline_hash(name: str, steps: int, change: Callable[[Simulation], object] | None = None, **more: Any) -> str:
    with tight(name, runtime="inline", **more) as simulation:
        go(simulation, steps, change)
        return simulation.state_hash


def go(simulation: Simulation, steps: int, change: Callable[[Simulation], object] | None = None) -> None:
    for _ in range(steps):
        if change is not None:
            change(simulation)
        simulation.step()


# ---- workers that share no memory with the server, without Ray -------------------------------------------------------


class Loopback:
    """Actors' workers in threads of this process, with nothing but messages, and those on their sockets."""

    last: Loopback

    def __init__(
        self, scene: Scene, params: Params, worker_count: int, exchange_room: int = 0, mail_room: int = 0
    ) -> None:
        self.border_states = np.zeros((scene.body_count, STATE_SIZE))
        self.worker_states = np.zeros((scene.body_count * worker_count, STATE_SIZE))
        self.remote = RemoteStates(scene, params, self.border_states)
        self.byte_count: int | None = None
        self.wait_cpu_s = 0.0
        self._scene, self._params, self._room = scene, params, exchange_room
        self._pool = ThreadPoolExecutor(worker_count)
        self.workers: list[RayWorker] = []
        self.sockets: list[socket.socket] = []
        self.exchange = [np.zeros((2, exchange_room)) for _ in range(worker_count)]
        self.failures: dict[int, WorkerFailure] = {}
        self.replaced: list[int] = []
        for index in range(worker_count):
            self._start(index)
        Loopback.last = self

    def _start(self, index: int) -> None:
        memory = np.empty(SceneLayout(self._scene).size, np.uint8)
        SceneLayout(self._scene).write(memory)
        worker = RayWorker()
        task = {"index": index, "params": asdict(self._params), "memory": [], "room": self._room, "mail_room": 0}
        assert not worker.start({**task, "rows": [self._scene.body_count, 1]}, memory)["error"]
        entrance = Entrance("127.0.0.1")
        assert worker.connect(entrance.ticket(index)) == ""
        link = entrance.receive(LIMIT_S)[index]
        entrance.close()
        self.remote.set_worker(index, False)
        self.workers[index : index + 1] = [worker]
        self.sockets[index : index + 1] = [link]

    @property
    def states(self) -> np.ndarray:
        if not self.remote.is_complete:
            self.remote.take([w.step(p) for w, p in zip(self.workers, self.remote.ask(), strict=True)])
        self.remote.want()
        return self.border_states

    def links(self) -> Links:
        return Links(
            [down for down, _ in self.exchange],
            [up for _, up in self.exchange],
            [link.fileno() for link in self.sockets],
            LIMIT_S,
            [True] * len(self.sockets),
        )

    def step(
        self, commands: Sequence[Command | None], meanwhile: Callable[[], None] | None = None
    ) -> list[Reply | WorkerFailure | None]:
        requests = self.remote.pack(commands)
        futures: list[Future[bytes]] = [
            self._pool.submit(w.step, request) for w, request in zip(self.workers, requests, strict=True)
        ]
        if meanwhile is not None:
            meanwhile()
        answers = [future.result(LIMIT_S) for future in futures]
        for index, answer in enumerate(answers):
            reply = from_bytes(answer).reply if answer else None
            if isinstance(reply, WorkerFailure):
                self.failures[index] = reply
                answers[index] = b""
        replies = self.remote.unpack(commands, answers, self.worker_states)
        return [self.failures.get(index, reply) for index, reply in enumerate(replies)]

    def replace(self, worker: int) -> None:
        self._hang_up(worker)
        self.failures.pop(worker)
        self.replaced.append(worker)
        self._start(worker)

    def _hang_up(self, index: int) -> None:
        for link in (self.sockets[index], self.workers[index]._link):
            assert link is not None
            link.close()

    def close(self) -> None:
        for index in range(len(self.workers)):
            self._hang_up(index)
        self._pool.shutdown()


@pytest.fixture(autouse=True)
def _loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(base._RUNTIMES, "loopback", f"{__name__}:Loopback")


def throw(simulation: Simulation) -> None:
    """Every body gets another velocity, and then, before it steps, another owner."""
    if simulation.step_count in (10, 20):
        states = simulation.states.copy()
        states[:, 9] += 1.0
        simulation.set_states(np.arange(len(states)), states)
        simulation.repartition((owner_of(simulation) + 1) % 3)


@pytest.mark.slow
@pytest.mark.parametrize("change", [None, throw], ids=["alone", "thrown"])
@pytest.mark.parametrize("name", SIZES)
def test_the_same_bits_where_messages_travel(name: str, change: Callable[[Simulation], object] | None) -> None:
    with tight(name, runtime="loopback", load="contacts") as simulation:
        go(simulation, 35, change)
        found = simulation.state_hash
    assert found == inline_hash(name, 35, change, load="contacts")


@pytest.mark.parametrize("first", [0, 4])
def test_a_worker_that_fails_before_the_rounds_says_so(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    """The server does not wait for its answer until it is late; the others abandon the step and take it again."""
    begin, times = BulletEngine.begin_step, []

    def fail(engine: BulletEngine, *arguments: Any) -> None:
        if armed and not times and 0 in engine.active_ids.tolist():
            times.append(1)
            raise ZeroDivisionError("a body divides by zero")
        begin(engine, *arguments)

    armed = False
    monkeypatch.setattr(BulletEngine, "begin_step", fail)
    with tight("bridge", runtime="loopback") as simulation:
        simulation.step(first)
        armed = True
        before = simulation.states
        simulation.step(3)
        assert [event.worker for event in simulation.events] == Loopback.last.replaced
        assert len(Loopback.last.replaced) == 1
        assert "divides by zero" in simulation.events[0].text
        assert (simulation.states != before).any(axis=1).all(), "every body has moved"
        assert simulation.joint_gaps().max() < 0.01


# ---- who may connect -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", [None, "127.0.0.1"])
def test_only_tickets_are_let_in(address: str | None) -> None:
    entrance = Entrance(address)
    first, second = entrance.ticket(4), entrance.ticket(2)
    strangers = [connect(first["at"], b"x" * 32), connect(first["at"], b"short")]
    strangers[1].shutdown(socket.SHUT_WR)
    links = [connect(**second), connect(**first), connect(**first)]  # the last once more than allowed
    found = entrance.receive(LIMIT_S)
    assert sorted(found) == [2, 4]
    found[2].sendall(b"two")
    assert links[0].recv(3) == b"two"
    entrance.close()
    for stranger in (*strangers, links[2]):
        stranger.settimeout(LIMIT_S)
        with suppress(ConnectionResetError):
            assert stranger.recv(1) == b""
        stranger.close()
    with pytest.raises(OSError, match="refused"):
        connect(**second)
    for link in (*links[:2], *found.values()):
        link.close()


@pytest.mark.parametrize("address", [None, "127.0.0.1"])
def test_silent_connections_cost_nothing(address: str | None) -> None:
    """Each once took a second, one after the other, so that a few kept all workers out."""
    entrance = Entrance(address)
    ticket = entrance.ticket(0)
    with ThreadPoolExecutor(1) as pool:
        received = pool.submit(entrance.receive, CONNECT_S)
        silent = [connect(ticket["at"], part) for part in [b"", b"x"] * (MOST_SILENT // 2 + 20)]
        worker = connect(ticket["at"], ticket["token"][:16])
        silent[0].settimeout(LIMIT_S)
        assert silent[0].recv(1) == b"", "the oldest are closed"
        worker.sendall(ticket["token"][16:] + b"more")
        found = received.result()
    assert list(found) == [0]
    assert found[0].recv(9) == b"more", "nothing beyond the token was read"
    for link in (*silent, worker, found[0]):
        link.close()
    entrance.close()


# ---- Ray on one machine ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    from lapjoint.workers.runtimes.ray_cluster import join_cluster, leave_cluster

    join_cluster(None)
    yield
    leave_cluster()


def unix_links() -> list[list[str]]:
    """What the kernel says of this process's Unix sockets to actors."""
    own = set()
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            own.add(link.readlink().name)
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines() if "@lapjoint-" in line]
    return [words for words in lines if f"socket:[{words[6]}]" in own]


@slow
def test_the_same_bits_as_actors_and_back_through_checkpoints(cluster: None, tmp_path: Path) -> None:
    wanted = inline_hash("bowl", 45)
    with tight("bowl", runtime="ray") as first:
        assert [actor.is_shared for actor in first._runtime._actors] == [True] * 3  # type: ignore[attr-defined]
        first.step(25)
        CheckpointWriter(tmp_path / "first", first).save(first)
        first.step(20)
        assert first.state_hash == wanted
    with Checkpoint(tmp_path / "first").resume(runtime="inline") as second:
        second.step(20)
        assert second.state_hash == wanted


def stop(pid: int, number: signal.Signals) -> None:
    """Send a signal, and wait until it has come: else the process might take some rounds yet."""

    def has_stopped() -> bool:
        try:
            return process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return True

    process = psutil.Process(pid)
    process.send_signal(number)
    assert poll(has_stopped, LIMIT_S)


def lose(simulation: Simulation, number: signal.Signals, worker: int) -> None:
    """Lose a worker once, when it has its command and the rounds are about to begin."""
    runtime, links = simulation._runtime, simulation._runtime.links

    def lost() -> Links:
        runtime.links = links  # type: ignore[method-assign]
        stop(runtime.process_ids[worker], number)  # type: ignore[attr-defined]
        return links()

    runtime.links = lost  # type: ignore[method-assign]


@slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["dies", "hangs"])
def test_a_worker_lost_within_the_rounds(cluster: None, number: signal.Signals) -> None:
    """It is replaced, all take the step again, and the rest is what it is with processes."""
    hashes = []
    for kind in ("process", "ray"):
        # Long enough for the others on a machine that is busy with other things.
        with tight("bridge", runtime=kind, hang_limit=3.0 if number == signal.SIGSTOP else 20.0) as simulation:
            simulation.step(4)
            for worker in range(3):
                simulation._runtime._limits.forget(worker)  # type: ignore[attr-defined]  # how slow the first step was
            simulation.step(1)
            old = list(simulation._runtime.process_ids)  # type: ignore[attr-defined]
            lose(simulation, number, 1)
            simulation.step(5)
            new = simulation._runtime.process_ids  # type: ignore[attr-defined]
            assert [a == b for a, b in zip(old, new, strict=True)] == [True, False, True]
            assert [(event.kind, event.worker) for event in simulation.events] == [
                ("gone" if number == signal.SIGKILL else "hung", 1)
            ]
            assert str(old[1]) in simulation.events[0].text
            assert poll(lambda pid=old[1]: not psutil.pid_exists(pid), LIMIT_S)
            hashes.append(simulation.state_hash)
    assert hashes[0] == hashes[1]
    assert unix_links() == [], "nothing is left behind"


@slow
def test_a_worker_gone_between_steps_and_another_number_of_workers(cluster: None) -> None:
    hashes = []
    for kind in ("process", "ray"):
        with tight("bridge", runtime=kind, workers=2) as simulation:
            simulation.step(3)
            stop(simulation._runtime.process_ids[0], signal.SIGKILL)  # type: ignore[attr-defined]
            simulation.step(2)
            assert [(event.kind, event.worker) for event in simulation.events] == [("gone", 0)]
            simulation.set_worker_count(3)
            simulation.step(7)
            assert simulation.profile.worker_body_count.min() > 0
            assert len(simulation.profile.worker_body_count) == 3
            hashes.append(simulation.state_hash)
            if kind == "ray":
                flags = [int(words[3], 16) for words in unix_links()]
                assert len(flags) == 3, "one connection for each worker"
                assert not any(flag & 0x10000 for flag in flags), "nobody listens any more"
    assert hashes[0] == hashes[1]
