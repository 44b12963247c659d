"""The constraint graph G: bodies, and an edge for every joint and contact between two of them (section 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import LapjointError

Ids = NDArray[np.int32]


class ConstraintGraph(Protocol):
    """The constraint graph, however it was built.

    Static bodies are no vertices: they transmit no forces. Two bodies have one edge, however many constraints they
    share.
    """

    body_count: int
    start: Ids
    neighbor: Ids
    """Neighbours of every body, ascending: those of body b are `neighbor[start[b]:start[b + 1]]`."""
    edges: Ids
    """All pairs (a, b) with a < b, in ascending order: every loop over edges takes this order, so that results are
    reproducible."""
    contacts: Ids
    """Those edges that are contacts."""

    def neighbors(self, body: int) -> list[int]:
        """getAdjNodes of Algorithm 7."""
        ...

    def within(self, root: int, depth: int) -> dict[int, int]:
        """getBFSVertices: bodies within `depth` edges of `root`, itself included, with their geodesics, nearest
        first and ascending among neighbours."""
        ...


class Graph:
    """A ConstraintGraph, built readably."""

    def __init__(self, body_count: int, joints: ArrayLike, contacts: Sequence[ArrayLike] = ()) -> None:
        """Build it from pairs of bodies. `contacts` are lists of pairs, of several workers perhaps; pairs with a static
        body (negative) are left out."""
        lists = [np.asarray(pairs, np.int64).reshape(-1, 2) for pairs in (joints, *contacts)]
        touching = np.concatenate([np.empty((0, 2), np.int64), *lists[1:]])
        touching = touching[touching[:, 1] >= 0]
        self.body_count = body_count
        self.contacts = unique_pairs(body_count, touching)
        self.edges = unique_pairs(body_count, np.concatenate([lists[0], touching]))
        ends = np.concatenate([self.edges, self.edges[:, ::-1]])
        ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
        self.start: Ids = np.searchsorted(ends[:, 0], np.arange(body_count + 1)).astype(np.int32)
        self.neighbor: Ids = np.ascontiguousarray(ends[:, 1], np.int32)

    def neighbors(self, body: int) -> list[int]:
        return [int(b) for b in self.neighbor[self.start[body] : self.start[body + 1]]]

    def within(self, root: int, depth: int) -> dict[int, int]:
        geodesic = {root: 0}
        frontier = [root]
        for distance in range(1, depth + 1):
            reached = []
            for body in frontier:
                for near in self.neighbors(body):
                    if near not in geodesic:
                        geodesic[near] = distance
                        reached.append(near)
            frontier = reached
        return geodesic


def unique_pairs(body_count: int, pairs: NDArray[np.int64]) -> Ids:
    """Each pair once, a < b, ascending. Bodies that do not exist, or a body with itself, raise an error."""
    if len(pairs) == 0:
        return np.empty((0, 2), np.int32)
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    if low.min() < 0 or high.max() >= body_count or (low == high).any():
        raise LapjointError(f"an edge joins a body to itself or to one that is not among the {body_count} bodies")
    keys = np.unique(low * body_count + high)
    return np.stack([keys // body_count, keys % body_count], axis=1).astype(np.int32)
