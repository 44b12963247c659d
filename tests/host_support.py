"""Machines without a cluster: hosts in threads of this process, whose workers are processes as anywhere."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from lapjoint import Params, Scene
from lapjoint.workers.runtimes.entrance import Ticket
from lapjoint.workers.runtimes.host import serve
from lapjoint.workers.runtimes.hosts import HostsRuntime
from lapjoint.workers.runtimes.placement import Node
from lapjoint.workers.runtimes.remote_host import HostProcess

LOCALHOST = "127.0.0.1"


class ThreadHost:
    """It is killed by its link, which the server closes before."""

    def __init__(self, ticket: Ticket) -> None:
        self._thread = threading.Thread(target=serve, args=(ticket,), daemon=True)
        self._thread.start()

    def how_it_ended(self, limit_s: float) -> str | None:
        self._thread.join(limit_s)
        return None if self._thread.is_alive() else "its host has left"

    def kill(self) -> None:
        self._thread.join()


class Machines:
    """So many, with a number of CPUs each; the first is the server's, unless there is none that shares its memory."""

    def __init__(self, cpu_counts: Sequence[int], is_shared: bool = True) -> None:
        self._nodes = [
            Node(str(number), LOCALHOST, count, is_shared and number == 0) for number, count in enumerate(cpu_counts)
        ]

    def nodes(self) -> list[Node]:
        return list(self._nodes)

    def check(self, nodes: Sequence[Node], limit_s: float) -> None:
        pass

    def start_host(self, node: Node, ticket: Ticket) -> HostProcess:
        return ThreadHost(ticket)

    def leave(self) -> None:
        pass


class MachinesRuntime(HostsRuntime):
    """Workers on machines: `machines` has how many CPUs each has."""

    cpu_counts: tuple[int, ...] = (2, 2)
    is_shared = True

    def __init__(self, scene: Scene, params: Params, worker_count: int, mail_room: int = 0) -> None:
        super().__init__(scene, params, worker_count, mail_room, Machines(self.cpu_counts, self.is_shared))
