"""Repartition: another partition of a scene in motion, among as many workers as before or among others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Membership
from ..algorithms.membership import column_of
from ..arrays.state import PartState
from ..scene import Scene
from .partition import repartition
from .placed import PlacedBodies

Ids = NDArray[np.int32]


class PlannedPartition:
    """A partition for later, computed while workers step."""

    def __init__(self, make: Callable[[], Ids]) -> None:
        self._make = make
        self._partition: Ids | None = None

    @staticmethod
    def from_now(scene: Scene, states: NDArray[np.float64], contacts: Ids, membership: Membership) -> PlannedPartition:
        """One for how things stand now, whenever it is computed."""
        states, membership = states.copy(), membership.copy()
        return PlannedPartition(lambda: repartition(scene, states, contacts, membership))

    def compute(self) -> None:
        if self._partition is None:
            self._partition = self._make()

    def partition(self) -> Ids:
        """The worker of every body; computed now, if it was not before."""
        self.compute()
        assert self._partition is not None
        return self._partition


def with_newer(partition: Ids, membership: Membership) -> Ids:
    """A partition of bodies of before, and where the newer ones are."""
    newer = membership.bits[len(partition) :]
    first = np.zeros(len(newer), np.int32)
    for worker in reversed(range(membership.worker_count)):
        first[column_of(newer, worker)] = worker
    return np.concatenate([partition, first])


class Repartition:
    """Decides which partition comes next, and when a requested one is due.

    Where bodies can be in several workers, they are in their old and in their new ones for one step, so that the new
    ones have felt a body's contacts before they have it alone, and no state jumps. Workers that are not wanted any more
    have no body after it.
    """

    def __init__(self, scene: Scene, worker_count: int) -> None:
        self.wanted_count = worker_count
        """How many workers are wanted."""
        self.requested: Ids | None = None
        """The partition that was requested."""
        self.last_count = worker_count
        """Workers of the last partition."""
        self.bits: NDArray[np.uint64] | None = None
        """The membership after the step in which bodies are in their old and in their new workers."""
        self.placed = PlacedBodies()
        """Since the last partition."""
        self.blind: Ids | None = None
        """Bodies that were placed, for which a partition is due: their contacts are not known yet."""
        self._scene = scene

    def request(self, partition: Ids) -> None:
        """Use this partition in the next step, or METIS's, if it leaves a worker without bodies."""
        self.requested = partition if len(np.unique(partition)) == self.wanted_count else partition[:0]

    def request_for(self, placed: Ids) -> None:
        """Use another partition in the next step, for bodies that were placed."""
        self.request(np.empty(0, np.int32))
        self.blind = placed

    def add_bodies(self, membership: Membership) -> None:
        """The membership has more bodies: in what is to come, they stay where they are."""
        if self.requested is not None and len(self.requested):
            self.requested = with_newer(self.requested, membership)
        if self.bits is not None:
            self.bits = np.concatenate([self.bits, membership.bits[len(self.bits) :]])

    def is_due(self, membership: Membership) -> bool:
        """Whether a partition was requested, or other workers than there are."""
        return self.requested is not None or self._is_other_count(membership)

    def _is_other_count(self, membership: Membership) -> bool:
        between = self.bits is not None
        return self.wanted_count != self.last_count or (not between and self.wanted_count != membership.worker_count)

    def begin(
        self,
        states: NDArray[np.float64],
        contacts: Ids,
        membership: Membership,
        assign_overlap: Callable[[Membership], None],
    ) -> None:
        """Put bodies into their new workers and leave them in the old ones too, for one step."""
        before = membership.bits.copy()
        self.assign(states, contacts, membership)
        assign_overlap(membership)
        self.bits = membership.bits.copy()
        membership.set_bits(membership.bits | before)

    def assign(self, states: NDArray[np.float64], contacts: Ids, membership: Membership) -> None:
        """Assign every body to its new worker alone."""
        if self.blind is not None:
            self._guess_costs(self.blind, membership)
        partition = self.requested
        if partition is None or len(partition) == 0 or self._is_other_count(membership):
            partition = repartition(self._scene, states, contacts, membership, self.wanted_count)
        self.requested, self.blind, self.last_count = None, None, self.wanted_count
        self.placed.clear()
        membership.assign(partition)

    @staticmethod
    def _guess_costs(placed: Ids, membership: Membership) -> None:
        """Have bodies that were placed cost what others do in the mean, until their contacts are known."""
        cost, others = membership.cost.copy(), np.asarray(membership.bits.any(axis=1))
        others[placed] = False
        cost[placed] = cost[others if others.any() else placed].mean()
        membership.set_costs(cost, membership.rate)

    def end(self, membership: Membership) -> int:
        """Take bodies out of their old workers, if a repartition began in the last step. Returns how many workers there
        should be."""
        if self.bits is None:
            return membership.worker_count
        self.bits[~membership.bits.any(axis=1)] = 0  # bodies that were removed since
        membership.set_bits(self.bits)
        self.bits = None
        return min(self.last_count, membership.worker_count)

    def state(self) -> PartState:
        placed = self.placed.ids
        optional = {"requested": self.requested, "bits": self.bits, "placed": placed if len(placed) else None}
        arrays = {name: array for name, array in optional.items() if array is not None}
        return PartState(arrays, {"wanted_count": self.wanted_count, "last_count": self.last_count})

    def restore(self, state: PartState) -> None:
        self.requested, self.bits = state.optional("requested"), state.optional("bits")
        self.placed.restore(state.optional("placed"))
        self.wanted_count, self.last_count = state.values["wanted_count"], state.values["last_count"]
