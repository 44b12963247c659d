"""Algorithms 6 and 7: contacts are opportunities to even out the workers' loads."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .graph import ConstraintGraph
from .membership import Membership

Ids = NDArray[np.int32]


class Balance(StrEnum):
    """How a body leaves a worker."""

    PRINTED = "printed"
    """As the paper prints it: constraints can be left without a worker."""
    GUARDED = "guarded"
    """Only where it keeps a worker in common with every body within reach (see `may_leave`): for bodies that lost their
    last common worker, where nothing is to be pruned."""
    PRUNED = "pruned"
    """Guarded, and then every overlap body leaves its most loaded worker, if it can."""


STAY = -1
"""In place of a reach: the body may leave no worker."""


def balance(
    contacts: ArrayLike,
    growth_depth: int,
    graph: ConstraintGraph,
    membership: Membership,
    mode: Balance = Balance.PRUNED,
    jointed: ArrayLike | None = None,
    linger: int = 0,
) -> Ids:
    """Algorithm 6, LoadBalance. `contacts` are pairs of bodies, taken in the order given; `jointed` is, for every
    body, whether it has a joint to another. Returns the bodies that left a worker, ascending.

    A body that comes back to a worker within `linger` steps after it left one lingers: it leaves again only when it
    could have left in each of the last `linger` steps. So contacts that flicker do not send it to and fro. The paper's
    bodies do not linger.
    """
    mode, before = Balance(mode), membership.bits.copy()
    has_joint = np.zeros(graph.body_count, bool) if jointed is None else np.asarray(jointed, bool)
    # A body that joins a worker now stays in its old ones for this step: only what was overlap before may leave.
    in_overlap = membership.worker_counts() > 1
    reach = np.where(in_overlap, 1 + 2 * growth_depth + has_joint, STAY).tolist()
    lingerers = Lingerers(linger, membership)
    for a, b in np.asarray(contacts).reshape(-1, 2).tolist():
        workers_a, workers_b = membership.workers(a), membership.workers(b)
        if not workers_a & workers_b:  # line 4: Figure 9 (i), (ii)
            if membership.total_load(workers_a) <= membership.total_load(workers_b):  # line 5
                lingerers.activate(workers_a, b)  # line 6
                root = b
            else:
                lingerers.activate(workers_b, a)  # line 9
                root = a
            for body in graph.within(root, growth_depth):  # lines 12 to 15
                lingerers.activate(workers_a | workers_b, body)
        elif len(workers_a) > 1 and len(workers_b) == 1 and not is_bridge(a, graph, membership):
            leave(
                a, workers_a - workers_b, reach[a], graph, membership, mode, lingerers
            )  # line 17: Figure 9 (iii), (iv)
        elif len(workers_b) > 1 and len(workers_a) == 1 and not is_bridge(b, graph, membership):
            leave(b, workers_b - workers_a, reach[b], graph, membership, mode, lingerers)  # line 19
        elif workers_a == workers_b and len(workers_a) > 1:  # line 20: Figure 9 (v)
            smallest = min(workers_a, key=lambda w: (membership.load[w], w))  # line 21
            leave(a, workers_a - {smallest}, reach[a], graph, membership, mode, lingerers)
            leave(b, workers_b - {smallest}, reach[b], graph, membership, mode, lingerers)
    if mode is Balance.PRUNED:  # every overlap body leaves its most loaded worker, if it can, again and again
        for body in membership.overlap().tolist():
            while len(own := membership.workers(body)) > 1:
                fullest = min(own, key=lambda w: (-membership.load[w], w))
                leave(body, [fullest], reach[body], graph, membership, mode, lingerers)
                if membership.has(body, fullest):
                    break
    lingerers.count_steps()
    return np.flatnonzero((before & ~membership.bits).any(axis=1)).astype(np.int32)


class Lingerers:
    """Bodies that left, came back, and have to wait before they may leave again."""

    def __init__(self, linger: int, membership: Membership) -> None:
        self.linger, self.membership = linger, membership
        self.waiting: set[int] = set()

    def activate(self, workers: Iterable[int], body: int) -> None:
        """activate(W, b) of Table 1, noticing a body that comes back."""
        membership = self.membership
        if set(workers) <= membership.workers(body):
            return
        membership.activate(workers, body)
        if membership.since_left[body] < self.linger:
            membership.must_wait[body] = self.linger

    def deactivate(self, worker: int, body: int) -> None:
        self.membership.deactivate([worker], body)
        self.membership.since_left[body] = self.membership.must_wait[body] = 0

    def may_go(self, body: int) -> bool:
        """Whether a body that is free to leave has waited long enough; if not, it waits on."""
        if self.membership.must_wait[body] == 0:
            return True
        self.waiting.add(body)
        return False

    def count_steps(self) -> None:
        """A step more for those who left; a step less for those who wait, if they could have left now."""
        if self.linger == 0:
            return
        since_left, must_wait = self.membership.since_left, self.membership.must_wait
        since_left[since_left < self.linger] += 1
        for body in np.flatnonzero(must_wait).tolist():
            must_wait[body] = must_wait[body] - 1 if body in self.waiting else self.linger


def is_bridge(body: int, graph: ConstraintGraph, membership: Membership) -> bool:
    """Algorithm 7, Bridge: the body's neighbours live in more than one worker."""
    workers: set[int] = set()
    for other in graph.neighbors(body):
        workers |= membership.workers(other)
    return len(workers) > 1


def leave(
    body: int,
    workers: Iterable[int],
    reach: int,
    graph: ConstraintGraph,
    membership: Membership,
    mode: Balance,
    lingerers: Lingerers,
) -> None:
    """Take a body out of workers, the most loaded first (ties: the lowest number), as far as the mode allows."""
    for worker in sorted(workers, key=lambda w: (-membership.load[w], w)):
        if mode is Balance.PRINTED or (may_leave(body, worker, reach, graph, membership) and lingerers.may_go(body)):
            lingerers.deactivate(worker, body)


def may_leave(body: int, worker: int, reach: int, graph: ConstraintGraph, membership: Membership) -> bool:
    """Whether the body keeps sharing a worker with every body within `reach` edges if it leaves `worker`.

    With a reach of 1 these are its neighbours: every joint and contact keeps a worker (coverage). Line 12 grows the
    overlap to 1 + 2 growth depths between bodies of one worker each, and Algorithm 2 to 2 + 2; with that reach it
    stays as wide.
    """
    left = membership.workers(body) - {worker}
    if not left or reach == STAY:
        return False
    return all(membership.workers(other) & left for other in graph.within(body, reach) if other != body)
