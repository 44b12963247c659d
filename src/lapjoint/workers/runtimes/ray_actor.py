"""A worker of the Ray runtime as the server sees it: its actor, where that is, and how it fares."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from ...errors import WorkerError
from ..codec import from_bytes
from ..messages import RemoteReply, WorkerFailure
from .placement import Node
from .ray_cluster import kill, last_line, on_node, ray
from .ray_remains import is_running
from .ray_worker import RayWorker, source_digest

LEAVE_S = 5.0  # how long all workers together may take to be gone


def start_actor(node: Node) -> Any:
    """An actor on that node. It does not come back when it dies: the server decides what to do."""
    return ray.remote(RayWorker).options(max_restarts=0, max_task_retries=0, **on_node(node)).remote()


class RayActor:
    """Worker number `index`."""

    def __init__(self, index: int, node: Node, handle: Any) -> None:
        self.index, self.node, self.handle = index, node, handle
        self.pid = 0
        self.is_shared = False
        """Whether the actor writes into the server's memory."""
        self.failure: WorkerFailure | None = None
        self.is_late = False
        """Whether it has not answered yet, when that was asked."""
        self._home: Any = None

    # ---- coming and going --------------------------------------------------------------------------------------------

    def begin(self, task: dict[str, Any], scene: Any) -> None:
        self._home = self.handle.start.remote(task, scene)

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
        self.failure = self.failure or WorkerFailure(self.index, kind, f"{where}: {text}")
        kill(self.handle)

    def note_failure(self, answer: bytes) -> None:
        """Take note of it if the worker answers that it failed."""
        message: RemoteReply = from_bytes(answer)
        if isinstance(message.reply, WorkerFailure):
            self.failure = message.reply


def end_actors(actors: Iterable[RayActor]) -> None:
    """End their processes, whatever these are doing, and wait until those of this machine are gone."""
    actors = list(actors)
    for actor in actors:
        kill(actor.handle)
    end = time.monotonic() + LEAVE_S
    for actor in actors:
        while actor.node.is_server and actor.pid and is_running(actor.pid) and time.monotonic() < end:
            time.sleep(0.002)
