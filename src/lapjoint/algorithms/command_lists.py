"""Activations and other instructions for every worker's next step, from what changed in the membership."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .membership import Membership

Ids = NDArray[np.int32]


class CommandLists(NamedTuple):
    """Instructions for a step; each field has one list per worker."""

    activate: list[Ids]
    """Bodies that the worker has now and had not, ascending."""
    deactivate: list[Ids]
    """Bodies that it had and has no more, ascending."""
    reset: list[Ids]
    """Bodies that it keeps and that were blended, in the order given."""
    slots: list[Ids]
    """Places of its own states of overlap bodies among those of all workers."""


def command_lists(
    membership: Membership, known: NDArray[np.uint64], reset: ArrayLike, worker: ArrayLike
) -> CommandLists:
    """The instructions that bring workers from the membership bits `known`, which they have acted on, to `membership`.

    `reset` are the bodies that were blended, `worker` the workers of all overlap bodies, as compute_weights returns
    them.
    """
    before = membership.copy()
    before.bits = known
    lists = CommandLists([], [], [], [])
    for w in range(membership.worker_count):
        had, has = before.column(w), membership.column(w)
        rows = np.asarray(reset, np.int32)
        lists.activate.append(np.flatnonzero(has & ~had).astype(np.int32))
        lists.deactivate.append(np.flatnonzero(had & ~has).astype(np.int32))
        lists.reset.append(rows[(had & has)[rows]])
        lists.slots.append(np.flatnonzero(np.asarray(worker) == w).astype(np.int32))
    return lists
