"""Blend weights: how much each worker's state of an overlap body counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Membership

Ids = NDArray[np.int32]


@dataclass(frozen=True)
class OverlapWeights:
    """The workers of overlap body `bodies[k]` are `worker[offset[k]:offset[k + 1]]`, ascending, and their convex
    weights are `weight` at the same places."""

    bodies: Ids
    """O, ascending."""
    offset: Ids
    worker: Ids
    weight: NDArray[np.float64]

    @staticmethod
    def none() -> OverlapWeights:
        """Nothing overlaps."""
        nobody = np.empty(0, np.int32)
        return OverlapWeights(nobody, np.zeros(1, np.int32), nobody, np.empty(0))

    @property
    def rows(self) -> Ids:
        """The body of each weight."""
        return np.repeat(self.bodies, np.diff(self.offset))

    def table(self, membership: Membership) -> NDArray[np.float64]:
        """The weight of each worker in each body, (body_count, workers); rows sum to one."""
        table = np.stack([membership.column(w) for w in range(membership.worker_count)], axis=1).astype(float)
        table[self.rows, self.worker] = self.weight
        return table
