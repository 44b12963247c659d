"""Every worker an actor of a Ray cluster, on this machine or on others.

On the server's machine states lie in memory that server and actors share. With other machines one message is sent to
each actor in every step, and one comes back: the command with the states of bodies that it activates or resets, the
reply with those of the overlap and of the bodies that are watched (watch.py). All states come only when somebody wants
them.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.pages import release
from ...engines.mailboxes import abandon, memory_size
from ...errors import WorkerError
from ...params import Params
from ...scene import STATE_SIZE, Scene
from ...scene.shared import SceneLayout
from ..kept import MOST_WORKERS, Kept
from ..messages import Command, NeighbourCommand, Reply, StepCommand, WorkerFailure, steps_of
from .answer_limits import AnswerLimits
from .base import Array
from .placement import place
from .ray_actor import RayActor, end_actors, start_actor
from .ray_cluster import (
    CHECK_S,
    LOCALHOST,
    NodeError,
    check_versions,
    find_nodes,
    join_cluster,
    last_line,
    leave_cluster,
    ray,
)
from .ray_graph import GraphBroken, StepGraph
from .ray_neighbours import link_actors
from .remote import RemoteStates
from .shared import SharedMemory

ROW_BYTES = 8 * STATE_SIZE
START_S = 60.0
"""What an actor may take at least to start [s]: Ray itself takes most of a minute on a busy machine."""
LATE = "no answer in {:.3g} s"


class RayRuntime:
    def __init__(self, scene: Scene, params: Params, worker_count: int, mail_room: int = 0) -> None:
        self._scene, self._params = scene, params
        self._room = scene.body_count  # rows that the tables have
        self.wait_cpu_s = 0.0
        states, worker_states, mail = SharedMemory(ROW_BYTES * self._room), SharedMemory(0), SharedMemory(0)
        self.border_states: Array = states.array((scene.body_count, STATE_SIZE), float)
        self.worker_states: Array = worker_states.array((0, STATE_SIZE), float)
        self._blocks = [states, worker_states, mail]
        self.kept = Kept(np.empty((self._room, STATE_SIZE)), np.zeros(MOST_WORKERS, np.int64))
        self._mail: NDArray[np.uint8] = np.zeros(0, np.uint8)
        """What workers with the server's memory send each other within a step."""
        self._actors: list[RayActor] = []
        self._graph: list[StepGraph] = []  # one, or none before it is needed
        self._in_graph: list[RayActor] = []
        self._mail_room = mail_room
        self._limits = AnswerLimits(params.hang_limit)
        self._remote = RemoteStates(scene, params, self.border_states)
        join_cluster(params.address)
        self._finalizer = weakref.finalize(self, _end, self._actors, self._graph, self._blocks)
        try:
            self._lay_out_scene()
            self.set_worker_count(worker_count)
        except BaseException:
            self.close()
            raise

    def _lay_out_scene(self) -> None:
        description = SceneLayout(self._scene)
        memory = np.empty(description.size, np.uint8)
        description.write(memory)
        self._scene_memory, self._extent = ray.put(memory), self._scene.extent

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
            sent_commands = [
                None if actor.failure else command for actor, command in zip(self._actors, commands, strict=True)
            ]
            self._keep_states(commands)
            self._remote.byte_count = 0
            if self._remote.must_know_more(sent_commands):
                self._fetch()
            messages = self._remote.pack(sent_commands)
            attempts = {command.last_attempt for command in commands if isinstance(command, NeighbourCommand)}
            steps = steps_of(commands)
            answers, self.wait_cpu_s = self._exchange(messages, meanwhile, max(attempts, default=None), steps)
            replies = self._remote.unpack(sent_commands, answers, self.worker_states)
            if self._remote.needs_all:
                self._fetch()
        except BaseException:
            self.close()  # a step that was not finished by all cannot be gone on from
            raise
        self._limits.note(replies, steps)
        return [
            None if command is None else reply or actor.failure
            for actor, command, reply in zip(self._actors, commands, replies, strict=True)
        ]

    def _keep_states(self, commands: Sequence[Command | None]) -> None:
        """Keep what the server has of the states before a step: workers do not, for some are on other machines. A step
        that only some workers take again began with the same states."""
        steps = [command for command in commands if isinstance(command, StepCommand)]
        if len(steps) == len(commands):
            states = self.states if self._params.send == "all" else self.border_states
            np.copyto(self.kept.states[: len(states)], states)
        for worker, command in enumerate(commands):
            if isinstance(command, StepCommand):
                self.kept.noted[worker] = command.number

    def _fetch(self) -> None:
        """Ask the actors on other machines for the states of all their own bodies."""
        answers, _ = self._exchange(self._remote.ask(), None)
        self._remote.take(answers)

    def _exchange(
        self,
        messages: Sequence[bytes],
        meanwhile: Callable[[], None] | None,
        attempt: int | None = None,
        steps: int = 1,
    ) -> tuple[list[bytes], float]:
        """Messages to the actors, and what they answer; nothing where there was none, or where the worker failed. In an
        attempt at a step that they take together, all abandon it if one fails."""
        if attempt is not None:
            self._abandon_if_one_failed(attempt)
        asked = [actor for actor in self._actors if messages[actor.index] and actor.failure is None]
        limit_s = max((self._limits.limit_s(actor.index, steps) for actor in asked), default=0.0)
        cpu_s = time.thread_time()
        answers = [b""] * len(self._actors)
        was_sent = False
        try:
            self._compile()
            self._graph[0].send([messages[actor.index] for actor in self._in_graph])
            cpu_s, was_sent = time.thread_time(), True
            if meanwhile is not None:
                meanwhile()
            if any(actor.failure for actor in asked):
                raise GraphBroken  # they have failed meanwhile
            for actor, answer in zip(self._in_graph, self._graph[0].receive(limit_s), strict=True):
                answers[actor.index] = answer
        except GraphBroken:
            self._find_failures(asked, limit_s, was_sent, attempt)
            answers = self._ask_again(messages, limit_s, None if was_sent else meanwhile, attempt)
        cpu_s = time.thread_time() - cpu_s
        for actor in asked:
            if actor.failure is None:
                actor.note_failure(answers[actor.index])
            if actor.failure is not None:
                answers[actor.index] = b""
        return answers, cpu_s

    def _compile(self) -> None:
        """One graph for all that are there. Compiling waits for ever for one that hangs, so they are asked first."""
        if self._graph:
            return
        self._in_graph = [actor for actor in self._actors if actor.failure is None]
        try:
            ray.get([actor.handle.has_answered.remote(0) for actor in self._in_graph], timeout=self._params.hang_limit)
        except ray.exceptions.RayError as error:
            raise GraphBroken from error
        self._graph.append(StepGraph([actor.handle for actor in self._in_graph]))

    def _break_up(self) -> None:
        while self._graph:
            self._graph.pop().close()

    def _abandon_if_one_failed(self, attempt: int) -> None:
        """Let all others leave the step. One that fails by itself has done this already; then it is done again."""
        if not any(actor.failure for actor in self._actors):
            return
        abandon(self._mail, attempt)
        elsewhere = [actor for actor in self._actors if actor.failure is None and not actor.is_shared]
        if elsewhere:
            calls = [actor.handle.abandon.remote(attempt) for actor in elsewhere]
            ray.wait(calls, num_returns=len(calls), timeout=self._params.hang_limit)

    def _find_failures(
        self, asked: Sequence[RayActor], limit_s: float, was_sent: bool, attempt: int | None = None
    ) -> None:
        """Whose fault it is that the graph broke."""
        unknown = [actor for actor in asked if actor.failure is None]
        questions = [
            (actor, [actor.handle.has_answered.remote(self._remote.number), actor.handle.is_waiting.remote()])
            for actor in unknown
        ]
        patience = time.monotonic() + self._params.hang_limit
        waiting = set()
        for actor, question in questions:
            try:
                answered, waits = ray.get(question, timeout=max(0.0, patience - time.monotonic()))
                answered = answered or not was_sent
                if waits:
                    waiting.add(actor)
            except ray.exceptions.GetTimeoutError:
                answered = False
            except ray.exceptions.RayError as error:
                actor.fail("gone", last_line(error))
                continue
            actor.is_late = not answered
        if not any(actor.failure for actor in asked):
            # Nobody is gone: those that have not answered hang, but for those that wait for another.
            late = [actor for actor in asked if actor.is_late]
            for actor in [actor for actor in late if actor not in waiting] or late:
                actor.fail("hung", LATE.format(limit_s))
        if attempt is not None:
            self._abandon_if_one_failed(attempt)  # the graph is not closed before they have left the step
        self._break_up()

    def _ask_again(
        self,
        messages: Sequence[bytes],
        limit_s: float,
        meanwhile: Callable[[], None] | None,
        attempt: int | None = None,
    ) -> list[bytes]:
        """By plain calls, for the channels are gone. Who has answered already gives the same answer again."""
        calls = [
            actor.handle.step.remote(message) if message and actor.failure is None else None
            for actor, message in zip(self._actors, messages, strict=True)
        ]
        if meanwhile is not None:
            meanwhile()
        answers = []
        end = time.monotonic() + limit_s
        for actor, call in zip(self._actors, calls, strict=True):
            answer = b""
            if call is not None:
                try:
                    answer = ray.get(call, timeout=max(0.0, end - time.monotonic()))
                except ray.exceptions.GetTimeoutError:
                    actor.fail("hung", LATE.format(limit_s))
                except ray.exceptions.RayError as error:
                    actor.fail("gone", last_line(error))
                if actor.failure is not None and attempt is not None:
                    self._abandon_if_one_failed(attempt)
            answers.append(answer)
        return answers

    # ---- workers come and go -----------------------------------------------------------------------------------------

    def replace(self, worker: int) -> None:
        self._check_open()
        self._break_up()
        end_actors([self._actors[worker]])
        self._limits.forget(worker)
        lost: list[str] = []
        while True:
            try:
                return self._start([worker], lost, 2 * self._params.hang_limit)
            except NodeError as error:  # Ray takes a while to notice that a machine is gone
                lost.append(error.node.node_id)

    def set_body_count(self, body_count: int, mail_room: int) -> None:
        self._check_open()
        states = self._blocks[0]
        if body_count > self._room:
            self._room = max(body_count, 2 * self._room)
            states.grow(ROW_BYTES * self._room)
            self.kept = Kept(np.empty((self._room, STATE_SIZE)), self.kept.noted)
        self.border_states = states.array((self._room, STATE_SIZE), float)[:body_count]
        self._remote.set_table(self.border_states)
        more_mail = mail_room > self._mail_room
        self._mail_room = max(mail_room, self._mail_room)
        self._make_room(len(self._actors))
        if more_mail:
            self._break_up()
            calls = [actor.handle.set_mail_room.remote(len(self._actors), mail_room) for actor in self._actors]
            ray.wait(calls, num_returns=len(calls), timeout=START_S)  # who does not answer fails in the next step

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
            self._mail = self._blocks[2].array((-1,), np.uint8)

    def set_worker_count(self, worker_count: int) -> None:
        self._check_open()
        if not self._remote.is_complete:
            self._fetch()  # who is watched may be another matter with another number
        self._break_up()
        before = len(self._actors)
        self._make_room(worker_count)
        self._cut(worker_count)
        for index in range(min(before, worker_count), max(before, worker_count)):
            self._limits.forget(index)
        try:
            self._start(range(before, worker_count))
        except WorkerError:
            self._cut(before)
            raise

    def _cut(self, worker_count: int) -> None:
        end_actors(self._actors[worker_count:])
        del self._actors[worker_count:]
        self._remote.set_worker_count(worker_count)

    def _start(self, indices: Iterable[int], lost: Sequence[str] = (), check_s: float = CHECK_S) -> None:
        """Start these workers, at their places in the list or at its end, on nodes that are not lost."""
        indices = list(indices)
        if self._extent != self._scene.extent:
            self._lay_out_scene()
        nodes = [node for node in find_nodes() if node.node_id not in lost]
        kept = [actor.node.node_id for actor in self._actors if actor.index not in indices]
        chosen = place(len(indices), nodes, self._params.placement, kept)
        check_versions(chosen, check_s)
        fresh = []
        for index, node in zip(indices, chosen, strict=True):
            actor = RayActor(index, node, start_actor(node))
            fresh.append(actor)
            self._actors[index : index + 1] = [actor]
            task: dict[str, Any] = {
                "index": index,
                "params": asdict(self._params),
                "rows": [self._room, len(self.worker_states)],
                "mail_room": self._mail_room,
                "memory": list(map(_where, self._blocks)) if node.is_server else [],
            }
            actor.begin(task, self._scene_memory)
        end, errors = time.monotonic() + max(START_S, self._limits.start_s), []
        for actor in fresh:
            try:
                actor.wait_until_there(end - time.monotonic())
                self._remote.set_worker(actor.index, actor.is_shared)
            except WorkerError as error:  # all are waited for: only who is known can be ended
                actor.fail("gone", "it did not start")
                errors.append(error)
        if not errors and self._mail_room:
            try:
                link_actors(self._actors, indices, lambda node: node.address if len(nodes) > 1 else LOCALHOST)
            except WorkerError as error:
                errors.append(error)
                for actor in fresh:
                    actor.fail("gone", "it did not start")
        if errors:
            raise errors[0]

    def _check_open(self) -> None:
        if not self._finalizer.alive:
            raise WorkerError("the workers have ended")

    def close(self) -> None:
        self._finalizer()

    @property
    def process_ids(self) -> list[int]:
        return [actor.pid for actor in self._actors]


def _where(block: SharedMemory) -> dict[str, int]:
    """What a process of this machine needs to open a block of this one's."""
    return {"pid": os.getpid(), "fd": block.fd, "size": block.size, "inode": os.fstat(block.fd).st_ino}


def _end(actors: list[RayActor], graph: list[StepGraph], blocks: list[SharedMemory]) -> None:
    if ray.is_initialized():
        end_actors(actors)
        while graph:
            graph.pop().close()
    actors.clear()
    for block in blocks:
        block.close()
    leave_cluster()
