"""Bodies that were put elsewhere between two steps, or added: where they are many, the partition may not suit them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Membership

Array = NDArray[np.float64]
Bits = NDArray[np.uint64]
Ids = NDArray[np.int32]

MUCH, FEWEST = 0.05, 20
"""More than this share of the bodies, and more than so many, are many: a repartition costs about a step."""
NEAREST = 8
"""A body is astray that shares a worker with less than half of so many bodies nearest to it."""
SAMPLE, SAMPLE_OF_WORKER = 4096, 64
"""Bodies that are looked at, at most, or so many for each worker if that is more: an even sample of all."""
CLOSE = 1.1
"""Bodies that are farther apart than so many times the sum of their bounding radii do not touch."""
NOBODY = np.empty(0, np.int32)


class PlacedBodies:
    """What was placed since somebody last looked whether the partition suits it."""

    def __init__(self) -> None:
        self._lists: list[Ids] = []
        self._count = 0  # of all lists: a body may be in several

    def add(self, bodies: Ids) -> None:
        """These bodies are where they were not before."""
        if len(bodies):
            self._lists.append(bodies)
            self._count += len(bodies)

    @property
    def ids(self) -> Ids:
        """The bodies, ascending."""
        if len(self._lists) != 1:
            self._set(np.concatenate([NOBODY, *self._lists]))
        return self._lists[0]

    def clear(self) -> None:
        self._set(NOBODY)

    def _set(self, bodies: Ids) -> None:
        self._lists = [np.unique(bodies).astype(np.int32)]
        self._count = len(self._lists[0])

    def restore(self, bodies: Ids | None) -> None:
        self._set(NOBODY if bodies is None else bodies)

    def take_many(self, living_count: int) -> Ids | None:
        """All of them, of which nobody has to know any more, if they are many; else None."""
        if self._count <= _many(living_count) or len(self.ids) <= _many(living_count):
            return None
        found = self.ids
        self.clear()
        return found


def suits(
    placed: Ids,
    states: Array,
    membership: Membership,
    spans: Sequence[slice],
    is_new: NDArray[np.bool_],
    are_uneven: Callable[[], bool],
) -> bool:
    """Whether a membership suits bodies that were placed: not many are astray, nor are many new and loads uneven. All
    bodies there are lie in the spans; `is_new` says which of those that were placed no worker has had yet."""
    living = membership.bits[placed].any(axis=1)
    placed, is_new = placed[living], is_new[living]
    body_count = sum(int(membership.bits[span].any(axis=1).sum()) for span in spans)
    if is_new.sum() > _many(body_count) and are_uneven():
        return False
    if len(placed) <= _many(body_count):
        return True
    return bool(_astray_share(placed, states, membership, spans) * len(placed) <= _many(body_count))


def _many(body_count: int) -> float:
    return max(MUCH * body_count, FEWEST)


def _astray_share(placed: Ids, states: Array, membership: Membership, spans: Sequence[slice]) -> float:
    from scipy.spatial import cKDTree

    most = max(SAMPLE, SAMPLE_OF_WORKER * membership.worker_count)
    placed = placed[:: -(-len(placed) // most)]
    count = sum(span.stop - span.start for span in spans)
    sample = np.concatenate([np.arange(span.start, span.stop, -(-count // most)) for span in spans])
    sample = sample[membership.bits[sample].any(axis=1)]
    others = min(NEAREST + 1, len(sample))  # a body may be its own nearest
    _, nearest = cKDTree(states[sample, :3]).query(states[placed, :3], k=[*range(1, others + 1)])
    near = sample[nearest]
    is_other = near != placed[:, None]
    shares = (membership.bits[near] & membership.bits[placed][:, None]).any(axis=2) & is_other
    return float((2 * shares.sum(axis=1) < is_other.sum(axis=1)).mean())


def may_touch(pairs: Ids, states: Array, radii: Array) -> NDArray[np.bool_]:
    """Of contacts as they were, those that there may still be: with static bodies, and of bodies that are not apart."""
    a, b = pairs.T
    apart = np.linalg.norm(states[a, :3] - states[np.maximum(b, 0), :3], axis=1)
    return np.asarray((b < 0) | (apart <= CLOSE * (radii[a] + radii[np.maximum(b, 0)])))
