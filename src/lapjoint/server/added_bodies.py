"""Which worker gets a body that is added while a simulation runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Membership
from ..algorithms.membership import column_of

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

SAMPLE = 4096
"""Bodies that a new one is compared with, at most, whatever the scene: the nearest of every so many."""


def nearest_workers(new: Array, states: Array, membership: Membership, spans: Sequence[slice]) -> Ids:
    """For each new body, by its state, the worker of the body that it is nearest to, of an even sample of all, which
    are in these runs. Balance follows. Without any other body, the worker of the least load."""
    count = sum(span.stop - span.start for span in spans)
    sample = np.concatenate([np.arange(span.start, span.stop, -(-count // SAMPLE)) for span in spans])
    sample = sample[(sample < membership.body_count)]
    sample = sample[membership.bits[sample].any(axis=1)]
    if membership.worker_count == 1 or len(sample) == 0:
        return np.full(len(new), int(np.argmin(membership.load)), np.int32)
    from scipy.spatial import cKDTree

    _, nearest = cKDTree(states[sample, :3]).query(new[:, :3])
    bits = membership.bits[sample[nearest]]
    workers = np.zeros(len(new), np.int32)
    for worker in reversed(range(membership.worker_count)):
        workers[column_of(bits, worker)] = worker
    return workers
