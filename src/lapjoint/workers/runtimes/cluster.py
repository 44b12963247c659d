"""What a cluster is to the server: machines, and somebody who starts hosts on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...errors import WorkerError
from .entrance import Ticket
from .placement import Node
from .remote_host import HostProcess

LOCALHOST = "127.0.0.1"
CHECK_S = 60.0
"""How long a machine may take to report which lapjoint it has [s]."""


class NodeError(WorkerError):
    """A node that counts as alive does not answer."""

    def __init__(self, node: Node, why: str) -> None:
        super().__init__(f"node {node.address} does not answer: {why}")
        self.node = node


class Cluster(Protocol):
    """Machines, and who starts hosts on them."""

    def nodes(self) -> list[Node]:
        """Machines that are there."""
        ...

    def check(self, nodes: Sequence[Node], limit_s: float) -> None:
        """Every machine has the lapjoint that runs here, or it is an error that names it."""
        ...

    def start_host(self, node: Node, ticket: Ticket) -> HostProcess:
        """A process on that machine that calls `host.serve` with the ticket."""
        ...

    def leave(self) -> None:
        """It is not needed any more."""
        ...
