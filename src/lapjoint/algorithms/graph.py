"""The constraint graph G: bodies, and an edge for every joint and contact between two of them (section 5.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import LapjointError

Ids = NDArray[np.int32]


class Graph:
    """Neighbours of every body, ascending: those of body b are `neighbor[start[b]:start[b + 1]]`.

    Static bodies are no vertices: they transmit no forces. Two bodies have one edge, however many constraints they
    share. `edges` are all pairs (a, b) with a < b, in ascending order: every loop over edges takes this order, so
    that results are reproducible.
    """

    def __init__(self, body_count: int, edges: ArrayLike) -> None:
        pairs = np.asarray(edges, np.int64).reshape(-1, 2)
        check_bodies(body_count, pairs)
        low, high = pairs.min(axis=1, initial=body_count), pairs.max(axis=1, initial=-1)
        keys = np.unique(low * body_count + high) if len(pairs) else np.empty(0, np.int64)
        self.body_count = body_count
        self.edges: Ids = np.stack([keys // max(body_count, 1), keys % max(body_count, 1)], axis=1).astype(np.int32)
        ends = np.concatenate([self.edges, self.edges[:, ::-1]])
        ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
        self.start: Ids = np.searchsorted(ends[:, 0], np.arange(body_count + 1)).astype(np.int32)
        self.neighbor: Ids = np.ascontiguousarray(ends[:, 1], np.int32)

    def neighbors(self, body: int) -> list[int]:
        """getAdjNodes of Algorithm 7."""
        return [int(b) for b in self.neighbor[self.start[body] : self.start[body + 1]]]

    def within(self, root: int, depth: int) -> dict[int, int]:
        """getBFSVertices: bodies within `depth` edges of `root`, itself included, with their geodesics, nearest
        first and ascending among neighbours."""
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


def check_bodies(body_count: int, pairs: NDArray[Any]) -> None:
    """Refuse pairs of bodies that do not exist, or of a body with itself."""
    if pairs.size and not (pairs.min() >= 0 and pairs.max() < body_count and (pairs[:, 0] != pairs[:, 1]).all()):
        raise LapjointError(f"an edge joins a body to itself or to one that is not among the {body_count} bodies")
