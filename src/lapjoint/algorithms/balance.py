"""Algorithms 6 and 7: contacts are opportunities to even out the workers' loads."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike

from .graph import Graph
from .membership import Membership


class Balance(str, Enum):
    """How a body leaves a worker."""

    PRINTED = "printed"
    """As the paper prints it: constraints can be left without a worker."""
    GUARDED = "guarded"
    """Only where it keeps a worker in common with every body within reach (see `may_leave`)."""
    PRUNED = "pruned"
    """Guarded, and then every overlap body leaves each worker it can, the most loaded first."""


def balance(
    contacts: ArrayLike, growth_depth: int, graph: Graph, membership: Membership, mode: Balance = Balance.PRUNED
) -> None:
    """Algorithm 6, LoadBalance. `contacts` are pairs of bodies, taken in the order given."""
    mode = Balance(mode)
    for a, b in np.asarray(contacts).reshape(-1, 2).tolist():
        workers_a, workers_b = membership.workers(a), membership.workers(b)
        if not workers_a & workers_b:  # line 4: Figure 9 (i), (ii)
            if membership.total_load(workers_a) <= membership.total_load(workers_b):  # line 5
                membership.activate(workers_a, b)  # line 6
                root = b
            else:
                membership.activate(workers_b, a)  # line 9
                root = a
            for near in graph.within(root, growth_depth):  # lines 12 to 15
                membership.activate(workers_a | workers_b, near)
        elif len(workers_a) > 1 and len(workers_b) == 1 and not is_bridge(a, graph, membership):
            leave(a, workers_a - workers_b, growth_depth, graph, membership, mode)  # line 17: Figure 9 (iii), (iv)
        elif len(workers_b) > 1 and len(workers_a) == 1 and not is_bridge(b, graph, membership):
            leave(b, workers_b - workers_a, growth_depth, graph, membership, mode)  # line 19
        elif workers_a == workers_b and len(workers_a) > 1:  # line 20: Figure 9 (v)
            smallest = min(workers_a, key=lambda w: (membership.load[w], w))  # line 21
            leave(a, workers_a - {smallest}, growth_depth, graph, membership, mode)
            leave(b, workers_b - {smallest}, growth_depth, graph, membership, mode)
    if mode is Balance.PRUNED:
        prune(growth_depth, graph, membership)


def is_bridge(body: int, graph: Graph, membership: Membership) -> bool:
    """Algorithm 7, Bridge: the body's neighbours live in more than one worker."""
    workers: set[int] = set()
    for near in graph.neighbors(body):
        workers |= membership.workers(near)
    return len(workers) > 1


def leave(
    body: int, workers: Iterable[int], growth_depth: int, graph: Graph, membership: Membership, mode: Balance
) -> None:
    """Take a body out of workers, the most loaded first (ties: the lowest number), as far as the mode allows."""
    for worker in sorted(workers, key=lambda w: (-membership.load[w], w)):
        if mode is Balance.PRINTED or may_leave(body, worker, growth_depth, graph, membership):
            membership.deactivate([worker], body)


def may_leave(body: int, worker: int, growth_depth: int, graph: Graph, membership: Membership) -> bool:
    """Whether the body keeps sharing a worker with every body within 1 + 2 growth depths if it leaves `worker`.

    At growth depth 0 these are its neighbours: every joint and contact keeps a worker (coverage). Line 12 grows the
    overlap to 1 + 2 growth depths between bodies of one worker each; this keeps it that wide.
    """
    left = membership.workers(body) - {worker}
    if not left:
        return False
    reach = graph.within(body, 1 + 2 * growth_depth)
    return all(membership.workers(near) & left for near in reach if near != body)


def prune(growth_depth: int, graph: Graph, membership: Membership) -> None:
    """Every overlap body leaves each worker it can, the most loaded first."""
    for body in membership.overlap().tolist():
        leave(body, membership.workers(body), growth_depth, graph, membership, Balance.PRUNED)
