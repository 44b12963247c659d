"""Placement: which node each worker runs on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import WorkerError


@dataclass(frozen=True)
class Node:
    """A machine of a cluster."""

    node_id: str
    address: str
    cpu_count: float
    is_server: bool = False
    """Whether the server runs on it."""


def place(count: int, nodes: Sequence[Node], taken: Sequence[str] = ()) -> list[Node]:
    """Nodes for `count` more workers, when those of `taken` (node ids) are there already.

    Every node gets workers in proportion to its CPUs, so that each worker has most of a machine to itself.
    """
    order = sorted(nodes, key=lambda node: not node.is_server)
    usable = [node for node in order if node.cpu_count >= 1] or order
    if not usable:
        raise WorkerError("there is no machine left to start a worker on")
    load = {node.node_id: list(taken).count(node.node_id) for node in usable}
    found = []
    for _ in range(count):
        chosen = min(usable, key=lambda node: (load[node.node_id] + 1) / max(node.cpu_count, 1))
        load[chosen.node_id] += 1
        found.append(chosen)
    return found
