"""All workers in this process, one after the other: for tests, for debugging, and for a single worker."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence

from ..errors import WorkerError
from ..messages import StepCommand, StepReply
from ..params import Params
from ..scene import STATE_SIZE, Scene
from ..worker import Worker
from .shared import SharedMemory


class InlineRuntime:
    def __init__(self, scene: Scene, params: Params, worker_count: int) -> None:
        bodies = scene.body_count
        blocks = [SharedMemory(8 * STATE_SIZE * rows) for rows in (bodies, bodies * worker_count)]
        self.states = blocks[0].array((bodies, STATE_SIZE), float)
        self.worker_states = blocks[1].array((bodies * worker_count, STATE_SIZE), float)
        for block in blocks:
            block.close()
        self.wait_cpu_s = 0.0
        self._workers = [Worker(i, scene, params, self.states, self.worker_states) for i in range(worker_count)]

    def step(self, commands: Sequence[StepCommand], meanwhile: Callable[[], None] | None = None) -> list[StepReply]:
        if not self._workers:
            raise WorkerError("the workers have ended")
        replies: list[StepReply] = []
        start = time.thread_time()
        for worker, command in zip(self._workers, commands, strict=True):
            try:
                replies.append(worker.step(command))
                worker.prepare()
            except BaseException as error:
                self.close()  # a step that was not finished by all cannot be gone on from
                if isinstance(error, Exception):
                    text = traceback.format_exc().rstrip()
                    raise WorkerError(f"worker {worker.index} failed:\n{text}") from error
                raise
        if meanwhile is not None:
            meanwhile()
        self.wait_cpu_s = time.thread_time() - start
        return replies

    def close(self) -> None:
        self._workers = []
