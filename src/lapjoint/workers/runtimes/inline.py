"""All workers in this process, one after the other: for tests, for debugging, and for a single worker."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.pages import release
from ...engines.mailboxes import abandon, is_waiting, memory_size
from ...errors import WorkerError
from ...forks import belongs_here
from ...params import Params
from ...scene import STATE_SIZE, Scene
from ...waits import LOOK_S, RunningTime
from ..kept import MOST_WORKERS, Kept
from ..messages import Command, NeighbourCommand, Reply, WorkerFailure
from ..worker import Worker, failure_of
from .base import Array, Ids
from .shared import SharedMemory


class InlineRuntime:
    def __init__(self, scene: Scene, params: Params, worker_count: int, mail_room: int = 0) -> None:
        self._scene, self._params, self._mail_room = scene, params, mail_room
        self._mail: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._block = SharedMemory(8 * STATE_SIZE * scene.body_count)
        self._finalizer = weakref.finalize(self, self._block.close)
        belongs_here(self, "a runtime", lambda own: own._finalizer())  # which closes a descriptor of its own there
        self._rows: Array = self._block.array((scene.body_count, STATE_SIZE), float)
        self.states = self.border_states = self._rows
        self._kept = Kept(self._table(scene.body_count), np.zeros(MOST_WORKERS, np.int64))
        self.worker_states = self._table(0)
        self.byte_count: int | None = None
        self.wait_cpu_s = 0.0
        self._workers: list[Worker] = []
        self._failures: dict[int, WorkerFailure] = {}
        self._closed = False
        self.set_worker_count(worker_count)

    def step(
        self, commands: Sequence[Command | None], meanwhile: Callable[[], None] | None = None
    ) -> list[Reply | WorkerFailure | None]:
        self._check_open()
        self._kept.note_sent(commands)
        start = time.thread_time()
        try:
            if any(isinstance(command, NeighbourCommand) for command in commands):
                answers = self._step_together(commands)
            else:
                answers = [self._answer(w, command) for w, command in zip(self._workers, commands, strict=True)]
            if meanwhile is not None:
                meanwhile()
        except BaseException:
            self.close()  # a step that was not finished by all cannot be gone on from
            raise
        self.wait_cpu_s = time.thread_time() - start
        return answers

    def _step_together(self, commands: Sequence[Command | None]) -> list[Reply | WorkerFailure | None]:
        """All workers take the step at the same time, each in a thread: they wait for each other within it."""
        answers: list[Reply | WorkerFailure | None] = [None] * len(self._workers)

        def take_step(worker: Worker, command: NeighbourCommand) -> None:
            reply = self._try(worker, partial(worker.execute, command))
            if worker.index in self._failures:  # now, or before this step
                abandon(self._mail, command.last_attempt)
            else:
                self._try(worker, worker.prepare)
            answers[worker.index] = self._failures.get(worker.index, reply)

        together = {
            worker.index: command
            for worker, command in zip(self._workers, commands, strict=True)
            if isinstance(command, NeighbourCommand)
        }
        threads = {
            index: threading.Thread(target=take_step, args=(self._workers[index], command))
            for index, command in together.items()
        }
        for thread in threads.values():
            thread.start()
        self._await(threads, max(command.last_attempt for command in together.values()))
        return answers

    def _await(self, threads: Mapping[int, threading.Thread], attempt: int) -> None:
        """Until all of them have ended. Workers that all wait for each other, and go on doing so, do not agree about
        what they send each other in this attempt: they hang."""
        running, since_s = RunningTime(), 0.0
        while left := {worker: thread for worker, thread in threads.items() if thread.is_alive()}:
            next(iter(left.values())).join(LOOK_S)
            running.look()
            if not all(is_waiting(self._mail, worker) for worker in left):
                since_s = running.seconds
            elif running.seconds - since_s > self._params.failures.hang_limit:
                for worker in left:
                    self._failures[worker] = WorkerFailure(worker, "hung", "it waits for others, which wait for it")
                abandon(self._mail, attempt)
                since_s = running.seconds

    def _try(self, worker: Worker, action: Callable[[], Any]) -> Any:
        """What it returns, unless the worker has failed or fails now."""
        if worker.index not in self._failures:
            try:
                return action()
            except Exception as error:
                self._failures[worker.index] = failure_of(worker.index, error)
        return None

    def _answer(self, worker: Worker, command: Command | None) -> Reply | WorkerFailure | None:
        if command is None:
            return None
        if worker.index not in self._failures:
            try:
                reply = worker.execute(command)
                worker.prepare()
                return reply
            except Exception as error:
                self._failures[worker.index] = failure_of(worker.index, error)
        return self._failures[worker.index]

    def states_before(self, worker: int, bodies: Ids) -> Array:
        return self._kept.before(worker, bodies, self.states)

    def go_back(self, worker: int, bodies: Ids) -> None:
        self.states[bodies] = self.states_before(worker, bodies)

    def replace(self, worker: int) -> None:
        self._check_open()
        self._workers[worker] = self._start(worker)
        self._failures.pop(worker, None)

    def set_body_count(self, body_count: int, mail_room: int) -> None:
        self._check_open()
        if body_count > len(self._rows):
            room = max(body_count, 2 * len(self._rows))
            self._block.grow(8 * STATE_SIZE * room)
            self._rows = self._block.array((room, STATE_SIZE), float)
            self._kept = Kept(self._table(room), self._kept.noted, self._kept.sent)  # nothing of before is needed
            for worker in self._workers:
                worker.set_states(self._rows)
                worker.set_kept(self._kept)
            self._make_room(len(self._workers))
        self.states = self.border_states = self._rows[:body_count]
        if mail_room > self._mail_room:
            self._mail_room = mail_room
            self._open_mail(len(self._workers))

    def release(self, rows: slice) -> None:
        release(self._rows[rows], shared=True)
        release(self._kept.states[rows], shared=True)

    def set_worker_count(self, worker_count: int) -> None:
        self._check_open()
        if self._mail_room:
            self._open_mail(worker_count)
        self._make_room(worker_count)
        fresh = [self._start(index) for index in range(len(self._workers), worker_count)]
        self._workers = self._workers[:worker_count] + fresh
        self._failures = {w: failure for w, failure in self._failures.items() if w < worker_count}

    def _open_mail(self, worker_count: int) -> None:
        """Zeros that no step has written to: workers open them anew, for their number or the room is another."""
        self._mail = SharedMemory(memory_size(worker_count, self._mail_room)).array((-1,), np.uint8)
        for worker in self._workers:
            worker.set_mail(self._mail, self._mail_room)

    def _make_room(self, worker_count: int) -> None:
        rows, before = len(self._rows) * worker_count, self.worker_states
        if rows > len(before):
            self.worker_states = self._table(rows)
            self.worker_states[: len(before)] = before
            for worker in self._workers:
                worker.set_worker_states(self.worker_states)

    def _start(self, index: int) -> Worker:
        worker = Worker(index, self._scene, self._params, self._rows, self.worker_states)
        worker.set_kept(self._kept)
        if self._mail_room:
            worker.set_mail(self._mail, self._mail_room)
        return worker

    def _check_open(self) -> None:
        if self._closed:
            raise WorkerError("the workers have ended")

    @staticmethod
    def _table(rows: int) -> Array:
        """Zeros whose pages cost nothing before they are touched."""
        block = SharedMemory(8 * STATE_SIZE * rows)
        table = block.array((rows, STATE_SIZE), float)
        block.close()
        return table

    def close(self) -> None:
        self._closed = True
        self._workers = []
        self._finalizer()
