"""The worker's side of the Ray runtime: what an actor does. It knows nothing of Ray."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...engines.exchange import exchange_room
from ...errors import WorkerError
from ...params import Params
from ...scene import STATE_SIZE
from ...scene.shared import read_scene
from ..messages import StepCommand
from ..worker import Worker, failure_of
from .parcel import (
    ids_from_bytes,
    ids_to_bytes,
    join,
    message_from_bytes,
    message_to_bytes,
    rows_from_bytes,
    rows_to_bytes,
    split,
)
from .ray_link import FAILED as LINK_FAILED
from .ray_link import connect
from .shared import SharedMemory
from .watch import Tracker

Array = NDArray[np.float64]

# What a parcel asks for: a step; and states of watched and moved bodies; and those of all own bodies; only these.
STEP, STEP_AND_BORDER, STEP_AND_STATES, STATES = range(4)
# What a parcel answers.
DONE, FAILED = range(2)


def source_digest() -> str:
    """Of lapjoint's Python files: two of the same version may still differ."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


class RayWorker:
    """One actor. `start` makes its worker, then parcels come in and go out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number = -1
        self._answer = b""
        self._link: socket.socket | None = None

    def start(self, task: dict[str, Any], scene_memory: NDArray[np.uint8]) -> dict[str, Any]:
        """Make the worker. Says where it lives, and what went wrong if anything did."""
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
        room = exchange_room(scene.body_count) if params.coupling == "tight" else 0
        # What server and worker share on one machine: states, states of the overlap, messages within a step.
        blocks = [_open_block(**block) for block in task["memory"]]
        found = [block for block in blocks if block is not None]
        self._shared = len(found) == len(blocks) > 0
        if not self._shared:
            for block in found:
                block.close()
            found = [*(SharedMemory(8 * STATE_SIZE * rows) for rows in task["rows"]), SharedMemory(16 * room)]
        states, self._overlap_block, exchange = found
        self._states = _table(states)
        self._worker_states = _table(self._overlap_block)
        self._worker = Worker(self._index, scene, params, self._states, self._worker_states)
        self._worker.set_exchange(exchange.array((2, room), float))
        states.close()
        exchange.close()
        self._tracker = Tracker(scene, params)
        self._watched = np.empty(0, np.int32)
        self._told_own = np.empty(0, np.int32)
        self._waiting = ThreadPoolExecutor(1)
        self._prepared: Future[None] | None = None

    def connect(self, ticket: dict[str, Any]) -> str:
        """Get the socket to the server for steps in rounds. Says what went wrong if anything did."""
        try:
            self._link = connect(**ticket)
        except OSError as error:
            return f"{ticket['at']}: {error}"
        return ""

    def step(self, parcel: bytes) -> bytes:
        """Answer a parcel. One that comes again, because its answer was lost, is answered as before."""
        if not parcel:
            return b""
        number, kind, parts = split(parcel)
        with self._lock:
            if number != self._number:
                try:
                    answer = join(number, DONE, *self._do(kind, parts))
                except BaseException as error:
                    self._say_that_it_failed()
                    failure = json.dumps(asdict(failure_of(self._index, error)))
                    answer = join(number, FAILED, failure.encode())
                self._number, self._answer = number, answer
            return self._answer

    def has_answered(self, number: int) -> bool:
        """Whether the parcel of this number has been answered; asked while another thread is in `step`."""
        return self._number == number

    def _do(self, kind: int, parts: list[memoryview]) -> list[bytes]:
        if self._prepared is not None:
            self._prepared.result()
            self._prepared = None
        if kind == STATES:
            return [b"", b"", *self._all_rows()]
        command = message_from_bytes(StepCommand, parts[0])
        self._make_room(command)
        if not self._shared:
            self._take(command, parts)
        reply = message_to_bytes(self._worker.step(command, self._serve))
        # What the next step can do already is done while the answer is on its way.
        self._prepared = self._waiting.submit(self._worker.prepare)
        if self._shared:
            return [reply]
        overlap = rows_to_bytes(self._worker_states[command.slot])
        rows = {STEP_AND_STATES: self._all_rows, STEP_AND_BORDER: self._border_rows}.get(kind, list)
        return [reply, overlap, *rows()]

    def _serve(self) -> bool:
        """The rounds of a step."""
        if self._link is None:
            raise WorkerError(f"worker {self._index} has no connection to the server for steps in rounds")
        return self._worker.serve_by_socket(self._link.fileno(), carries=not self._shared)

    def _say_that_it_failed(self) -> None:
        """To a server that may be waiting for the answer of a round."""
        if self._link is not None:
            with suppress(OSError):
                self._link.send(LINK_FAILED, socket.MSG_DONTWAIT)

    def _make_room(self, command: StepCommand) -> None:
        """There may be more workers than before, and with them more slots."""
        if len(command.slot) == 0 or command.slot.max() < len(self._worker_states):
            return
        if self._shared:
            self._overlap_block.look_again()  # the server has made room
        else:
            self._overlap_block.grow(2 * 8 * STATE_SIZE * (int(command.slot.max()) + 1))
        self._worker_states = _table(self._overlap_block)
        self._worker.set_worker_states(self._worker_states)

    def _take(self, command: StepCommand, parts: list[memoryview]) -> None:
        """Put what came with a command where the worker looks for it."""
        ids = np.concatenate([command.activate, command.reset])
        rows = np.concatenate([rows_from_bytes(part, STATE_SIZE) for part in parts[1:3]])
        self._states[ids] = rows
        self._tracker.known(ids, rows)
        if len(parts[3]):
            self._watched = ids_from_bytes(parts[3][4:])

    def _all_rows(self) -> list[bytes]:
        """Own bodies, if they are others than when they were last told, and their states."""
        own = self._worker.own_ids
        rows = self._states[own]
        same = np.array_equal(own, self._told_own)
        self._told_own = own
        self._tracker.known(own, rows)
        return [b"" if same else ids_to_bytes(own), rows_to_bytes(rows)]

    def _border_rows(self) -> list[bytes]:
        """Which bodies have moved, and the states of those that are watched and of these."""
        self._tracker.known(self._watched, self._states[self._watched])
        own = self._worker.own_ids
        moved = self._tracker.moved(own, self._states[own])
        self._tracker.known(moved, self._states[moved])
        told = np.concatenate([self._watched, moved])
        return [ids_to_bytes(moved), rows_to_bytes(self._states[told])]


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
