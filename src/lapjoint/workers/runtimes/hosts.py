"""Workers on several machines: a host on each (host.py), and one link from the server to each host.

On the server's machine states lie in memory that server and workers share. With other machines one letter is sent to
each host in every step, and one comes back: for each of its workers the command with the states of bodies that it
activates or resets, and the reply with those of the overlap and of the bodies that are watched (watch.py). All states
come only when somebody wants them.

Who starts hosts, and on which machines, is a cluster's business: Ray's (ray.py).
"""

from __future__ import annotations

import select
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from ...arrays.pages import release
from ...engines.mailboxes import memory_size
from ...errors import WorkerError
from ...params import Params
from ...scene import STATE_SIZE, Scene
from ...scene.shared import SceneLayout
from ..messages import Command, NeighbourCommand, Reply, WorkerFailure, steps_of
from .answer_limits import AnswerLimits
from .base import Array
from .digest import source_digest
from .host import where
from .host_links import ask, link_hosts
from .link import Entrance, Link, Ticket, core_count, wait_for_any
from .placement import Node, place
from .ray_remains import is_running
from .remote import RemoteStates
from .remote_host import HostedWorker, HostLost, HostProcess, RemoteHost
from .shared import SharedMemory

LOCALHOST = "127.0.0.1"
ROW_BYTES = 8 * STATE_SIZE
START_S = 60.0
"""What a host may take at least to start [s]: Ray itself takes most of a minute on a busy machine."""
LOOK_S = 0.5
"""How often to look whether hosts that start have failed [s]."""
LEAVE_S = 5.0
"""How long all workers together may take to be gone [s]."""
CHECK_S = 60.0
"""How long a machine may take to report which lapjoint it has [s]."""


class NodeError(WorkerError):
    """A node that counts as alive does not answer."""

    def __init__(self, node: Node, why: str) -> None:
        super().__init__(f"node {node.address} does not answer: {why}")
        self.node = node


class Cluster(Protocol):
    """Machines, and who starts hosts on them."""

    def nodes(self) -> list[Node]:
        """Machines that are there."""
        ...

    def check(self, nodes: Sequence[Node], limit_s: float) -> None:
        """Every machine has the lapjoint that runs here, or it is an error that names it."""
        ...

    def start_host(self, node: Node, ticket: Ticket) -> HostProcess:
        """A process on that machine that calls `host.serve` with the ticket."""
        ...

    def leave(self) -> None:
        """It is not needed any more."""
        ...


