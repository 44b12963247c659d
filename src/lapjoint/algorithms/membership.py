"""Membership: who simulates what now. W_b, the workers of each body, and its inverse P_i (section 4)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays.growing import grown
from ..arrays.state import PartState
from ..errors import LapjointError
from .graph import ConstraintGraph

Ids = NDArray[np.int32]
WORD = 64
LONG_AGO = 1 << 30
_COLUMNS = ("bits", "load", "cost", "rate", "since_left", "must_wait")
BYTE_WORKERS = np.arange(256)[:, None] >> np.arange(8) & 1
"""Of every value of a byte, its eight bits: which of eight workers have a body."""


class Membership:
    """One bit per body and worker, and the load of each worker. A body that was removed is in no worker.

    `bits` is (body_count, words) uint64: bit w % 64 of word w // 64 is set where the body is active in worker w.
    `load` is what balancing evens out: the number of active bodies of each worker, or, with other costs and rates than
    one, the worker's rate times the costs of its bodies.
    """

    def __init__(self, partition: ArrayLike, worker_count: int) -> None:
        first = np.asarray(partition, np.int64)
        if worker_count < 1:
            raise LapjointError(f"worker count is {worker_count}, expected at least 1")
        wrong = np.flatnonzero((first < 0) | (first >= worker_count))
        if len(wrong):
            raise LapjointError(
                f"body {wrong[0]}: partition has worker {first[wrong[0]]}, but workers are 0 to {worker_count - 1}"
            )
        self.body_count = len(first)
        self.worker_count = worker_count
        self.bits = np.zeros((len(first), -(-worker_count // WORD)), np.uint64)
        self.load = np.zeros(worker_count, np.int64)
        self.cost = np.ones(len(first), np.int64)
        """What each body costs the worker that has it."""
        self.rate = np.ones(worker_count, np.int64)
        """What a unit of cost takes each worker: more for a slower one."""
        self.since_left = np.full(len(first), LONG_AGO, np.int32)
        """How many steps ago each body left a worker."""
        self.must_wait = np.zeros(len(first), np.int32)
        """How many steps each body has to linger before it may leave a worker; see balance.Lingerers."""
        self.change_count = 0
        """Grows with everything that may change the bits: while it stays, they do."""
        self._give(np.arange(len(first)), first)

    def assign(self, partition: ArrayLike) -> None:
        """Each body to one worker, whatever it had before; not those that were removed, whatever they have there."""
        there = np.flatnonzero(self.bits.any(axis=1))
        self.change_count += 1
        self.bits[:] = 0
        self._give(there, np.asarray(partition, np.int64)[there])
        self.must_wait[:] = 0

    def _give(self, bodies: NDArray[np.intp], worker: NDArray[np.int64]) -> None:
        """Bodies that have no worker to one each; all others have none."""
        self.bits[bodies, worker // WORD] = np.uint64(1) << (worker % WORD).astype(np.uint64)
        self.load[:] = 0
        np.add.at(self.load, worker, self.cost[bodies])
        self.load *= self.rate

    def add(self, workers: ArrayLike) -> None:
        """More bodies, at the end, each in one worker. They cost what the last one does, until costs are set."""
        worker, first = np.asarray(workers, np.int64), self.body_count
        self.change_count += 1
        self.body_count += len(worker)
        cost = int(self.cost[-1]) if first else 1
        self.bits, self.cost = grown(self.bits, self.body_count), grown(self.cost, self.body_count, cost)
        self.since_left = grown(self.since_left, self.body_count, LONG_AGO)
        self.must_wait = grown(self.must_wait, self.body_count)
        self.bits[np.arange(first, self.body_count), worker // WORD] = np.uint64(1) << (worker % WORD).astype(np.uint64)
        np.add.at(self.load, worker, self.rate[worker] * cost)

    def remove(self, bodies: Ids) -> None:
        """Take bodies out of all workers, for good."""
        self.change_count += 1
        for worker in range(self.worker_count):
            here = bodies[column_of(self.bits[bodies], worker)]
            self.load[worker] -= self.rate[worker] * self.cost[here].sum()
        self.bits[bodies] = 0
        self.must_wait[bodies] = 0

    def part(self, bodies: Ids) -> Membership:
        """That of these bodies alone, by their places in the list; a copy, for who only reads."""
        twin = object.__new__(Membership)
        twin.body_count, twin.worker_count, twin.change_count = len(bodies), self.worker_count, 0
        twin.load, twin.rate = self.load, self.rate
        for name in ("bits", "cost", "since_left", "must_wait"):
            setattr(twin, name, getattr(self, name)[bodies])
        return twin

    def set_worker_count(self, worker_count: int) -> None:
        """Add workers without bodies at the end, as fast as the others are in the mean, or take away the last ones."""
        old = self.worker_count
        self.change_count += 1
        self.worker_count = worker_count
        there = self.bits.any(axis=1)
        self.bits = resized(self.bits, worker_count)
        assert (self.bits.any(axis=1) == there).all(), "a body would be in no worker"
        rate = np.full(worker_count, max(1, round(float(self.rate.mean()))), np.int64)
        rate[: min(old, worker_count)] = self.rate[:worker_count]
        self.rate = rate
        self.load = rate * self.counted_costs()

    def set_bits(self, bits: NDArray[np.uint64]) -> None:
        """Another membership altogether; the loads follow."""
        self.change_count += 1
        self.bits[:] = bits
        self.load[:] = self.rate * self.counted_costs()

    def copy(self) -> Membership:
        twin = object.__new__(Membership)
        twin.body_count, twin.worker_count, twin.change_count = self.body_count, self.worker_count, self.change_count
        twin.bits, twin.load = self.bits.copy(), self.load.copy()
        for name in ("cost", "rate", "since_left", "must_wait"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    def set_costs(self, cost: ArrayLike, rate: ArrayLike = 1) -> None:
        """Other costs of bodies and rates of workers, cut to integers; the loads follow."""
        self.cost[:], self.rate[:] = np.asarray(cost).astype(np.int64), np.asarray(rate).astype(np.int64)
        self.load[:] = self.rate * self.counted_costs()

    def counted_costs(self) -> NDArray[np.int64]:
        """Sum of the costs of the active bodies of each worker."""
        # Costs are summed by the 256 values of a byte of the bits, eight workers at a time, in integers: 0.08 ms for
        # 50,000 bodies and 8 workers, where a native loop over the bits took 0.76 ms and one mask per worker 2 ms. From
        # a hundred workers on the loop would win, 1 ms against 2; loads are counted every tenth step at most.
        octets = self.bits.astype("<u8", copy=False).view(np.uint8).T[: -(-self.worker_count // 8)]
        total = np.zeros((len(octets), 8), np.int64)
        for row, octet in zip(total, octets, strict=True):
            cost_of_value = np.zeros(256, np.int64)
            np.add.at(cost_of_value, octet.astype(np.intp), self.cost)
            row[:] = cost_of_value @ BYTE_WORKERS
        return total.reshape(-1)[: self.worker_count]

    # ---- state ---------------------------------------------------------------------------------------------------

    def state(self) -> PartState:
        return PartState({name: getattr(self, name) for name in _COLUMNS})

    def restore(self, state: PartState) -> None:
        self.change_count += 1
        for name in _COLUMNS:
            getattr(self, name)[:] = state.arrays[name]
        if not np.array_equal(self.load, self.rate * self.counted_costs()):
            raise ValueError(f"membership/load is {self.load}, counted {self.rate * self.counted_costs()}")

    def restore_without_workers(self, state: PartState) -> None:
        """Restore what does not depend on the number of workers."""
        self.set_costs(state.arrays["cost"])
        self.since_left[:] = state.arrays["since_left"]

    # ---- one body ------------------------------------------------------------------------------------------------

    def workers(self, body: int) -> set[int]:
        """W_b."""
        return {w for w in range(self.worker_count) if self.has(body, w)}

    def has(self, body: int, worker: int) -> bool:
        return bool(int(self.bits[body, worker // WORD]) >> (worker % WORD) & 1)

    def activate(self, workers: Iterable[int], body: int) -> None:
        """activate(W, b) of Table 1."""
        for worker in workers:
            if not self.has(body, worker):
                self.change_count += 1
                self.bits[body, worker // WORD] |= np.uint64(1 << (worker % WORD))
                self.load[worker] += self.rate[worker] * self.cost[body]

    def deactivate(self, workers: Iterable[int], body: int) -> None:
        """deactivate(W, b) of Table 1."""
        for worker in workers:
            if self.has(body, worker):
                self.change_count += 1
                self.bits[body, worker // WORD] &= np.uint64(~(1 << (worker % WORD)) & (2**WORD - 1))
                self.load[worker] -= self.rate[worker] * self.cost[body]

    def total_load(self, workers: Iterable[int]) -> int:
        """<W>: total load of the workers W."""
        return sum(int(self.load[w]) for w in workers)

    # ---- all bodies ----------------------------------------------------------------------------------------------

    def column(self, worker: int) -> NDArray[np.bool_]:
        """P_i as a mask over all bodies."""
        return column_of(self.bits, worker)

    def active(self, worker: int) -> Ids:
        """P_i, ascending."""
        return np.flatnonzero(self.column(worker)).astype(np.int32)

    def worker_counts(self) -> Ids:
        """|W_b| of every body."""
        return np.asarray(np.bitwise_count(self.bits).sum(axis=1), np.int32)

    def overlap(self) -> Ids:
        """O: bodies with more than one worker, ascending."""
        return np.flatnonzero(self.worker_counts() > 1).astype(np.int32)

    def uncovered(self, edges: ArrayLike) -> Ids:
        """Edges (rows of `edges`) whose bodies share no worker: their force would not exist."""
        pairs = np.asarray(edges, np.int32).reshape(-1, 2)
        shared = self.bits[pairs[:, 0]] & self.bits[pairs[:, 1]]
        return pairs[~shared.any(axis=1)]

    def validate(self, graph: ConstraintGraph, alive: NDArray[np.bool_] | None = None) -> None:
        """Raise AssertionError unless every body has a worker, or every one that is there and no other, every edge is
        covered and the loads are right."""
        wrong = np.flatnonzero(self.bits.any(axis=1) != (True if alive is None else alive))
        how = "was removed, but has a worker" if self.bits[wrong].any() else "is active in no worker"
        assert len(wrong) == 0, f"body {wrong[0]} {how}"
        open_edges = self.uncovered(graph.edges)
        assert len(open_edges) == 0, f"bodies {open_edges[0]} touch or are jointed, but share no worker"
        load = self.rate * self.counted_costs()
        assert np.array_equal(load, self.load), f"loads are {self.load}, counted {load}"


def column_of(bits: NDArray[np.uint64], worker: int) -> NDArray[np.bool_]:
    """P_i as a mask over all bodies, in the bits of a membership; nobody, where these know no such worker."""
    if worker >= WORD * bits.shape[1]:
        return np.zeros(len(bits), bool)
    return np.asarray(bits[:, worker // WORD] >> np.uint64(worker % WORD) & np.uint64(1), bool)


def resized(bits: NDArray[np.uint64], worker_count: int) -> NDArray[np.uint64]:
    """Bits for another number of workers. Those of workers beyond it are gone."""
    words = -(-worker_count // WORD)
    kept = min(words, bits.shape[1])
    other = np.zeros((len(bits), words), np.uint64)
    other[:, :kept] = bits[:, :kept]
    if worker_count % WORD:
        other[:, -1] &= np.uint64((1 << (worker_count % WORD)) - 1)
    return other


def validate_weights(offset: ArrayLike, weight: ArrayLike) -> None:
    """Raise AssertionError unless each overlap body's weights are convex (Eq. 15)."""
    starts, values = np.asarray(offset), np.asarray(weight)
    assert (values >= 0).all(), "a weight is negative"
    if len(starts) > 1:
        sums = np.add.reduceat(values, starts[:-1])
        assert np.allclose(sums, 1.0, rtol=0, atol=1e-12), f"weights sum to {sums[np.abs(sums - 1).argmax()]}"


def shared_before(worker: int, bits: NDArray[np.uint64], pairs: ArrayLike) -> NDArray[np.bool_]:
    """Of pairs that a worker has: which a worker of a lower number has too. The second body of a pair may be static
    (negative): in every worker."""
    a, b = np.asarray(pairs, np.int32).reshape(-1, 2).T
    if worker >= WORD * bits.shape[1]:
        worker = WORD * bits.shape[1] - 1  # beyond the last one
    words = worker // WORD + 1
    common = bits[a, :words] & np.where((b >= 0)[:, None], bits[b, :words], ~np.uint64(0))
    common[:, -1] &= np.uint64((1 << (worker % WORD)) - 1)
    return np.asarray(common.any(axis=1))
