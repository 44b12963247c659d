"""Which bodies migrate to another owner, so that the interfaces of tight coupling stay compact."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .membership import Membership

Ids = NDArray[np.int32]
Loads = NDArray[np.int64]

SLACK = 1.05
"""Migrations bring no worker's load above so many times the mean."""


def choose_migrations(owner: Ids, edges: Ids, cost: Loads, load: Loads, upward: bool) -> tuple[Ids, Ids]:
    """Bodies that should migrate, and their new owners: bodies that have more joints and contacts with another worker's
    bodies than with their own worker's, or as many while the other worker's load is less.

    `edges` are pairs of bodies. Bodies migrate to workers of higher numbers only (`upward`), or of lower ones: two
    neighbours never swap owners, and calls that alternate find all migrations in the end.
    """
    a, b = edges.T
    ends, neighbours = np.concatenate([a, b]), np.concatenate([b, a])
    border = np.zeros(len(owner), bool)
    border[ends[owner[ends] != owner[neighbours]]] = True
    at_border = border[ends]
    worker_count = len(load)
    keys = ends[at_border].astype(np.int64) * worker_count + owner[neighbours[at_border]]
    keys, counts = np.unique(keys, return_counts=True)
    body, worker = keys // worker_count, keys % worker_count
    own = np.zeros(len(owner), np.int64)
    here = worker == owner[body]
    own[body[here]] = counts[here]
    allowed = worker > owner[body] if upward else worker < owner[body]
    body, worker, counts = body[allowed], worker[allowed], counts[allowed]
    gain = counts - own[body]
    evens = load[owner[body]] - load[worker] > 2 * cost[body]
    good = (gain > 0) | ((gain == 0) & evens)
    body, worker, gain = body[good], worker[good], gain[good]
    # The best owner for each body, then the best migrations of all, as far as the new owners' loads allow.
    order = np.lexsort((worker, -gain, body))
    first = np.concatenate([[True], body[order][1:] != body[order][:-1]]) if len(order) else np.zeros(0, bool)
    body, worker, gain = (column[order][first] for column in (body, worker, gain))
    # Of those that gain nothing, no more than make two loads even: else all of them would come back in turn.
    pair = owner[body] * worker_count + worker
    order = np.lexsort((body, gain > 0, pair))
    body, worker, gain, pair = (column[order] for column in (body, worker, gain, pair))
    given = np.cumsum(np.where(gain > 0, 0, cost[body]))
    given -= np.concatenate([[0], given])[np.searchsorted(pair, pair)]
    evens = (gain > 0) | (2 * given <= load[owner[body]] - load[worker])
    body, worker, gain = (column[evens] for column in (body, worker, gain))
    order = np.lexsort((body, -gain, worker))
    body, worker = body[order], worker[order]
    given = np.cumsum(cost[body])
    begins = np.searchsorted(worker, worker)  # of each worker's run
    before = np.concatenate([[0], given])[begins]
    fits = load[worker] + given - before <= SLACK * load.mean()
    return body[fits].astype(np.int32), worker[fits].astype(np.int32)


def owners(membership: Membership) -> Ids:
    """The worker of every body, of a membership in which every body has one; -1 of those that were removed."""
    owner = np.full(membership.body_count, -1, np.int32)
    for worker in range(membership.worker_count):
        owner[membership.column(worker)] = worker
    return owner


def cut_share(owner: Ids, edges: Ids) -> float:
    """Share of joints and contacts whose bodies have different owners."""
    return float((owner[edges[:, 0]] != owner[edges[:, 1]]).mean()) if len(edges) else 0.0
