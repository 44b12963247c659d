"""A worker of the Ray runtime as the server sees it: its actor, where that is, and how it fares."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import WorkerError
from ..codec import from_bytes
from ..messages import RemoteReply, WorkerFailure
from .placement import Node
from .ray_cluster import kill, last_line, on_node, ray
from .ray_link import CONNECT_S, Entrance
from .ray_remains import is_running
from .ray_worker import RayWorker, source_digest
from .shared import SharedMemory

LEAVE_S = 5.0  # how long all workers together may take to be gone


def start_actor(node: Node) -> Any:
    """An actor on that node. It does not come back when it dies: the server decides what to do."""
    return ray.remote(RayWorker).options(max_restarts=0, max_task_retries=0, **on_node(node)).remote()


class RayActor:
    """Worker number `index`."""

    def __init__(self, index: int, node: Node, handle: Any, room: int) -> None:
        self.index, self.node, self.handle = index, node, handle
        self.exchange = SharedMemory(16 * room)
        self.down, self.up = self.exchange.array((2, room), float)
        """Messages within a step, of the server and of the worker."""
        self.link: socket.socket | None = None
        """Signals that these are there, or carries them."""
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
        kill(self.handle)

    def note_failure(self, answer: bytes) -> None:
        """Take note of it if the worker answers that it failed."""
        message: RemoteReply = from_bytes(answer)
        if isinstance(message.reply, WorkerFailure):
            self.failure = message.reply


def connect_actors(actors: Sequence[RayActor], address: str) -> None:
    """Give workers their sockets for steps in rounds. `address` is the server's, for those on other machines."""
    for at, group in (
        (None, [actor for actor in actors if actor.is_shared]),
        (address, [actor for actor in actors if not actor.is_shared]),
    ):
        if not group:
            continue
        entrance = Entrance(at)
        try:
            calls = [actor.handle.connect.remote(entrance.ticket(actor.index)) for actor in group]
            errors = ray.get(calls, timeout=2 * CONNECT_S)
            for actor, error in zip(group, errors, strict=True):
                if error:
                    raise WorkerError(
                        f"worker {actor.index} on {actor.node.address} cannot reach the server at {error}"
                    )
            links = entrance.receive(CONNECT_S)
            for actor in group:
                actor.link = links.get(actor.index)
                if actor.link is None:
                    raise WorkerError(f"worker {actor.index} on {actor.node.address} did not connect to the server")
        except ray.exceptions.RayError as error:
            raise WorkerError(f"workers cannot connect to the server: {last_line(error)}") from None
        finally:
            entrance.close()


def end_actors(actors: Iterable[RayActor]) -> None:
    """End their processes, whatever these are doing, and wait until those of this machine are gone."""
    actors = list(actors)
    for actor in actors:
        actor.hang_up()
        kill(actor.handle)
    end = time.monotonic() + LEAVE_S
    for actor in actors:
        while actor.node.is_server and actor.pid and is_running(actor.pid) and time.monotonic() < end:
            time.sleep(0.002)
