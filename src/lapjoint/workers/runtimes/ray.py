"""Every worker an actor of a Ray cluster, on this machine or on others.

On the server's machine states lie in memory that server and actors share. With other machines one parcel goes to each
actor in every step, and one comes back: the command with the states of bodies that it activates or resets, the reply
with those of the overlap and of the bodies that are watched (watch.py). All states come only when somebody wants them.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ...engines.exchange import Links, exchange_room
from ...errors import WorkerError
from ...params import Params
from ...scene import STATE_SIZE, Scene
from ...scene.shared import SceneLayout
from ..messages import StepCommand, StepReply, WorkerFailure
from .answer_limits import START_S, AnswerLimits
from .base import Array
from .placement import place
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
from .ray_seat import Seat, connect_seats, end_seats, start_actor
from .remote import RemoteStates
from .shared import SharedMemory

ROW_BYTES = 8 * STATE_SIZE


class RayRuntime:
    def __init__(self, scene: Scene, params: Params, worker_count: int) -> None:
        self._body_count, self._params = scene.body_count, params
        self.wait_cpu_s = 0.0
        states, worker_states = SharedMemory(ROW_BYTES * scene.body_count), SharedMemory(0)
        self.border_states: Array = states.array((scene.body_count, STATE_SIZE), float)
        self.worker_states: Array = worker_states.array((0, STATE_SIZE), float)
        self._blocks = [states, worker_states]
        self._seats: list[Seat] = []
        self._graph: list[StepGraph] = []  # one, or none before it is needed
        self._in_graph: list[Seat] = []
        self._room = exchange_room(scene.body_count) if params.coupling == "tight" else 0
        self._limits = AnswerLimits(params.hang_limit)
        self._remote = RemoteStates(scene, params, self.border_states)
        join_cluster(params.address)
        self._finalizer = weakref.finalize(self, _end, self._seats, self._graph, self._blocks)
        try:
            description = SceneLayout(scene)
            memory = np.empty(description.size, np.uint8)
            description.write(memory)
            self._scene = ray.put(memory)
            self.set_worker_count(worker_count)
        except BaseException:
            self.close()
            raise

    @property
    def states(self) -> Array:
        if not self._remote.is_complete and self._finalizer.alive:
            self._fetch()
        self._remote.want()
        return self.border_states

    # ---- a step ------------------------------------------------------------------------------------------------------

    def step(
        self, commands: Sequence[StepCommand | None], meanwhile: Callable[[], None] | None = None
    ) -> list[StepReply | WorkerFailure | None]:
        self._check_open()
        try:
            told = [None if seat.failure else command for seat, command in zip(self._seats, commands, strict=True)]
            if self._remote.must_know_more(told):
                self._fetch()
            parcels = self._remote.pack(told)
            answers, self.wait_cpu_s = self._exchange(parcels, meanwhile)
            replies = self._remote.unpack(told, answers, self.worker_states)
            if self._remote.needs_all:
                self._fetch()
        except BaseException:
            self.close()  # a step that was not finished by all cannot be gone on from
            raise
        return [
            None if command is None else reply or seat.failure
            for seat, command, reply in zip(self._seats, commands, replies, strict=True)
        ]

    def _fetch(self) -> None:
        """Ask the actors on other machines for the states of all their own bodies."""
        answers, _ = self._exchange(self._remote.ask(), None)
        self._remote.take(answers)

    def _exchange(self, parcels: Sequence[bytes], meanwhile: Callable[[], None] | None) -> tuple[list[bytes], float]:
        """Parcels to the actors, and what they answer; nothing where there was none, or where the worker failed."""
        asked = [seat for seat in self._seats if parcels[seat.index] and seat.failure is None]
        limit_s = max((self._limits.limit_s(seat.index) for seat in asked), default=0.0)
        cpu_s, sent = time.thread_time(), time.monotonic()
        answers = [b""] * len(self._seats)
        was_sent = False
        try:
            self._compile()
            sent = time.monotonic()
            self._graph[0].send([parcels[seat.index] for seat in self._in_graph])
            cpu_s, was_sent = time.thread_time(), True
            if meanwhile is not None:
                meanwhile()
            if any(seat.failure for seat in asked):
                raise GraphBroken  # they have not answered in a round
            for seat, answer in zip(self._in_graph, self._graph[0].receive(limit_s), strict=True):
                answers[seat.index] = answer
        except GraphBroken:
            self._find_failures(asked, limit_s, was_sent)
            answers = self._ask_again(parcels, limit_s, None if was_sent else meanwhile)
        cpu_s, taken_s = time.thread_time() - cpu_s, time.monotonic() - sent
        for seat in asked:
            if seat.failure is None:
                self._limits.answered(seat.index, taken_s)
                seat.note_failure(answers[seat.index])
            if seat.failure is not None:
                answers[seat.index] = b""
        return answers, cpu_s

    def links(self) -> Links:
        seats = self._seats
        limit_s = max(self._limits.limit_s(seat.index) for seat in seats)
        return Links(
            [seat.down for seat in seats],
            [seat.up for seat in seats],
            [seat.socket for seat in seats],
            limit_s,
            [not seat.is_shared for seat in seats],
            give_up=lambda worker: seats[worker].fail("hung", f"no answer in {limit_s:.3g} s"),
        )

    def _compile(self) -> None:
        """One graph for all that are there. Compiling waits for ever for one that hangs, so they are asked first."""
        if self._graph:
            return
        self._in_graph = [seat for seat in self._seats if seat.failure is None]
        try:
            ray.get([seat.actor.has_answered.remote(0) for seat in self._in_graph], timeout=self._params.hang_limit)
        except ray.exceptions.RayError as error:
            raise GraphBroken from error
        self._graph.append(StepGraph([seat.actor for seat in self._in_graph]))

    def _break_up(self) -> None:
        while self._graph:
            self._graph.pop().close()

    def _find_failures(self, asked: Sequence[Seat], limit_s: float, was_sent: bool) -> None:
        """Whose fault it is that the graph broke."""
        unknown = [seat for seat in asked if seat.failure is None]
        questions = [(seat, seat.actor.has_answered.remote(self._remote.number)) for seat in unknown]
        patience = time.monotonic() + self._params.hang_limit
        for seat, question in questions:
            try:
                answered = ray.get(question, timeout=max(0.0, patience - time.monotonic())) or not was_sent
            except ray.exceptions.GetTimeoutError:
                answered = False
            except ray.exceptions.RayError as error:
                seat.fail("gone", last_line(error))
                continue
            seat.is_late = not answered
        if not any(seat.failure for seat in asked):
            # Nobody is gone: those that have not answered hang.
            for seat in asked:
                if seat.is_late:
                    seat.fail("hung", f"no answer in {limit_s:.3g} s")
        self._break_up()

    def _ask_again(self, parcels: Sequence[bytes], limit_s: float, meanwhile: Callable[[], None] | None) -> list[bytes]:
        """By plain calls, for the channels are gone. Who has answered already gives the same answer again."""
        calls = [
            seat.actor.step.remote(parcel) if parcel and seat.failure is None else None
            for seat, parcel in zip(self._seats, parcels, strict=True)
        ]
        if meanwhile is not None:
            meanwhile()
        answers = []
        end = time.monotonic() + limit_s
        for seat, call in zip(self._seats, calls, strict=True):
            answer = b""
            if call is not None:
                try:
                    answer = ray.get(call, timeout=max(0.0, end - time.monotonic()))
                except ray.exceptions.GetTimeoutError:
                    seat.fail("hung", f"no answer in {limit_s:.3g} s")
                except ray.exceptions.RayError as error:
                    seat.fail("gone", last_line(error))
            answers.append(answer)
        return answers

    # ---- workers come and go -----------------------------------------------------------------------------------------

    def replace(self, worker: int) -> None:
        self._check_open()
        self._break_up()
        end_seats([self._seats[worker]])
        self._limits.forget(worker)
        lost: list[str] = []
        while True:
            try:
                return self._start([worker], lost, 2 * self._params.hang_limit)
            except NodeError as error:  # Ray takes a while to notice that a machine is gone
                lost.append(error.node.node_id)

    def set_worker_count(self, worker_count: int) -> None:
        self._check_open()
        if not self._remote.is_complete:
            self._fetch()  # who is watched may be another matter with another number
        self._break_up()
        before, rows = len(self._seats), self._body_count * worker_count
        if rows > len(self.worker_states):
            block = self._blocks[1]
            block.grow(max(1, ROW_BYTES * rows))
            self.worker_states = block.array((rows, STATE_SIZE), float)
        self._cut(worker_count)
        for index in range(min(before, worker_count), max(before, worker_count)):
            self._limits.forget(index)
        try:
            self._start(range(before, worker_count))
        except WorkerError:
            self._cut(before)
            raise

    def _cut(self, worker_count: int) -> None:
        end_seats(self._seats[worker_count:])
        del self._seats[worker_count:]
        self._remote.set_worker_count(worker_count)

    def _start(self, indices: Iterable[int], lost: Sequence[str] = (), check_s: float = CHECK_S) -> None:
        """Start these workers, at their places in the list or at its end, on nodes that are not lost."""
        indices = list(indices)
        nodes = [node for node in find_nodes() if node.node_id not in lost]
        kept = [seat.node.node_id for seat in self._seats if seat.index not in indices]
        chosen = place(len(indices), nodes, self._params.placement, kept)
        check_versions(chosen, check_s)
        fresh = []
        for index, node in zip(indices, chosen, strict=True):
            seat = Seat(index, node, start_actor(node), self._room)
            fresh.append(seat)
            self._seats[index : index + 1] = [seat]
            task: dict[str, Any] = {
                "index": index,
                "params": asdict(self._params),
                "rows": [self._body_count, len(self.worker_states)],
                "memory": list(map(_where, [*self._blocks, seat.exchange])) if node.is_server else [],
            }
            seat.begin(task, self._scene)
        end, errors = time.monotonic() + START_S, []
        for seat in fresh:
            try:
                seat.wait_until_there(end - time.monotonic())
                self._remote.set_worker(seat.index, seat.is_shared)
            except WorkerError as error:  # all are waited for: only who is known can be ended
                seat.fail("gone", "it did not start")
                errors.append(error)
        if not errors and self._params.coupling == "tight":
            address = next(node.address for node in nodes if node.is_server) if len(nodes) > 1 else LOCALHOST
            try:
                connect_seats(fresh, address)
            except WorkerError as error:
                errors.append(error)
                for seat in fresh:
                    seat.fail("gone", "it did not start")
        if errors:
            raise errors[0]

    def _check_open(self) -> None:
        if not self._finalizer.alive:
            raise WorkerError("the workers have ended")

    def close(self) -> None:
        self._finalizer()

    @property
    def process_ids(self) -> list[int]:
        return [seat.pid for seat in self._seats]


def _where(block: SharedMemory) -> dict[str, int]:
    """What a process of this machine needs to open a block of this one's."""
    return {"pid": os.getpid(), "fd": block.fd, "size": block.size, "inode": os.fstat(block.fd).st_ino}


def _end(seats: list[Seat], graph: list[StepGraph], blocks: list[SharedMemory]) -> None:
    for seat in seats:
        seat.hang_up()
    if ray.is_initialized():
        end_seats(seats)
        while graph:
            graph.pop().close()
    seats.clear()
    for block in blocks:
        block.close()
    leave_cluster()
