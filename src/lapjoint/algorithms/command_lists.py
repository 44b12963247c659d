"""What each worker has to be told before a step, out of what changed in the membership."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .membership import Membership

Ids = NDArray[np.int32]


def command_lists(
    membership: Membership, known: NDArray[np.uint64], reset: ArrayLike, worker: ArrayLike
) -> list[list[Ids]]:
    """Four lists for every worker: bodies to activate, bodies to deactivate, bodies to reset, and its places in
    `worker`, where the workers of all overlap bodies stand.

    `known` are the bits of the membership that the workers have acted on, `reset` the bodies that were blended.
    """
    before = membership.copy()
    before.bits = known
    lists: list[list[Ids]] = [[], [], [], []]
    for w in range(membership.worker_count):
        had, has = before.column(w), membership.column(w)
        rows = np.asarray(reset, np.int32)
        lists[0].append(np.flatnonzero(has & ~had).astype(np.int32))
        lists[1].append(np.flatnonzero(had & ~has).astype(np.int32))
        lists[2].append(rows[(had & has)[rows]])
        lists[3].append(np.flatnonzero(np.asarray(worker) == w).astype(np.int32))
    return lists
