"""A worker of the Ray runtime as the server sees it: its actor, where that is, and how it fares."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from typing import Any

from ..errors import WorkerError
from ..messages import WorkerFailure
from .parcel import split
from .placement import Node
from .ray_cluster import kill, last_line, on_node, ray
from .ray_worker import FAILED, RayWorker, source_digest

LEAVE_S = 5.0  # how long all workers together may take to be gone


def start_actor(node: Node) -> Any:
    """An actor on that node. It does not come back when it dies: the server decides what is to be done."""
    return ray.remote(RayWorker).options(max_restarts=0, max_task_retries=0, **on_node(node)).remote()


class Seat:
    """Worker number `index`."""

    def __init__(self, index: int, node: Node, actor: Any) -> None:
        self.index, self.node, self.actor = index, node, actor
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

    def fail(self, kind: str, text: str) -> None:
        """This worker is given up."""
        where = f"process {self.pid} on {self.node.address}"
        self.failure = WorkerFailure(self.index, kind, f"{where}: {text}")
        kill(self.actor)

    def note_failure(self, answer: bytes) -> None:
        """Look whether the worker says that it failed."""
        _, kind, parts = split(answer)
        if kind == FAILED:
            told = json.loads(bytes(parts[0]))
            self.failure = WorkerFailure(**{**told, "body_ids": tuple(told["body_ids"])})


def end_seats(seats: Iterable[Seat]) -> None:
    """End their processes, whatever these are doing, and wait until those of this machine are gone."""
    seats = list(seats)
    for seat in seats:
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
