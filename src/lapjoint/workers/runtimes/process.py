"""Every worker a process of its own, on this machine.

States, commands and replies lie in shared memory; a byte on a socket signals that they are ready. Sockets, not
semaphores, because a socket also reports that the other side is gone: a worker that dies is noticed at once, and
workers whose server dies, however it dies, end by themselves; Linux ends those that are stopped. The memory has no
name, so nothing can be left behind.
"""

from __future__ import annotations

import select
import time
import weakref
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ...arrays.pages import release
from ...engines.mailboxes import abandon, is_waiting, memory_size
from ...errors import WorkerError
from ...forks import belongs_here
from ...interrupts import Uninterrupted
from ...params import Params
from ...scene import STATE_SIZE, Scene
from ...scene.shared import SceneLayout
from ...system.shortage import reason
from ...waits import LOOK_S
from ..kept import MOST_WORKERS, Kept
from ..messages import Command, NeighbourCommand, Reply, WorkerFailure, steps_of
from ..replies import reply_of
from .answer_limits import AnswerLimits
from .base import Array, Ids
from .child import Child, leave_all, mailbox_size
from .shared import SharedMemory
from .silence import Silence

ROW_BYTES = 8 * STATE_SIZE


class ProcessRuntime:
    def __init__(self, scene: Scene, params: Params, worker_count: int, mail_room: int = 0) -> None:
        self._scene, self._params = scene, params
        self._room = scene.body_count  # rows that the tables have
        states, worker_states, mail = SharedMemory(ROW_BYTES * self._room), SharedMemory(0), SharedMemory(0)
        scene_block = self._lay_out_scene()
        self.states: Array = states.array((scene.body_count, STATE_SIZE), float)
        self.border_states = self.states
        self.worker_states: Array = worker_states.array((0, STATE_SIZE), float)
        self.byte_count: int | None = None
        self.wait_cpu_s = 0.0
        kept, noted = SharedMemory(ROW_BYTES * self._room), SharedMemory(8 * MOST_WORKERS)
        self._kept = Kept(kept.array((self._room, STATE_SIZE), float), noted.array((-1,), np.int64))
        self._blocks = [states, worker_states, scene_block, mail, kept, noted]
        self._mail_room = mail_room
        self._mail: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._children: list[Child] = []
        self._limits = AnswerLimits(params.failures.hang_limit, scene.body_count)
        self._finalizer = weakref.finalize(self, _end, self._children, self._blocks)
        belongs_here(self, "a runtime", ProcessRuntime._let_go)
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

    def step(
        self, commands: Sequence[Command | None], meanwhile: Callable[[], None] | None = None
    ) -> list[Reply | WorkerFailure | None]:
        self._check_open()
        self._kept.note_sent(commands)
        try:
            asked = []
            for child, command in zip(self._children, commands, strict=True):
                if command is not None and child.failure is None:
                    if isinstance(command, NeighbourCommand):
                        command.mail_room = self._mail_room
                    child.send(command)
                    asked.append(child)
            start = time.thread_time()
            if meanwhile is not None:
                meanwhile()
            steps = steps_of(commands)
            attempts = {command.last_attempt for command in commands if isinstance(command, NeighbourCommand)}
            attempt = max(attempts, default=None)
            if attempt is not None and any(child.failure is not None for child in self._children):
                abandon(self._mail, attempt)  # nobody waits for one that is gone already
            limits_s = {child: self._limits.limit_s(child.index, steps) for child in asked if child.failure is None}
            paused_s = self._gather(limits_s, attempt)
            self.wait_cpu_s = time.thread_time() - start
            answers = [
                None if command is None else child.failure or self._reply(child, steps)
                for child, command in zip(self._children, commands, strict=True)
            ]
            self._limits.note(answers, steps, paused_s)
            return answers
        except BaseException:
            self.close()  # a step that was not finished by all cannot be gone on from
            raise

    def _reply(self, child: Child, steps: int) -> Reply | WorkerFailure:
        reply = reply_of(child.index, child.reply, self._scene, steps)
        if isinstance(reply, WorkerFailure):
            child.failure = reply
        return reply

    def _gather(self, limits_s: dict[Child, float], attempt: int | None = None) -> float:
        """Wait until all of these have answered, or have taken too long (silence.py). In an attempt at a step that they
        take together, who waits for another is not late, and if one fails, all others abandon it. Returns how long the
        whole program was paused meanwhile [s]."""
        poll = select.poll()
        waiting = {child.link.fileno(): child for child in limits_s}
        for fd in waiting:
            poll.register(fd, select.POLLIN)
        silence = Silence()
        while waiting:
            ready, late = [fd for fd, _ in poll.poll(1e3 * LOOK_S)], []
            silence.running.look()
            if not ready:  # only then is anybody late: the server itself may have been held up
                blocking = self._blocking(waiting, attempt)
                silence.note(waiting.values(), blocking.values())
                late = [fd for fd, child in blocking.items() if silence.of(child) >= limits_s[child]]
            for fd in [*ready, *late]:
                child = waiting.pop(fd)
                poll.unregister(fd)
                if fd in late:
                    child.give_up(limits_s[child])
                else:
                    child.receive()
                if attempt is not None and child.failure is not None:
                    abandon(self._mail, attempt)
                    silence.restart()  # the others have waited, and leave only now
        return silence.running.paused_s

    def _blocking(self, waiting: dict[int, Child], attempt: int | None) -> dict[int, Child]:
        """Those of them that do not wait for others themselves; all, if there are none."""
        if attempt is None:
            return waiting
        found = {fd: child for fd, child in waiting.items() if not is_waiting(self._mail, child.index)}
        return found or waiting

    # ---- workers come and go -----------------------------------------------------------------------------------------

    def states_before(self, worker: int, bodies: Ids) -> Array:
        return self._kept.before(worker, bodies, self.states)

    def go_back(self, worker: int, bodies: Ids) -> None:
        self.states[bodies] = self.states_before(worker, bodies)

    def replace(self, worker: int) -> None:
        self._check_open()
        self._children[worker].kill()
        self._limits.forget(worker)
        self._start([worker])

    def set_body_count(self, body_count: int, mail_room: int) -> None:
        self._check_open()
        self._limits.body_count = body_count
        states = self._blocks[0]
        if body_count > self._room:
            self._room = max(body_count, 2 * self._room)
            states.grow(ROW_BYTES * self._room)
            self._blocks[4].grow(ROW_BYTES * self._room)
            self._kept = Kept(self._blocks[4].array((self._room, STATE_SIZE), float), self._kept.noted, self._kept.sent)
            for child in self._children:
                child.make_room(mailbox_size(self._room))
        self.states = self.border_states = states.array((self._room, STATE_SIZE), float)[:body_count]
        self._mail_room = max(mail_room, self._mail_room)
        self._make_room(len(self._children))

    def release(self, rows: slice) -> None:
        release(self.border_states[rows], shared=True)
        release(self._kept.states[rows], shared=True)

    def _make_room(self, worker_count: int) -> None:
        """For what so many workers write besides their own bodies' states."""
        rows = self._room * worker_count
        if rows > len(self.worker_states):
            self._blocks[1].grow(max(1, ROW_BYTES * rows))
            self.worker_states = self._blocks[1].array((rows, STATE_SIZE), float)
        if self._mail_room and (size := memory_size(worker_count, self._mail_room)) > self._blocks[3].size:
            self._blocks[3].grow(size)
            self._mail = self._blocks[3].array((-1,), np.uint8)

    def set_worker_count(self, worker_count: int) -> None:
        self._check_open()
        before = len(self._children)
        self._make_room(worker_count)
        leave_all(self._children[worker_count:])
        del self._children[worker_count:]
        for index in range(min(before, worker_count), max(before, worker_count)):
            self._limits.forget(index)
        try:
            self._start(range(before, worker_count))
        except WorkerError:
            leave_all(self._children[before:])
            del self._children[before:]
            raise

    def _start(self, indices: Iterable[int]) -> None:
        """Start these workers, at their places in the list or at its end, and wait until they are there."""
        started = []
        if self._extent != self._scene.extent:
            self._blocks[2].close()
            self._blocks[2] = self._lay_out_scene()
        try:
            for index in indices:
                with Uninterrupted():  # one that is started is in the list, and ends with it
                    child = Child(index, self._params, self._blocks, mailbox_size(self._room), self._mail_room)
                    started.append(child)
                    self._children[index : index + 1] = [child]
            self._gather(dict.fromkeys(started, self._limits.start_s))
        except OSError as error:
            raise WorkerError(f"worker {index} cannot be started: {reason(error)}") from None
        except BaseException:
            self.close()
            raise
        for child in started:
            if child.failure is not None:
                raise WorkerError(child.failure.title)

    def _check_open(self) -> None:
        if not self._finalizer.alive:
            raise WorkerError("the workers have ended")

    def _let_go(self) -> None:
        """In a process that was forked off: the workers are its parent's, and leave when that hangs up."""
        self._finalizer.detach()
        for child in self._children:
            child.hang_up()
        for block in self._blocks:
            block.close()

    def close(self) -> None:
        self._finalizer()

    @property
    def process_ids(self) -> list[int]:
        return [child.pid for child in self._children]


def _end(children: list[Child], blocks: list[SharedMemory]) -> None:
    leave_all(children)
    children.clear()
    for block in blocks:
        block.close()
