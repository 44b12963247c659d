"""All workers in this process, one after the other: for tests, for debugging, and for a single worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...engines.exchange import Links, Signal
from ...errors import WorkerError
from ...params import Params
from ...scene import STATE_SIZE, Scene
from ..messages import Command, ExchangeCommand, Reply, WorkerFailure
from ..worker import Worker, failure_of
from .base import Array
from .shared import SharedMemory


class InlineRuntime:
    def __init__(self, scene: Scene, params: Params, worker_count: int, exchange_room: int = 0) -> None:
        self._scene, self._params, self._room = scene, params, exchange_room
        self.states = self.border_states = self._table(scene.body_count)
        self.worker_states = self._table(0)
        self.byte_count: int | None = None
        self.wait_cpu_s = 0.0
        self._workers: list[Worker] = []
        self._failures: dict[int, WorkerFailure] = {}
        self._closed = False
        self._signals: dict[int, int] = {}
        self._serve_cpu_s = 0.0
        self.set_worker_count(worker_count)

    def step(
        self, commands: Sequence[Command | None], meanwhile: Callable[[], None] | None = None
    ) -> list[Reply | WorkerFailure | None]:
        self._check_open()
        start = time.thread_time()
        try:
            if meanwhile is not None and any(isinstance(command, ExchangeCommand) for command in commands):
                answers = self._step_with_exchange(commands, meanwhile)
            else:
                answers = [self._answer(w, command) for w, command in zip(self._workers, commands, strict=True)]
                if meanwhile is not None:
                    meanwhile()
        except BaseException:
            self.close()  # a step that was not finished by all cannot be gone on from
            raise
        self.wait_cpu_s = time.thread_time() - start
        return answers

    def _step_with_exchange(
        self, commands: Sequence[Command | None], meanwhile: Callable[[], None]
    ) -> list[Reply | WorkerFailure | None]:
        """All workers begin, answer the server in the exchange, and finish."""
        stepping = []
        for worker, command in zip(self._workers, commands, strict=True):
            if isinstance(command, ExchangeCommand):
                stepping.append(worker)
                self._try(worker, partial(worker.begin, command))
        self._signals = dict.fromkeys((worker.index for worker in stepping), int(Signal.ROUND))
        meanwhile()
        answers: list[Reply | WorkerFailure | None] = [None] * len(self._workers)
        for worker in stepping:
            completed = self._signals[worker.index] == Signal.FINISH
            reply = self._try(worker, partial(worker.finish, completed))
            if reply is not None:
                self._try(worker, worker.prepare)
            answers[worker.index] = self._failures.get(worker.index, reply)
        return answers

    def _try(self, worker: Worker, action: Callable[[], Any]) -> Any:
        """What it returns, unless the worker has failed or fails now."""
        if worker.index not in self._failures:
            try:
                return action()
            except Exception as error:
                self._failures[worker.index] = failure_of(worker.index, error)
        return None

    def links(self) -> Links:
        self._serve_cpu_s = 0.0
        return Links(
            [worker.down for worker in self._workers],
            [worker.up for worker in self._workers],
            signal=self._serve,
            exchange=self._serve,
            worker_cpu_s=lambda: self._serve_cpu_s,
        )

    def _serve(self) -> bool:
        start = time.thread_time()
        for worker in self._workers:
            signal = self._try(worker, worker.serve)
            if signal is not None:
                self._signals[worker.index] = signal
        self._serve_cpu_s += time.thread_time() - start
        return not self._failures

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

    def replace(self, worker: int) -> None:
        self._check_open()
        self._workers[worker] = self._start(worker)
        self._failures.pop(worker, None)

    def set_worker_count(self, worker_count: int) -> None:
        self._check_open()
        rows = self._scene.body_count * worker_count
        if rows > len(self.worker_states):
            before = self.worker_states
            self.worker_states = self._table(rows)
            self.worker_states[: len(before)] = before
            for worker in self._workers:
                worker.set_worker_states(self.worker_states)
        fresh = [self._start(index) for index in range(len(self._workers), worker_count)]
        self._workers = self._workers[:worker_count] + fresh
        self._failures = {w: failure for w, failure in self._failures.items() if w < worker_count}

    def _start(self, index: int) -> Worker:
        worker = Worker(index, self._scene, self._params, self.states, self.worker_states)
        if self._room:
            worker.set_exchange(np.zeros((2, self._room)))
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
