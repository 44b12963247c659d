"""Steps that Ray's actors take together: the same bits, whether messages lie in memory or travel, and failures."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import numpy as np
import psutil
import pytest
from numpy.typing import NDArray

from lapjoint import Params, Scene, Simulation, scenes
from lapjoint.engines.bullet import BulletEngine
from lapjoint.engines.mailboxes import memory_size
from lapjoint.scene import STATE_SIZE
from lapjoint.scene.shared import SceneLayout
from lapjoint.workers.codec import from_bytes
from lapjoint.workers.messages import Command, Reply, WorkerFailure
from lapjoint.workers.runtimes import base
from lapjoint.workers.runtimes.ray_worker import RayWorker
from lapjoint.workers.runtimes.remote import RemoteStates
from lapjoint.workers.runtimes.shared import SharedMemory
from parallel_support import poll
from ray_support import LIMIT_S

pytest.importorskip("ray")
slow = pytest.mark.slow
SIZES = {"bridge": 106, "pyramid": 6}
PARAMS: dict[str, Any] = {"coupling": "tight", "solver": "substeps", "timestep": 0.01}


def together(name: str, **more: Any) -> Simulation:
    params: dict[str, Any] = {"workers": 3, "validate": True, **PARAMS}
    return Simulation(scenes.build(name, SIZES[name]), Params(**{**params, **more}))


def inline_hash(name: str, steps: int, **more: Any) -> str:
    with together(name, runtime="inline", **more) as simulation:
        simulation.step(steps)
        return simulation.state_hash


def where(block: SharedMemory) -> dict[str, int]:
    return {"pid": os.getpid(), "fd": block.fd, "size": block.size, "inode": os.fstat(block.fd).st_ino}


# ---- actors' workers in threads, without Ray -------------------------------------------------------------------------


class Loopback:
    """Actors' workers in threads of this process. The first `shared_count` share memory, the others have sockets."""

    last: Loopback
    shared_count = 0

    def __init__(self, scene: Scene, params: Params, worker_count: int, mail_room: int = 0) -> None:
        self._scene, self._params, self._mail_room = scene, params, mail_room
        self._blocks = [SharedMemory(8 * STATE_SIZE * scene.body_count), SharedMemory(0), SharedMemory(0)]
        self.border_states: NDArray[np.float64] = self._blocks[0].array((scene.body_count, STATE_SIZE), float)
        self.worker_states = np.zeros((0, STATE_SIZE))
        self.remote = RemoteStates(scene, params, self.border_states)
        self.byte_count: int | None = None
        self.wait_cpu_s = 0.0
        self.workers: list[RayWorker] = []
        self.failures: dict[int, WorkerFailure] = {}
        self.replaced: list[int] = []
        self.set_worker_count(worker_count)
        Loopback.last = self

    def set_worker_count(self, worker_count: int) -> None:
        before = len(self.workers)
        states = self._blocks[1]
        states.grow(max(states.size, 8 * STATE_SIZE * self._scene.body_count * worker_count))
        self.worker_states = states.array((-1,), float).reshape(-1, STATE_SIZE)
        self._blocks[2].grow(max(self._blocks[2].size, memory_size(worker_count, self._mail_room)))
        del self.workers[worker_count:]
        self.remote.set_worker_count(worker_count)
        for index in range(before, worker_count):
            self._start(index)
        self._link(list(range(before, worker_count)))

    def _start(self, index: int) -> None:
        memory = np.empty(SceneLayout(self._scene).size, np.uint8)
        SceneLayout(self._scene).write(memory)
        worker, is_shared = RayWorker(), index < self.shared_count
        task = {
            "index": index,
            "params": asdict(self._params),
            "memory": [where(block) for block in self._blocks] if is_shared else [],
            "mail_room": self._mail_room,
            "rows": [self._scene.body_count, 1],
        }
        home = worker.start(task, memory)
        assert not home["error"], home["error"]
        assert home["shared"] == is_shared
        self.remote.set_worker(index, is_shared)
        self.workers[index : index + 1] = [worker]

    def _link(self, fresh: list[int]) -> None:
        count = len(self.workers)
        tickets = [
            worker.listen(
                count,
                fresh,
                "127.0.0.1",
                [o for o in range(w + 1, count) if o >= self.shared_count and (o in fresh or w in fresh)],
            )
            for w, worker in enumerate(self.workers)
        ]
        for w, worker in enumerate(self.workers):
            assert worker.connect_to(count, {host: found[w] for host, found in enumerate(tickets) if w in found}) == ""
        assert [worker.let_in(count, LIMIT_S) for worker in self.workers] == [[]] * count

    @property
    def states(self) -> NDArray[np.float64]:
        if not self.remote.is_complete:
            self.remote.take([w.step(p) for w, p in zip(self.workers, self.remote.ask(), strict=True)])
        self.remote.want()
        return self.border_states

    def step(
        self, commands: Sequence[Command | None], meanwhile: Callable[[], None] | None = None
    ) -> list[Reply | WorkerFailure | None]:
        requests = self.remote.pack(commands)
        with ThreadPoolExecutor(len(self.workers)) as pool:
            futures: list[Future[bytes]] = [
                pool.submit(w.step, request) for w, request in zip(self.workers, requests, strict=True)
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
        self.failures.pop(worker)
        self.replaced.append(worker)
        self._start(worker)
        self._link([worker])

    def close(self) -> None:
        self.workers.clear()
        for block in self._blocks:
            block.close()


@pytest.fixture(autouse=True)
def _loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(base._RUNTIMES, "loopback", f"{__name__}:Loopback")


@pytest.mark.parametrize(("name", "shared_count"), [("bridge", 0), ("pyramid", 1), ("bridge", 2), ("pyramid", 3)])
def test_the_same_bits_where_messages_travel(name: str, shared_count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Loopback, "shared_count", shared_count)
    with together(name, runtime="loopback") as simulation:
        simulation.step(30)
        assert simulation.state_hash == inline_hash(name, 30)


def tcp_sockets() -> list[str]:
    """States of this process's TCP sockets."""
    return sorted(link.status for link in psutil.Process().net_connections("tcp"))


@pytest.mark.parametrize(("shared_count", "pairs"), [(0, 3), (1, 3), (2, 2), (3, 0)])
def test_a_connection_for_each_pair(shared_count: int, pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of workers that do not share memory. Nobody listens any more; a worker that has ended leaves nothing."""
    monkeypatch.setattr(Loopback, "shared_count", shared_count)
    gc.collect()
    before, established = tcp_sockets(), [psutil.CONN_ESTABLISHED]
    with together("pyramid", runtime="loopback") as simulation:
        simulation.step(2)
        assert tcp_sockets() == sorted(before + 2 * pairs * established)
        if shared_count < 3:
            simulation.set_worker_count(2)
            simulation.step(2)
            gc.collect()
            left = sorted(before + (2 if shared_count < 2 else 0) * established)
            assert poll(lambda: tcp_sockets() == left, LIMIT_S)


@pytest.mark.parametrize("shared_count", [0, 2])
def test_another_number_of_workers(shared_count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Loopback, "shared_count", shared_count)
    hashes = []
    for kind in ("inline", "loopback"):
        with together("pyramid", runtime=kind, workers=2) as simulation:
            for worker_count in (4, 2, 3, 4):
                simulation.step(3)
                simulation.set_worker_count(worker_count)
            simulation.step(3)
            hashes.append(simulation.state_hash)
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize(("first", "shared_count"), [(0, 2), (4, 0)])
def test_others_leave_a_step_in_which_a_worker_fails(
    monkeypatch: pytest.MonkeyPatch, first: int, shared_count: int
) -> None:
    """It lets them know, they answer, and all take the step again."""
    monkeypatch.setattr(Loopback, "shared_count", shared_count)
    step, times = BulletEngine.step_with_neighbours, []

    def fail(engine: BulletEngine, *how: Any) -> bool:
        if armed and not times and 0 in engine.active_ids.tolist():
            times.append(1)
            raise ZeroDivisionError("a body divides by zero")
        return step(engine, *how)

    monkeypatch.setattr(BulletEngine, "step_with_neighbours", fail)
    hashes = []
    for kind in ("inline", "loopback"):
        armed = False
        times.clear()
        with together("bridge", runtime=kind) as simulation:
            simulation.step(first)
            armed = True
            simulation.step(3)
            assert len(simulation.incidents) == 1
            assert "divides by zero" in simulation.incidents[0].text
            hashes.append(simulation.state_hash)
    assert Loopback.last.replaced == [simulation.incidents[0].worker]
    assert hashes[0] == hashes[1]


# ---- Ray on one machine ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    from lapjoint.workers.runtimes.ray_cluster import join_cluster, leave_cluster

    join_cluster(None)
    yield
    leave_cluster()


@pytest.fixture
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """How workers reach each other: through the server's memory, through sockets, or all but the third through memory.

    The workers above in threads go through every number of them; here every way is in some row of every kind of test.
    """
    from lapjoint.workers.runtimes.ray_actor import RayActor

    is_shared = {"memory": [True] * 4, "messages": [False] * 4, "both": [True, True, False, True]}[request.param]
    begin = RayActor.begin

    def begin_apart(actor: RayActor, task: dict[str, Any], scene: Any) -> None:
        """As where the server's memory cannot be reached."""
        begin(actor, task if is_shared[actor.index] else {**task, "memory": []}, scene)

    monkeypatch.setattr(RayActor, "begin", begin_apart)
    return is_shared


@slow
@pytest.mark.parametrize(
    ("way", "name"), [("memory", "bridge"), ("messages", "pyramid"), ("both", "bridge")], indirect=["way"]
)
def test_the_same_bits_as_actors(cluster: None, way: list[bool], name: str) -> None:
    with together(name, runtime="ray") as simulation:
        assert [actor.is_shared for actor in simulation._runtime._actors] == way[:3]  # type: ignore[attr-defined]
        simulation.step(30)
        assert simulation.state_hash == inline_hash(name, 30)


@slow
@pytest.mark.parametrize("way", ["both"], indirect=True)
def test_another_number_of_actors(cluster: None, way: list[bool]) -> None:
    """One that comes shares memory, which has grown, and one has sockets."""
    hashes = []
    for kind in ("inline", "ray"):
        with together("pyramid", runtime=kind, workers=2) as simulation:
            for worker_count in (4, 2, 3):
                simulation.step(3)
                simulation.set_worker_count(worker_count)
            simulation.step(3)
            hashes.append(simulation.state_hash)
    assert hashes[0] == hashes[1]


def lose(simulation: Simulation, worker: int, number: signal.Signals) -> None:
    """In the next step, stop a worker before it has its command; while the others wait for it, send the signal."""
    runtime, step = simulation._runtime, simulation._runtime.step
    process = psutil.Process(runtime.process_ids[worker])  # type: ignore[attr-defined]

    def lost(commands: Sequence[Command | None], meanwhile: Callable[[], None] | None = None) -> Any:
        runtime.step = step  # type: ignore[method-assign]
        process.send_signal(signal.SIGSTOP)
        assert poll(lambda: process.status() == psutil.STATUS_STOPPED, LIMIT_S)

        def then() -> None:
            time.sleep(0.3)
            process.send_signal(number)
            if meanwhile is not None:
                meanwhile()

        return step(commands, then)

    runtime.step = lost  # type: ignore[method-assign]


@slow
@pytest.mark.parametrize(
    ("way", "number"),
    [("memory", signal.SIGKILL), ("messages", signal.SIGKILL), ("both", signal.SIGSTOP)],
    ids=["memory-dies", "messages-dies", "both-hangs"],
    indirect=["way"],
)
def test_a_worker_lost_within_a_step(cluster: None, way: list[bool], number: signal.Signals) -> None:
    """It is replaced, all take the step again, and the rest is what it is with processes. Where memory is all that
    they share, only the server notices that one has died; a socket tells the others; one that hangs tells nobody.
    """
    hashes = []
    for kind in ("process", "ray"):
        with together("bridge", runtime=kind, hang_limit=3.0 if number == signal.SIGSTOP else 20.0) as simulation:
            simulation.step(4)
            for worker in range(3):
                simulation._runtime._limits.forget(worker)  # type: ignore[attr-defined]  # how slow the first step was
            simulation.step(1)
            old = list(simulation._runtime.process_ids)  # type: ignore[attr-defined]
            lose(simulation, 1, number)
            simulation.step(5)
            new = simulation._runtime.process_ids  # type: ignore[attr-defined]
            assert [(event.kind, event.worker) for event in simulation.incidents] == [
                ("gone" if number == signal.SIGKILL else "hung", 1)
            ]
            assert [a == b for a, b in zip(old, new, strict=True)] == [True, False, True]
            assert poll(lambda pid=old[1]: not psutil.pid_exists(pid), LIMIT_S)
            hashes.append(simulation.state_hash)
    assert hashes[0] == hashes[1]
