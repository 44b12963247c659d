"""Workers on the machines of a Ray cluster. Ray knows the machines, starts a host on each that is used, ends it, and
reports that one has died; what is sent to workers, and by them, goes through links of our own (hosts.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...params import Params
from ...scene import Scene
from .entrance import Ticket
from .host import serve
from .hosts import HostsRuntime
from .placement import Node
from .ray_cluster import check_versions, find_nodes, join_cluster, kill, last_line, leave_cluster, on_node, ray
from .remote_host import HostProcess


class RayRuntime(HostsRuntime):
    def __init__(self, scene: Scene, params: Params, worker_count: int, mail_room: int = 0) -> None:
        join_cluster(params.address)
        super().__init__(scene, params, worker_count, mail_room, RayCluster())


class RayCluster:
    def nodes(self) -> list[Node]:
        return find_nodes()

    def check(self, nodes: Sequence[Node], limit_s: float) -> None:
        check_versions(nodes, limit_s)

    def start_host(self, node: Node, ticket: Ticket) -> HostProcess:
        return RayHostProcess(node, ticket)

    def leave(self) -> None:
        leave_cluster()


class RayHost:
    """What the actor of a machine does; it knows nothing of Ray."""

    def serve(self, ticket: Ticket) -> None:
        serve(ticket)


class RayHostProcess:
    """An actor on that node. It does not come back when it dies: the server decides what to do."""

    def __init__(self, node: Node, ticket: Ticket) -> None:
        options = {"max_restarts": 0, "max_task_retries": 0, **on_node(node)}
        self._handle: Any = ray.remote(RayHost).options(**options).remote()
        self._end: Any = self._handle.serve.remote(ticket)  # known when the actor has ended

    def how_it_ended(self, limit_s: float) -> str | None:
        try:
            ray.get(self._end, timeout=limit_s)
        except ray.exceptions.GetTimeoutError:
            return None
        except ray.exceptions.RayError as error:
            return last_line(error)
        return "its host has left"

    def kill(self) -> None:
        if ray.is_initialized():
            kill(self._handle)
