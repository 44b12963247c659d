"""Every worker a process of its own, on this machine.

States, commands and replies lie in shared memory; a byte on a socket says that they are ready. Sockets, not
semaphores, because a socket also says that the other side is gone: a worker that dies is noticed at once, and workers
whose server dies, however it dies, end by themselves. The memory has no name, so nothing can be left behind.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict

from ..errors import WorkerError
from ..messages import StepCommand, StepReply, pack, unpack
from ..params import Params
from ..scene import STATE_SIZE, Scene
from ..scene_memory import SceneMemory
from .shared import DONE, FAILED, GO, SharedMemory

LEAVE_S = 1.0  # how long all workers together may take to leave before they are killed


def mailbox_size(body_count: int) -> int:
    """Room for any message of a worker. Untouched pages cost nothing."""
    return 4096 + 4096 * body_count


class ProcessRuntime:
    def __init__(self, scene: Scene, params: Params, worker_count: int) -> None:
        bodies = scene.body_count
        description = SceneMemory(scene)
        states = SharedMemory(8 * STATE_SIZE * bodies)
        worker_states = SharedMemory(8 * STATE_SIZE * bodies * worker_count)
        scene_block = SharedMemory(description.size)
        description.write(scene_block.map)
        self.states = states.array((bodies, STATE_SIZE), float)
        self.worker_states = worker_states.array((bodies * worker_count, STATE_SIZE), float)
        self.wait_cpu_s = 0.0
        self._processes: list[subprocess.Popen[bytes]] = []
        self._sockets: list[socket.socket] = []
        self._mailboxes: list[memoryview] = []
        self._finalizer = weakref.finalize(self, _end, self._processes, self._sockets)
        shared = (states, worker_states, scene_block)
        try:
            for index in range(worker_count):
                mailbox = SharedMemory(mailbox_size(bodies))
                self._mailboxes.append(memoryview(mailbox.map))
                self._start(index, params, worker_count, (*shared, mailbox))
                mailbox.close()
            self._gather()
        except BaseException:
            self.close()
            raise
        finally:
            for block in shared:
                block.close()

    def _start(self, index: int, params: Params, worker_count: int, blocks: Sequence[SharedMemory]) -> None:
        ours, theirs = socket.socketpair()
        self._sockets.append(ours)
        task = {
            "index": index,
            "worker_count": worker_count,
            "params": asdict(params),
            "socket": theirs.fileno(),
            "memory": [[block.fd, block.size] for block in blocks],
        }
        # The same modules as here, whatever was done to sys.path; one thread each, for the workers are the threads.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
        environment["OPENBLAS_NUM_THREADS"] = "1"
        with theirs:
            self._processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "lapjoint.runtimes.process_worker", json.dumps(task)],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno(), *(block.fd for block in blocks)],
                    env=environment,
                    start_new_session=True,  # Ctrl-C is for the server; it ends the workers
                )
            )

    def step(self, commands: Sequence[StepCommand], meanwhile: Callable[[], None] | None = None) -> list[StepReply]:
        if not self._sockets:
            raise WorkerError("the workers have ended")
        try:
            for mailbox, link, command in zip(self._mailboxes, self._sockets, commands, strict=True):
                pack(command, mailbox)
                with suppress(OSError):  # a worker that is gone is named by _gather
                    link.send(GO)
            start = time.thread_time()
            if meanwhile is not None:
                meanwhile()
            self._gather()
            self.wait_cpu_s = time.thread_time() - start
            return [unpack(StepReply, mailbox) for mailbox in self._mailboxes]
        except BaseException:
            self.close()  # a step that was not finished by all cannot be gone on from
            raise

    def _gather(self) -> None:
        """Wait until every worker has answered."""
        poll = select.poll()
        waiting = {link.fileno(): index for index, link in enumerate(self._sockets)}
        for fd in waiting:
            poll.register(fd, select.POLLIN)
        while waiting:
            for fd, _ in poll.poll():
                index = waiting[fd]
                try:
                    answer = self._sockets[index].recv(1)
                except OSError:
                    answer = b""
                if answer != DONE:
                    self._fail(index, answer)
                poll.unregister(fd)
                del waiting[fd]

    def _fail(self, index: int, answer: bytes) -> None:
        process = self._processes[index]
        if answer == FAILED:
            with self._sockets[index].makefile("rb") as stream:
                text = stream.read().decode(errors="replace")
            self.close()
            raise WorkerError(f"worker {index} failed:\n{text.rstrip()}")
        code = process.wait()
        self.close()
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        raise WorkerError(f"worker {index} (process {process.pid}) is gone: {how}")

    def close(self) -> None:
        self._finalizer()
        self._mailboxes.clear()

    @property
    def process_ids(self) -> list[int]:
        return [process.pid for process in self._processes]


def _end(processes: list[subprocess.Popen[bytes]], sockets: list[socket.socket]) -> None:
    """Hang up, which tells the workers to leave; kill those that have not left in time."""
    for link in sockets:
        link.close()
    sockets.clear()
    deadline = time.monotonic() + LEAVE_S
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
