"""Turns: when each pair of workers sweeps the constraints between the two."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]

MOST_WORKERS = 1024


def pair_turns(owner: Ids, edges: Ids, worker_count: int) -> Ids:
    """A turn for every pair of workers, (worker_count, worker_count), such that of two pairs in one turn none has a
    worker in common. So no body is swept by two pairs at once, whichever bodies they share. Pairs with constraints
    between them, the edges of the constraint graph, are first, in as few turns as come of giving each the lowest that
    is free; all others, which may have some before turns are chosen anew, follow."""
    a, b = owner[edges].T.astype(np.int64)
    keys = np.unique((np.minimum(a, b) * MOST_WORKERS + np.maximum(a, b))[a != b])
    turns = np.full((worker_count, worker_count), -1, np.int32)
    for first, second in np.stack(np.divmod(keys, MOST_WORKERS), axis=1).tolist():
        taken = {*turns[first].tolist(), *turns[second].tolist()}
        turns[first, second] = turns[second, first] = next(t for t in range(len(taken) + 1) if t not in taken)
    others = turns < 0
    turns[others] = (round_robin(worker_count) + turns.max(initial=-1) + 1)[others]
    return turns


def round_robin(worker_count: int) -> Ids:
    """Turns of all pairs among so many, as in a tournament: in every turn each meets one other at most."""
    rounds = worker_count - 1 + worker_count % 2  # an odd number, which all but perhaps the last are counted by
    numbers = np.arange(worker_count)
    turns = (numbers[:, None] + numbers) % rounds
    if worker_count % 2 == 0:  # who would meet itself meets the last
        turns[-1, :-1] = turns[:-1, -1] = 2 * numbers[:-1] % rounds
    return turns.astype(np.int32)


def check_turns(title: str, turns: Ids) -> None:
    """Raise a ValueError that begins with the title unless they are turns of pairs of workers."""
    if turns.shape != turns.T.shape:
        raise ValueError(f"{title} is of {turns.shape}, expected as many rows as columns")
    if not np.array_equal(turns, turns.T):
        raise ValueError(f"{title} has two turns for one pair of workers")
    for worker, row in enumerate(turns):
        others = np.delete(row, worker)
        if len(np.unique(others)) < len(others):
            raise ValueError(f"{title} has two pairs of worker {worker} in one turn")
