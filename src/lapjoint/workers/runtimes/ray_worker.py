"""The worker's side of the Ray runtime: what an actor does. It knows nothing of Ray."""

from __future__ import annotations

import hashlib
import os
import threading
import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...engines.mailboxes import abandon, is_waiting, memory_size
from ...params import Params
from ...scene import STATE_SIZE
from ...scene.shared import read_scene
from ..codec import from_bytes, to_bytes
from ..messages import Command, NeighbourCommand, RemoteCommand, RemoteReply, StepCommand
from ..worker import Worker, failure_of
from .ray_link import Entrance, connect
from .remote import ALL, BORDER, activated_and_reset
from .shared import SharedMemory
from .watch import Tracker

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


def source_digest() -> str:
    """Of lapjoint's Python files: two of the same version may still differ."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


class RayWorker:
    """One actor. `start` makes its worker, then commands come in and replies go out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number = -1
        self._answer = b""
        self._entrance: Entrance | None = None
        self._mail: NDArray[np.uint8] = np.zeros(0, np.uint8)

    def start(self, task: dict[str, Any], scene_memory: NDArray[np.uint8]) -> dict[str, Any]:
        """Make the worker. Returns where it lives, and what went wrong if anything did."""
        home: dict[str, Any] = {"pid": os.getpid(), "digest": source_digest(), "shared": False, "error": ""}
        try:
            self._start(task, scene_memory)
            home["shared"] = self._shared
        except BaseException:
            home["error"] = traceback.format_exc()
        return home

    def _start(self, task: dict[str, Any], scene_memory: NDArray[np.uint8]) -> None:
        self._index: int = task["index"]
        scene, params = read_scene(scene_memory), Params(**task["params"])
        self._mail_room: int = task["mail_room"]
        # What server and workers share on one machine: states, states of the overlap, messages between workers within a
        # step.
        blocks = [_open_block(**block) for block in task["memory"]]
        found = [block for block in blocks if block is not None]
        self._shared = len(found) == len(blocks) > 0
        if not self._shared:
            for block in found:
                block.close()
            sizes = [*(8 * STATE_SIZE * rows for rows in task["rows"]), 0]
            found = [SharedMemory(size) for size in sizes]
        self._states_block, self._overlap_block, self._mail_block = found
        self._states = _table(self._states_block)
        self._worker_states = _table(self._overlap_block)
        self._worker = Worker(self._index, scene, params, self._states, self._worker_states)
        self._tracker = Tracker(scene, params)
        self._watched = np.empty(0, np.int32)
        self._sent_own = np.empty(0, np.int32)
        self._waiting = ThreadPoolExecutor(1)
        self._prepared: Future[None] | None = None

    # ---- other workers -----------------------------------------------------------------------------------------------

    def listen(self, worker_count: int, fresh: list[int], address: str, callers: list[int]) -> dict[int, Any]:
        """Get ready for steps with so many workers, of which some are fresh. Returns tickets for those that are to
        connect to this one."""
        self._open_mail(worker_count)
        self._worker.disconnect(fresh)
        if not callers:
            return {}
        self._entrance = Entrance(address)
        return {worker: self._entrance.ticket(worker) for worker in callers}

    def _open_mail(self, worker_count: int) -> None:
        size = memory_size(worker_count, self._mail_room)
        if size > self._mail_block.size and self._shared:
            self._mail_block.look_again()  # the server has made room
        elif size > self._mail_block.size:
            self._mail_block.grow(size)
        if len(self._mail) < self._mail_block.size:
            self._mail = self._mail_block.array((-1,), np.uint8)
            self._worker.set_mail(self._mail, self._mail_room)

    def set_mail_room(self, worker_count: int, room: int) -> None:
        """Get ready for larger messages; between two steps, for what others send lies elsewhere from then on."""
        self._mail_room = room
        self._open_mail(worker_count)
        self._worker.connect(worker_count, {})

    def connect_to(self, worker_count: int, tickets: dict[int, Any]) -> str:
        """Connect to workers that listen. Returns what went wrong if anything did."""
        for worker, ticket in tickets.items():
            try:
                link = connect(**ticket)
            except OSError as error:
                return f"worker {worker} at {ticket['at']}: {error}"
            self._worker.connect(worker_count, {worker: link.detach()})
        return ""

    def let_in(self, worker_count: int, limit_s: float) -> list[int]:
        """Take those in that have connected, and listen no longer. Returns who is missing."""
        if self._entrance is None:
            return []
        links = self._entrance.receive(limit_s)
        missing = self._entrance.missing
        self._entrance.close()
        self._entrance = None
        self._worker.connect(worker_count, {worker: link.detach() for worker, link in links.items()})
        return missing

    def abandon(self, attempt: int) -> None:
        """Leave this attempt at a step; called while another thread is in `step`, or before."""
        abandon(self._mail, attempt)

    def is_waiting(self) -> bool:
        """Whether the thread that is in `step` waits for another worker."""
        return len(self._mail) > 0 and is_waiting(self._mail, self._index)

    # ---- the server --------------------------------------------------------------------------------------------------

    def step(self, request: bytes) -> bytes:
        """Answer a request. One that comes again, because its answer was lost, is answered as before."""
        if not request:
            return b""
        message: RemoteCommand = from_bytes(request)
        with self._lock:
            if message.number != self._number:
                try:
                    answer = self._execute(message)
                except BaseException as error:
                    if isinstance(message.command, NeighbourCommand):
                        self._worker.abandon(message.command.last_attempt)
                    answer = RemoteReply(reply=failure_of(self._index, error))
                answer.number = message.number
                self._number, self._answer = message.number, to_bytes(answer)
            return self._answer

    def has_answered(self, number: int) -> bool:
        """Whether the request of this number has been answered; asked while another thread is in `step`."""
        return self._number == number

    def _execute(self, message: RemoteCommand) -> RemoteReply:
        if self._prepared is not None:
            self._prepared.result()
            self._prepared = None
        command, answer = message.command, RemoteReply()
        if command is not None:
            self._make_room(command)
            if not self._shared:
                self._take(command, message)
            answer.reply = self._worker.execute(command)
            # What the next step can do already is done while the answer is on its way.
            self._prepared = self._waiting.submit(self._worker.prepare)
        if self._shared:
            return answer
        if isinstance(command, StepCommand):
            answer.overlap = self._worker_states[command.slot]
        if message.wants == ALL:
            self._add_all_states(answer)
        elif message.wants == BORDER:
            self._add_border_states(answer)
        return answer

    def _make_room(self, command: Command) -> None:
        """There may be more workers or bodies than before, and with them more slots."""
        if isinstance(command, StepCommand) and len(command.added):
            self._worker.extend(command.added)
            self._tracker.grow()
        if self._needs_room(self._states_block, np.concatenate(activated_and_reset(command))):
            self._states = _table(self._states_block)
            self._worker.set_states(self._states)
        if isinstance(command, StepCommand) and self._needs_room(self._overlap_block, command.slot):
            self._worker_states = _table(self._overlap_block)
            self._worker.set_worker_states(self._worker_states)

    def _needs_room(self, block: SharedMemory, rows: Ids) -> bool:
        """Whether a block is too small for these rows of states; then it is not any more."""
        size = 8 * STATE_SIZE * (int(rows.max(initial=-1)) + 1)
        if size <= block.size:
            return False
        if self._shared:
            return block.look_again()  # the server has made room
        block.grow(2 * size)
        return True

    def _take(self, command: Command, message: RemoteCommand) -> None:
        """Put what came with a command where the worker reads it."""
        ids = np.concatenate(activated_and_reset(command))
        rows = np.concatenate([message.activated, message.reset])
        self._states[ids] = rows
        self._tracker.known(ids, rows)
        if message.watches_anew:
            self._watched = message.watched

    def _add_all_states(self, answer: RemoteReply) -> None:
        """Own bodies, if they are others than when they were last sent, and their states."""
        own = self._worker.own_ids
        answer.states = self._states[own]
        answer.has_bodies = not np.array_equal(own, self._sent_own)
        if answer.has_bodies:
            answer.bodies = own
        self._sent_own = own
        self._tracker.known(own, answer.states)

    def _add_border_states(self, answer: RemoteReply) -> None:
        """Which bodies have moved, and the states of those that are watched and of these."""
        self._tracker.known(self._watched, self._states[self._watched])
        own = self._worker.own_ids
        moved = self._tracker.moved(own, self._states[own])
        self._tracker.known(moved, self._states[moved])
        answer.bodies = moved
        answer.states = self._states[np.concatenate([self._watched, moved])]


def _table(block: SharedMemory) -> Array:
    """A block as rows of states."""
    return block.array((block.size // (8 * STATE_SIZE), STATE_SIZE), float)


def _open_block(pid: int, fd: int, size: int, inode: int) -> SharedMemory | None:
    """Memory of the server on this machine; None where it cannot be reached, as from within another container."""
    try:
        own = os.open(f"/proc/{pid}/fd/{fd}", os.O_RDWR)
    except OSError:
        return None
    if os.fstat(own).st_ino != inode or os.fstat(own).st_size != size:
        os.close(own)
        return None
    return SharedMemory(size, own)
