"""A worker of the Ray runtime as the server sees it: its actor, where that is, and how it fares."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import WorkerError
from ..messages import WorkerFailure
from .parcel import split
from .placement import Node
from .ray_cluster import kill, last_line, on_node, ray
from .ray_link import CONNECT_S, Entrance
from .ray_worker import FAILED, RayWorker, source_digest
from .shared import SharedMemory

LEAVE_S = 5.0  # how long all workers together may take to be gone


def start_actor(node: Node) -> Any:
    """An actor on that node. It does not come back when it dies: the server decides what is to be done."""
    return ray.remote(RayWorker).options(max_restarts=0, max_task_retries=0, **on_node(node)).remote()


class Seat:
    """Worker number `index`."""

    def __init__(self, index: int, node: Node, actor: Any, room: int) -> None:
        self.index, self.node, self.actor = index, node, actor
        self.exchange = SharedMemory(16 * room)
        self.down, self.up = self.exchange.array((2, room), float)
        """Messages within a step, of the server and of the worker."""
        self.link: socket.socket | None = None
        """To say that these are there, or to carry them."""
        self.pid = 0
        self.is_shared = False
        """Whether the actor writes into the server's memory."""
        self.failure: WorkerFailure | None = None
        self.is_late = False
        """Whether it has not answered yet, when that was asked."""
        self._home: Any = None

    # ---- coming and going --------------------------------------------------------------------------------------------

    def begin(self, task: dict[str, Any], scene: Any) -> None:
        self._home = self.actor.start.remote(task, scene)

    def wait_until_there(self, limit_s: float) -> None:
        try:
            home = ray.get(self._home, timeout=max(0.0, limit_s))
        except ray.exceptions.RayError as error:
            raise WorkerError(
                f"worker {self.index} cannot be started on {self.node.address}: {last_line(error)}"
            ) from None
        self._home = None
        self.pid, self.is_shared = home["pid"], home["shared"]
        if home["error"]:
            raise WorkerError(f"worker {self.index} failed:\n{home['error'].rstrip()}")
        if home["digest"] != source_digest():
            raise WorkerError(
                f"node {self.node.address} has a lapjoint of the same version whose files differ from those here, "
                "expected the same"
            )

    @property
    def socket(self) -> int:
        """-1, where there is none (any more): whoever uses it finds the worker gone."""
        return -1 if self.link is None else self.link.fileno()

    def hang_up(self) -> None:
        self.exchange.close()
        if self.link is not None:
            self.link.close()

    def fail(self, kind: str, text: str) -> None:
        """This worker is given up."""
        where = f"process {self.pid} on {self.node.address}"
        self.failure = self.failure or WorkerFailure(self.index, kind, f"{where}: {text}")
        self.hang_up()
        kill(self.actor)

    def note_failure(self, answer: bytes) -> None:
        """Look whether the worker says that it failed."""
        _, kind, parts = split(answer)
        if kind == FAILED:
            told = json.loads(bytes(parts[0]))
            self.failure = WorkerFailure(**{**told, "body_ids": tuple(told["body_ids"])})


def connect_seats(seats: Sequence[Seat], address: str) -> None:
    """Give workers their sockets for steps in rounds. `address` is the server's, for those on other machines."""
    for at, group in (
        (None, [seat for seat in seats if seat.is_shared]),
        (address, [seat for seat in seats if not seat.is_shared]),
    ):
        if not group:
            continue
        entrance = Entrance(at)
        try:
            calls = [seat.actor.connect.remote(entrance.ticket(seat.index)) for seat in group]
            errors = ray.get(calls, timeout=2 * CONNECT_S)
            for seat, error in zip(group, errors, strict=True):
                if error:
                    raise WorkerError(f"worker {seat.index} on {seat.node.address} cannot reach the server at {error}")
            links = entrance.receive(CONNECT_S)
            for seat in group:
                seat.link = links.get(seat.index)
                if seat.link is None:
                    raise WorkerError(f"worker {seat.index} on {seat.node.address} did not connect to the server")
        except ray.exceptions.RayError as error:
            raise WorkerError(f"workers cannot connect to the server: {last_line(error)}") from None
        finally:
            entrance.close()


def end_seats(seats: Iterable[Seat]) -> None:
    """End their processes, whatever these are doing, and wait until those of this machine are gone."""
    seats = list(seats)
    for seat in seats:
        seat.hang_up()
        kill(seat.actor)
    end = time.monotonic() + LEAVE_S
    for seat in seats:
        while seat.node.is_server and seat.pid and is_running(seat.pid) and time.monotonic() < end:
            time.sleep(0.002)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
