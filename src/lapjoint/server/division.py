"""Division: another partition of a scene in motion, among as many workers as before or among others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Membership
from ..scene import Scene
from .partition import divide_anew

Ids = NDArray[np.int32]


class Division:
    """For one step bodies are in their old workers and in the new ones, so that these have felt a body's contacts
    before they are alone with it, and no state jumps. Workers that are not wanted any more have no body after it."""

    def __init__(self, scene: Scene, worker_count: int) -> None:
        self.worker_count = worker_count
        """How many workers are wanted."""
        self.partition: Ids | None = None
        """What was asked for."""
        self.count = worker_count
        """Workers of the last division."""
        self.bits: NDArray[np.uint64] | None = None
        """The membership after the step that bodies are in both in."""
        self._scene = scene

    def ask(self, partition: Ids) -> None:
        """Divide the scene so in the next step, or as METIS does, if it leaves a worker without bodies."""
        self.partition = partition if len(np.unique(partition)) == self.worker_count else partition[:0]

    def is_due(self, membership: Membership) -> bool:
        """Whether a partition was asked for, or other workers than there are."""
        return self.partition is not None or self._is_other_count(membership)

    def _is_other_count(self, membership: Membership) -> bool:
        between = self.bits is not None
        return self.worker_count != self.count or (not between and self.worker_count != membership.worker_count)

    def begin(
        self,
        states: NDArray[np.float64],
        contacts: Ids,
        membership: Membership,
        assign_overlap: Callable[[Membership], None],
    ) -> None:
        """Bodies go to their new workers and stay in the old ones too."""
        before = membership.bits.copy()
        self.divide(states, contacts, membership)
        assign_overlap(membership)
        self.bits = membership.bits.copy()
        membership.set_bits(membership.bits | before)

    def divide(self, states: NDArray[np.float64], contacts: Ids, membership: Membership) -> None:
        """Bodies go to their new workers at once."""
        partition = self.partition
        if partition is None or len(partition) == 0 or self._is_other_count(membership):
            partition = divide_anew(self._scene, states, contacts, membership, self.worker_count)
        self.partition, self.count = None, self.worker_count
        membership.assign(partition)

    def end(self, membership: Membership) -> int:
        """If one began in the last step, bodies leave the old workers. Returns how many workers there should be."""
        if self.bits is None:
            return membership.worker_count
        membership.set_bits(self.bits)
        self.bits = None
        return min(self.count, membership.worker_count)
