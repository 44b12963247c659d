"""Workers on several machines: a host on each (host.py), and one link from the server to each host.

On the server's machine states lie in memory that server and workers share. With other machines one letter is sent to
each host in every step, and one comes back: for each of its workers the command with the states of bodies that it
activates or resets, and the reply with those of the overlap and of the bodies that are watched (watch.py). All states
come only when somebody wants them.

Who starts hosts, and on which machines, is a cluster's business: Ray's (ray.py).
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...arrays.pages import release
from ...engines.mailboxes import memory_size
from ...errors import WorkerError
from ...forks import belongs_here
from ...params import Params
from ...scene import STATE_SIZE, Scene
from ...scene.shared import SceneLayout
from ..kept import MOST_WORKERS, Kept
from ..messages import Command, NeighbourCommand, Reply, WorkerFailure, steps_of
from .answer_limits import AnswerLimits
from .base import Array, Ids
from .cluster import CHECK_S, Cluster, NodeError
from .fleet import Fleet
from .gather import Gathering
from .placement import Node, place
from .remote import RemoteStates
from .remote_host import HostedWorker, HostLost, RemoteHost
from .shared import SharedMemory

ROW_BYTES = 8 * STATE_SIZE


class HostsRuntime:
    def __init__(self, scene: Scene, params: Params, worker_count: int, mail_room: int, cluster: Cluster) -> None:
        self._scene, self._params, self._cluster = scene, params, cluster
        self._room = scene.body_count  # rows that the tables have
        self.wait_cpu_s = self._paused_s = 0.0
        states, worker_states, mail = SharedMemory(ROW_BYTES * self._room), SharedMemory(0), SharedMemory(0)
        kept, noted = SharedMemory(ROW_BYTES * self._room), SharedMemory(8 * MOST_WORKERS)
        self.border_states: Array = states.array((scene.body_count, STATE_SIZE), float)
        self.worker_states: Array = worker_states.array((0, STATE_SIZE), float)
        self._blocks = [states, worker_states, kept, noted, mail, self._lay_out_scene()]
        self._kept = Kept(kept.array((self._room, STATE_SIZE), float), noted.array((-1,), np.int64))
        self._mail_room = mail_room
        self._limits = AnswerLimits(params.failures.hang_limit, scene.body_count)
        self._fleet = Fleet(cluster, self._limits.start_s)
        self._workers, self._hosts = self._fleet.workers, self._fleet.hosts
        self._remote = RemoteStates(scene, params, self.border_states)
        self._finalizer = weakref.finalize(self, _end, self._fleet, self._blocks)
        belongs_here(self, "a runtime", HostsRuntime._let_go)
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
            self._kept.note_sent(commands)
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
            if self._has_lost_a_neighbour:
                self._link_neighbours()
        except BaseException:
            self.close()  # a step that was not finished by all cannot be gone on from
            raise
        self._limits.note(replies, steps, self._paused_s)
        return [
            None if command is None else reply or worker.failure
            for worker, command, reply in zip(self._workers, commands, replies, strict=True)
        ]

    def states_before(self, worker: int, bodies: Ids) -> Array:
        if self._workers[worker].is_shared:
            return self._kept.before(worker, bodies, self.border_states)
        states, remote = self.border_states[bodies], self._remote.workers[worker]
        own = np.flatnonzero(remote.has_own(bodies))
        if len(own) == 0:
            return states
        copy = self._fleet.recall(self._workers[worker], remote.before)
        if copy is not None and len(copy.bodies):
            place = np.minimum(np.searchsorted(copy.bodies, bodies[own]), len(copy.bodies) - 1)
            own, place = own[copy.bodies[place] == bodies[own]], place[copy.bodies[place] == bodies[own]]
            states[own] = copy.states[place]
        elif copy is None and not self._remote.was_complete:
            address = self._workers[worker].node.address
            raise WorkerError(
                f"{len(own)} of the states of before the step are lost with {address} and with the machine that kept "
                "copies of them"
            )
        return states

    def go_back(self, worker: int, bodies: Ids) -> None:
        self._remote.go_back(worker, bodies, self.states_before(worker, bodies))

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
            self._fleet.abandon(attempt)  # nobody waits for one that is gone already
        limit_s = max((self._limits.limit_s(worker.index, steps) for worker in asked), default=0.0)
        waiting = []
        for host in self._hosts:
            workers = [worker.index for worker in asked if worker.host is host]
            if workers:
                try:
                    host.send("step", [messages[index] for index in workers], attempt or 0, workers=workers)
                    waiting.append(host)
                except HostLost:
                    self._fleet.lose(host, attempt)
        cpu_s = time.thread_time()
        if meanwhile is not None:
            meanwhile()
        answers: list[Any] = [b""] * len(self._workers)
        self._paused_s = Gathering(self._fleet, answers, self._params.failures.hang_limit, attempt).run(
            waiting, limit_s
        )
        return answers, time.thread_time() - cpu_s

    # ---- workers come and go -----------------------------------------------------------------------------------------

    def replace(self, worker: int) -> None:
        self._check_open()
        self._fleet.stop([self._workers[worker]])
        self._limits.forget(worker)
        lost: list[str] = []
        while True:
            try:
                return self._start([worker], lost, 2 * self._params.failures.hang_limit)
            except NodeError as error:  # it takes a cluster a while to notice that a machine is gone
                lost.append(error.node.node_id)

    def set_body_count(self, body_count: int, mail_room: int) -> None:
        self._check_open()
        self._limits.body_count = body_count
        states = self._blocks[0]
        needs_room = body_count > self._room or mail_room > self._mail_room
        if body_count > self._room:
            self._room = max(body_count, 2 * self._room)
            states.grow(ROW_BYTES * self._room)
            self._blocks[2].grow(ROW_BYTES * self._room)
            kept = self._blocks[2].array((self._room, STATE_SIZE), float)
            self._kept = Kept(kept, self._kept.noted, self._kept.sent)  # nothing of before is needed
        self.border_states = states.array((self._room, STATE_SIZE), float)[:body_count]
        self._remote.set_table(self.border_states)
        self._mail_room = max(mail_room, self._mail_room)
        self._make_room(len(self._workers))
        if needs_room:
            self._tell_room()

    def release(self, rows: slice) -> None:
        release(self.border_states[rows], shared=True)
        release(self._kept.states[rows], shared=True)

    def _make_room(self, worker_count: int) -> None:
        """For what so many workers write besides their own bodies' states."""
        rows = self._room * worker_count
        if rows > len(self.worker_states):
            block = self._blocks[1]
            block.grow(max(1, ROW_BYTES * rows))
            self.worker_states = block.array((rows, STATE_SIZE), float)
        if self._mail_room and (size := memory_size(worker_count, self._mail_room)) > self._blocks[4].size:
            self._blocks[4].grow(size)

    def _tell_room(self) -> None:
        """Let all hosts know how large everything is, and who is where."""
        values = {
            "machines": [-1 if worker.host.is_lost else worker.host.machine for worker in self._workers],
            "mail_room": self._mail_room,
            "body_room": self._room,
        }
        self._fleet.tell("make room", values)

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

    def _link_neighbours(self, nodes: Sequence[Node] | None = None) -> None:
        """Have hosts keep copies for each other; where one is alone, the server has all states sent."""
        nodes = self._cluster.nodes() if nodes is None else nodes
        self._remote.keeps_all = not self._fleet.link_neighbours(nodes)

    @property
    def _has_lost_a_neighbour(self) -> bool:
        """Whether a host has come to be alone, and no worker is to be replaced, which links hosts anew anyway."""
        is_alone = not self._remote.keeps_all and any(host.is_alone for host in self._hosts)
        return is_alone and not any(worker.failure for worker in self._workers)

    def _cut(self, worker_count: int) -> None:
        self._fleet.stop(self._workers[worker_count:])
        del self._workers[worker_count:]
        self._remote.set_worker_count(worker_count)

    def _start(self, indices: Iterable[int], lost: Sequence[str] = (), check_s: float = CHECK_S) -> None:
        """Start these workers, at their places in the list or at its end, on nodes that are not lost."""
        indices = list(indices)
        if self._extent != self._scene.extent:
            self._blocks[5].close()
            self._blocks[5] = self._lay_out_scene()
        nodes = [node for node in self._cluster.nodes() if node.node_id not in lost]
        kept = [worker.node.node_id for worker in self._workers if worker.index not in indices]
        chosen = place(len(indices), nodes, kept)
        there = self._fleet.hosts_on(chosen, nodes, self._blocks[:5], check_s)
        started: dict[RemoteHost, list[int]] = {}
        for index, node in zip(indices, chosen, strict=True):
            host = there[node.node_id]
            started.setdefault(host, []).append(index)
            self._workers[index : index + 1] = [HostedWorker(index, host)]
            self._remote.set_worker(index, host.is_shared)
        values = {
            "params": self._params.options(),
            "rows": [self._room, len(self.worker_states)],
            "body_room": self._room,
            "mail_room": self._mail_room,
        }
        self._fleet.start_workers(started, self._blocks[5], values)
        self._fleet.drop_idle_hosts()
        if self._mail_room:
            self._fleet.link(nodes)
        self._link_neighbours(nodes)
        self._tell_room()
        for host in started:
            if host.is_lost:
                raise host.start_error("its host is gone")

    def _check_open(self) -> None:
        if not self._finalizer.alive:
            raise WorkerError("the workers have ended")

    def _let_go(self) -> None:
        """In a process that was forked off: the hosts are its parent's, and leave when that hangs up."""
        self._finalizer.detach()
        for host in self._hosts:
            if host.link is not None:
                host.link.close()
        for block in self._blocks:
            block.close()

    def close(self) -> None:
        self._finalizer()

    @property
    def process_ids(self) -> list[int]:
        return [worker.pid for worker in self._workers]


def _end(fleet: Fleet, blocks: list[SharedMemory]) -> None:
    fleet.end()
    for block in blocks:
        block.close()