class HostsRuntime:
    def __init__(self, scene: Scene, params: Params, worker_count: int, mail_room: int, cluster: Cluster) -> None:
        self._scene, self._params, self._cluster = scene, params, cluster
        self._room = scene.body_count  # rows that the tables have
        self.wait_cpu_s = 0.0
        states, worker_states, mail = SharedMemory(ROW_BYTES * self._room), SharedMemory(0), SharedMemory(0)
        self.border_states: Array = states.array((scene.body_count, STATE_SIZE), float)
        self.worker_states: Array = worker_states.array((0, STATE_SIZE), float)
        self._blocks = [states, worker_states, mail, self._lay_out_scene()]
        self._workers: list[HostedWorker] = []
        self._hosts: list[RemoteHost] = []
        self._machine_count = 0  # that there have been
        self._mail_room = mail_room
        self._limits = AnswerLimits(params.hang_limit)
        self._remote = RemoteStates(scene, params, self.border_states)
        self._finalizer = weakref.finalize(self, _end, self._workers, self._hosts, self._blocks, cluster)
        try:
            self.set_worker_count(worker_count)
        except BaseException:
            self.close()
            raise

    def _lay_out_scene(self) -> SharedMemory:
        description = SceneLayout(self._scene)
        block = SharedMemory(description.size)
        description.write(block.map)
        self._extent = self._scene.extent
        return block

    @property
    def states(self) -> Array:
        if not self._remote.is_complete and self._finalizer.alive:
            self._fetch()
        self._remote.want()
        return self.border_states

    @property
    def byte_count(self) -> int | None:
        return self._remote.byte_count if self._remote.is_remote else None

    # ---- a step ------------------------------------------------------------------------------------------------------

    def step(
        self, commands: Sequence[Command | None], meanwhile: Callable[[], None] | None = None
    ) -> list[Reply | WorkerFailure | None]:
        self._check_open()
        try:
            sent = [None if worker.failure else c for worker, c in zip(self._workers, commands, strict=True)]
            together = [command for command in commands if isinstance(command, NeighbourCommand)]
            for command in together:
                command.mail_room = self._mail_room
            self._remote.byte_count = 0
            if self._remote.must_know_more(sent):
                self._fetch()
            messages = self._remote.pack(sent)
            attempt = max((command.last_attempt for command in together), default=None)
            steps = steps_of(commands)
            answers, self.wait_cpu_s = self._exchange(messages, meanwhile, attempt, steps)
            replies = self._remote.unpack(sent, answers, self.worker_states)
            if self._remote.needs_all:
                self._fetch()
        except BaseException:
            self.close()  # a step that was not finished by all cannot be gone on from
            raise
        self._limits.note(replies, steps)
        return [
            None if command is None else reply or worker.failure
            for worker, command, reply in zip(self._workers, commands, replies, strict=True)
        ]

    def _fetch(self) -> None:
        """Ask the workers on other machines for the states of all their own bodies."""
        answers, _ = self._exchange(self._remote.ask(), None)
        self._remote.take(answers)

    def _exchange(
        self,
        messages: Sequence[bytes],
        meanwhile: Callable[[], None] | None,
        attempt: int | None = None,
        steps: int = 1,
    ) -> tuple[list[Any], float]:
        """Messages to the workers, and what they answer; nothing where there was none, or where the worker failed. In
        an attempt at a step that they take together, all abandon it if one fails."""
        asked = [worker for worker in self._workers if messages[worker.index] and worker.failure is None]
        if attempt is not None and len(asked) < len(self._workers):
            self._abandon(attempt)  # nobody waits for one that is gone already
        limit_s = max((self._limits.limit_s(worker.index, steps) for worker in asked), default=0.0)
        waiting = []
        for host in self._hosts:
            workers = [worker.index for worker in asked if worker.host is host]
            if workers:
                try:
                    host.send("step", [messages[index] for index in workers], attempt or 0, workers=workers)
                    waiting.append(host)
                except HostLost:
                    self._lose(host, attempt)
        cpu_s, since = time.thread_time(), time.monotonic()
        if meanwhile is not None:
            meanwhile()
        answers: list[Any] = [b""] * len(self._workers)
        self._gather(waiting, answers, since, limit_s, attempt)
        return answers, time.thread_time() - cpu_s

    def _gather(
        self, hosts: Sequence[RemoteHost], answers: list[Any], since: float, limit_s: float, attempt: int | None
    ) -> None:
        """Wait until all these hosts have answered. Workers that take too long since `since` are given up."""
        waiting = {host.link.fileno(): host for host in hosts if host.link is not None}
        poll = select.poll()
        for fd in waiting:
            poll.register(fd, select.POLLIN)
        is_asking, is_core_free, waited_s = False, self._is_core_free, limit_s
        while waiting:
            left_s = since + limit_s - time.monotonic()
            ready = wait_for_any(poll, max(0.0, left_s), is_core_free)
            for fd in ready:
                host = waiting[fd]
                if self._receive(host, answers, attempt):
                    del waiting[fd]
                    poll.unregister(fd)
            if not ready and not is_asking:
                # Late, or not: a worker may wait for another one, elsewhere.
                for host in waiting.values():
                    host.report = None
                    self._send_or_lose(host, "who", attempt)
                is_asking, since, limit_s = True, time.monotonic(), self._params.hang_limit
            elif is_asking and (not ready or all(host.report for host in waiting.values())):
                self._give_up(list(waiting.values()), waited_s, attempt)
                is_asking, since = False, time.monotonic()
            for fd in [fd for fd, host in waiting.items() if host.is_lost]:
                del waiting[fd]
                poll.unregister(fd)

    def _receive(self, host: RemoteHost, answers: list[Any], attempt: int | None) -> bool:
        """Take what a host sends. Returns whether it has answered."""
        try:
            letter = host.receive()
        except HostLost:
            self._lose(host, attempt)
            return False
        if letter.kind == "who":
            host.report = letter
        if letter.kind != "answers":
            return False
        for index, part in zip(letter.values["workers"], letter.parts, strict=True):
            if index in letter.values["failed"]:
                self._workers[index].note_failure(part)
            else:
                answers[index] = part
        return True

    def _give_up(self, hosts: Sequence[RemoteHost], seconds: float, attempt: int | None) -> None:
        """Give up who hangs: hosts that do not even say who is late, or else workers that are late and wait for
        nobody."""
        silent = [host for host in hosts if host.report is None]
        for host in silent:
            self._lose(host, attempt, "hung")
        if silent:
            return
        reports = [(host, host.report.values) for host in hosts if host.report is not None]
        blocking = {host: [w for w in found["late"] if w not in found["waiting"]] for host, found in reports}
        if not any(blocking.values()):
            blocking = {host: found["late"] for host, found in reports}
        for host, workers in blocking.items():
            if workers:
                self._send_or_lose(host, "give up", attempt, workers=workers, seconds=seconds)

    def _send_or_lose(self, host: RemoteHost, kind: str, attempt: int | None, **values: Any) -> None:
        try:
            host.send(kind, **values)
        except HostLost:
            self._lose(host, attempt)

    def _lose(self, host: RemoteHost, attempt: int | None = None, kind: str = "gone") -> None:
        """A host is given up, and its workers with it."""
        if host.is_lost:
            return
        why = host.lose()
        for worker in self._workers:
            if worker.host is host:
                worker.fail(kind, f"on {host.node.address}: {why}")
        if attempt is not None:
            self._abandon(attempt)

    def _abandon(self, attempt: int) -> None:
        """Let all workers leave this attempt at a step."""
        for host in self._hosts:
            if not host.is_lost:
                try:
                    host.send("abandon", number=attempt)
                except HostLost:
                    self._lose(host, attempt)

    @property
    def _is_core_free(self) -> bool:
        return sum(worker.node.is_server for worker in self._workers) < core_count()

    # ---- workers come and go -----------------------------------------------------------------------------------------

    def replace(self, worker: int) -> None:
        self._check_open()
        self._stop([self._workers[worker]])
        self._limits.forget(worker)
        lost: list[str] = []
        while True:
            try:
                return self._start([worker], lost, 2 * self._params.hang_limit)
            except NodeError as error:  # it takes a cluster a while to notice that a machine is gone
                lost.append(error.node.node_id)

    def set_body_count(self, body_count: int, mail_room: int) -> None:
        self._check_open()
        states = self._blocks[0]
        needs_room = body_count > self._room or mail_room > self._mail_room
        if body_count > self._room:
            self._room = max(body_count, 2 * self._room)
            states.grow(ROW_BYTES * self._room)
        self.border_states = states.array((self._room, STATE_SIZE), float)[:body_count]
        self._remote.set_table(self.border_states)
        self._mail_room = max(mail_room, self._mail_room)
        self._make_room(len(self._workers))
        if needs_room:
            self._tell_room()

    def release(self, rows: slice) -> None:
        release(self.border_states[rows], shared=True)

    def _make_room(self, worker_count: int) -> None:
        """For what so many workers write besides their own bodies' states."""
        rows = self._room * worker_count
        if rows > len(self.worker_states):
            block = self._blocks[1]
            block.grow(max(1, ROW_BYTES * rows))
            self.worker_states = block.array((rows, STATE_SIZE), float)
        if self._mail_room and (size := memory_size(worker_count, self._mail_room)) > self._blocks[2].size:
            self._blocks[2].grow(size)

    def _tell_room(self) -> None:
        """Let all hosts know how large everything is, and who is where."""
        values = {
            "machines": [-1 if worker.host.is_lost else worker.host.machine for worker in self._workers],
            "mail_room": self._mail_room,
            "body_room": self._room,
        }
        hosts = {host: values for host in self._hosts if not host.is_lost}
        ask(hosts, "make room", START_S, self._lose)

    def set_worker_count(self, worker_count: int) -> None:
        self._check_open()
        if not self._remote.is_complete:
            self._fetch()  # who is watched may be another matter with another number
        before = len(self._workers)
        self._make_room(worker_count)
        self._cut(worker_count)
        for index in range(min(before, worker_count), max(before, worker_count)):
            self._limits.forget(index)
        try:
            self._start(range(before, worker_count))
        except WorkerError:
            self._cut(before)
            self._tell_room()
            raise

    def _cut(self, worker_count: int) -> None:
        self._stop(self._workers[worker_count:])
        del self._workers[worker_count:]
        self._remote.set_worker_count(worker_count)

    def _stop(self, workers: Sequence[HostedWorker]) -> None:
        """End these workers, however they fare."""
        hosts = {
            host: {"workers": [worker.index for worker in workers if worker.host is host]}
            for host in self._hosts
            if not host.is_lost and any(worker.host is host for worker in workers)
        }
        ask(hosts, "stop", LEAVE_S + START_S, self._lose)
        for worker in workers:
            worker.fail("gone", "was ended by the server")

    def _start(self, indices: Iterable[int], lost: Sequence[str] = (), check_s: float = CHECK_S) -> None:
        """Start these workers, at their places in the list or at its end, on nodes that are not lost."""
        indices = list(indices)
        if self._extent != self._scene.extent:
            self._blocks[3].close()
            self._blocks[3] = self._lay_out_scene()
        nodes = [node for node in self._cluster.nodes() if node.node_id not in lost]
        kept = [worker.node.node_id for worker in self._workers if worker.index not in indices]
        chosen = place(len(indices), nodes, self._params.placement, kept)
        there = {host.node.node_id: host for host in self._hosts if not host.is_lost}
        missing = {node.node_id: node for node in chosen if node.node_id not in there}
        self._cluster.check(list(missing.values()), check_s)
        fresh = self._open_hosts(list(missing.values()), nodes)
        there.update({host.node.node_id: host for host in fresh})
        started: dict[RemoteHost, list[int]] = {}
        for index, node in zip(indices, chosen, strict=True):
            host = there[node.node_id]
            started.setdefault(host, []).append(index)
            self._workers[index : index + 1] = [HostedWorker(index, host)]
            self._remote.set_worker(index, host.is_shared)
        self._start_workers(started)
        self._drop_idle_hosts()
        if self._mail_room:
            link_hosts(self._hosts, fresh, lambda node: self._address(node, nodes), self._lose)
        self._tell_room()
        for host in started:
            if host.is_lost:
                raise host.start_error("its host is gone")

    @staticmethod
    def _address(node: Node, nodes: Sequence[Node]) -> str:
        """Where a process of a node listens: where no other machine is, nowhere that one could reach."""
        return node.address if len(nodes) > 1 else LOCALHOST

    def _open_hosts(self, new: Sequence[Node], nodes: Sequence[Node]) -> list[RemoteHost]:
        """Start a host on each of these nodes."""
        if not new:
            return []
        own = next((node for node in nodes if node.is_server), nodes[0])
        end = time.monotonic() + max(START_S, self._limits.start_s)
        entrance = Entrance(self._address(own, nodes))
        fresh = []
        try:
            for node in new:
                machine = self._machine_count
                self._machine_count += 1
                fresh.append(RemoteHost(machine, node, self._cluster.start_host(node, entrance.ticket(machine))))
                self._hosts.append(fresh[-1])
            while entrance.missing:
                for machine, link in entrance.receive(LOOK_S).items():
                    (host,) = [host for host in fresh if host.machine == machine]
                    host.link = Link(link, self._limits.start_s)
                for host in fresh:
                    if host.link is None and (ended := host.process.how_it_ended(0.0)):
                        raise host.start_error(ended)
                    if host.link is None and time.monotonic() > end:
                        raise NodeError(host.node, "its host has not started in time")
            return self._begin(fresh, end)
        except BaseException:
            for host in fresh:
                self._hosts.remove(host)
                host.end()
            raise
        finally:
            entrance.close()

    def _begin(self, hosts: Sequence[RemoteHost], end: float) -> list[RemoteHost]:
        """Give them the server's memory where they can have it."""
        memory = [where(block) for block in self._blocks[:3]]
        values = {host: {"machine": host.machine, "memory": memory if host.node.is_server else []} for host in hosts}
        for host, letter in ask(values, "open", max(0.0, end - time.monotonic()), self._lose).items():
            host.pid, host.is_shared = letter.values["pid"], letter.values["shared"]
            if letter.values["digest"] != source_digest():
                raise WorkerError(
                    f"node {host.node.address} has a lapjoint of the same version whose files differ from those here, "
                    "expected the same"
                )
        for host in hosts:
            if host.is_lost:
                raise NodeError(host.node, "its host is gone")
        return list(hosts)

    def _start_workers(self, started: dict[RemoteHost, list[int]]) -> None:
        seconds = self._limits.start_s
        end, errors = time.monotonic() + 2 * max(START_S, seconds), []
        scene = self._blocks[3]
        for host, indices in started.items():
            values: dict[str, Any] = {
                "workers": indices,
                "params": asdict(self._params),
                "rows": [self._room, len(self.worker_states)],
                "body_room": self._room,
                "mail_room": self._mail_room,
                "seconds": seconds,
                "scene": where(scene) if host.is_shared else None,
            }
            try:
                host.send("start", [] if host.is_shared else [memoryview(scene.map)], **values)
            except HostLost:
                self._lose(host)
        for host in started:
            try:
                letter = host.expect("start", end)
            except HostLost:
                self._lose(host)
                errors.append(str(host.start_error("its host is gone")))
                continue
            for index, pid in letter.values["pids"]:
                self._workers[index].pid = pid
            errors += letter.values["errors"]
        if errors:
            for indices in started.values():
                for index in indices:
                    self._workers[index].fail("gone", "did not start")
            raise WorkerError(errors[0])

    def _drop_idle_hosts(self) -> None:
        """End hosts that have no workers any more, and forget those that are lost."""
        used = {id(worker.host) for worker in self._workers}
        gone = [host for host in self._hosts if host.is_lost or id(host) not in used]
        if not gone:
            return
        for host in gone:
            self._hosts.remove(host)
            host.end()
        values = {"machines": [host.machine for host in gone]}
        ask({host: values for host in self._hosts if not host.is_lost}, "disconnect", START_S, self._lose)

    def _check_open(self) -> None:
        if not self._finalizer.alive:
            raise WorkerError("the workers have ended")

    def close(self) -> None:
        self._finalizer()

    @property
    def process_ids(self) -> list[int]:
        return [worker.pid for worker in self._workers]


def _end(workers: list[HostedWorker], hosts: list[RemoteHost], blocks: list[SharedMemory], cluster: Cluster) -> None:
    """End hosts, whatever they are doing, and with them their workers; wait until those of this machine are gone."""
    here = [worker.pid for worker in workers if worker.node.is_server]
    for host in hosts:
        host.end()
        if host.node.is_server:
            here.append(host.pid)
    end = time.monotonic() + LEAVE_S
    for pid in here:
        while pid and is_running(pid) and time.monotonic() < end:
            time.sleep(0.002)
    workers.clear()
    hosts.clear()
    for block in blocks:
        block.close()
    cluster.leave()
