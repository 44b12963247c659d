"""Who may touch whom, in bits: any symmetric relation between labels of colliders becomes groups and masks.

Labels with equal rows of the relation are one class. Up to as many classes as there are bits have a bit each. Beyond
that the classes whose union costs the fewest pairs share one, and these pairs are to be ignored one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

BITS = 32
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Groups:
    """Of each label: the group that it is in, and the mask of groups that it may touch."""

    group: NDArray[np.uint32]
    mask: NDArray[np.uint32]
    ignored: NDArray[np.int32]
    """(n, 2) pairs of labels, lower first or the same twice, which groups and masks let touch and the relation does
    not."""


def assign_groups(may_touch: ArrayLike, counts: ArrayLike | None = None, bits: int = BITS) -> Groups:
    """Groups and masks for a symmetric relation (n, n) between labels; `counts` is how many colliders have each, and
    decides which share a bit where there are too many classes."""
    relation = np.asarray(may_touch, bool)
    size = len(relation)
    number = np.ones(size) if counts is None else np.asarray(counts, float)
    group, mask = np.zeros(size, np.uint32), np.zeros(size, np.uint32)
    touching = np.flatnonzero(relation.any(axis=1))  # the others need no bit
    _, first, inverse = np.unique(relation[touching], axis=0, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))  # in the order in which classes are met
    of_label = order[inverse.reshape(-1)]
    class_count = len(first)
    classes = np.zeros((class_count, class_count), bool)
    if class_count:
        some = touching[np.sort(first)]
        classes = relation[np.ix_(some, some)]
    sizes: NDArray[np.float64] = np.bincount(of_label, number[touching], class_count).astype(float)
    bit = _share_bits(classes, sizes, bits)
    of_label = bit[of_label] if class_count else of_label
    # A bit's classes may touch whatever one of them may.
    used = int(bit.max(initial=-1)) + 1
    reach = np.zeros((used, used), bool)
    np.logical_or.at(reach, (bit[:, None], bit[None, :]), classes)
    powers = np.uint32(1) << np.arange(used, dtype=np.uint32)
    group[touching] = powers[of_label]
    mask[touching] = (reach @ powers.astype(np.uint64)).astype(np.uint32)[of_label]
    seen = (group[:, None] & mask[None, :]).astype(bool) & (mask[:, None] & group[None, :]).astype(bool)
    ignored = np.argwhere(np.triu(seen & ~relation)).astype(np.int32)
    return Groups(group, mask, ignored)


def _share_bits(classes: Bools, sizes: NDArray[np.float64], bits: int) -> NDArray[np.int64]:
    """The bit of each class."""
    bit = np.arange(len(classes))
    relation, number = classes.copy(), sizes.copy()
    alive = np.ones(len(classes), bool)
    while alive.sum() > bits:
        # Pairs of colliders that a union would let touch: those that only one of the two may touch, times the other.
        only = (relation * number) @ ~relation.T
        cost = only * number[None, :] + only.T * number[:, None]
        cost[~alive] = cost[:, ~alive] = np.inf
        np.fill_diagonal(cost, np.inf)
        kept, gone = np.unravel_index(np.argmin(cost), cost.shape)
        kept, gone = min(kept, gone), max(kept, gone)
        union = relation[kept] | relation[gone]
        union[kept] |= union[gone]
        relation[kept], relation[:, kept] = union, union
        relation[gone], relation[:, gone] = False, False
        number[kept] += number[gone]
        number[gone], alive[gone] = 0, False
        bit[bit == gone] = kept
    return np.unique(bit, return_inverse=True)[1].reshape(-1)
