"""The native algorithms, with the names and the argument order of their Python twins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _algorithms
from ..errors import LapjointError
from ..scene import Scene
from . import graph as graph_twin
from . import near_pairs as near_twin
from .balance import Balance
from .command_lists import CommandLists
from .graph import ConstraintGraph
from .membership import Membership

Array = NDArray[np.float64]
Ids = NDArray[np.int32]
Bits = NDArray[np.uint64]
Integers = NDArray[np.int64]
Fill = Callable[[int, Ids, Ids, Bits, Ids, Ids, Ids, Array], None]
MODES = {mode: number for number, mode in enumerate(Balance)}


class Graph(graph_twin.Graph):
    """A Graph whose lists are built natively."""

    def __init__(self, body_count: int, joints: ArrayLike, contacts: Sequence[ArrayLike] = ()) -> None:
        self.body_count = body_count
        try:
            self.start, self.neighbor, self.edges, self.contacts = _algorithms.build_graph(
                body_count,
                np.ascontiguousarray(joints, np.int32),
                [np.ascontiguousarray(c, np.int32) for c in contacts],
            )
        except ValueError as error:
            raise LapjointError(str(error)) from None


def assign_overlap(growth_depth: int, graph: ConstraintGraph, membership: Membership) -> None:
    """Algorithm 2; see overlap.py."""
    membership.change_count += 1
    _algorithms.assign_overlap(growth_depth, graph.start, graph.neighbor, membership.bits, *_loads(membership))


def balance(
    contacts: ArrayLike,
    growth_depth: int,
    graph: ConstraintGraph,
    membership: Membership,
    mode: Balance = Balance.PRUNED,
    jointed: ArrayLike | None = None,
    linger: int = 0,
) -> Ids:
    """Algorithms 6 and 7; see balance.py."""
    membership.change_count += 1
    has_joint = np.zeros(graph.body_count, bool) if jointed is None else np.ascontiguousarray(jointed, bool)
    return _algorithms.balance(
        np.ascontiguousarray(contacts, np.int32).reshape(-1, 2),
        growth_depth,
        graph.start,
        graph.neighbor,
        membership.bits,
        *_loads(membership),
        MODES[Balance(mode)],
        has_joint,
        linger,
        membership.must_wait,
        membership.since_left,
    )


def _loads(membership: Membership) -> tuple[Integers, Integers, Integers]:
    return membership.load, membership.rate, membership.cost


def compute_weights(
    search_depth: int, graph: ConstraintGraph, membership: Membership, overlap: ArrayLike
) -> tuple[Ids, Ids, Array]:
    """Algorithm 5; see weights.py."""
    return _weights(_algorithms.compute_weights, search_depth, graph, membership, overlap)


def depth_weights(
    search_depth: int, graph: ConstraintGraph, membership: Membership, overlap: ArrayLike
) -> tuple[Ids, Ids, Array]:
    """Weights by depth; see weights.py."""
    return _weights(_algorithms.depth_weights, search_depth, graph, membership, overlap)


def _weights(
    fill: Fill, search_depth: int, graph: ConstraintGraph, membership: Membership, overlap: ArrayLike
) -> tuple[Ids, Ids, Array]:
    bodies = np.ascontiguousarray(overlap, np.int32)
    offset = np.zeros(len(bodies) + 1, np.int32)
    np.cumsum(np.bitwise_count(membership.bits[bodies]).sum(axis=1), out=offset[1:])
    worker, weight = np.empty(offset[-1], np.int32), np.empty(offset[-1])
    fill(search_depth, graph.start, graph.neighbor, membership.bits, bodies, offset, worker, weight)
    return offset, worker, weight


def blend(offset: ArrayLike, weight: ArrayLike, worker_states: ArrayLike, bodies: ArrayLike, states: Array) -> None:
    """Algorithm 4; see blend.py."""
    _algorithms.blend(
        np.ascontiguousarray(offset, np.int32),
        np.ascontiguousarray(weight, np.float64),
        np.ascontiguousarray(worker_states, np.float64),
        np.ascontiguousarray(bodies, np.int32),
        states,
    )


def command_lists(
    membership: Membership, known: NDArray[np.uint64], reset: ArrayLike, worker: ArrayLike
) -> CommandLists:
    """What every worker's next command lists; see command_lists.py."""
    lists = _algorithms.command_lists(
        membership.bits,
        known,
        membership.worker_count,
        np.ascontiguousarray(reset, np.int32),
        np.ascontiguousarray(worker, np.int32),
    )
    return CommandLists(*([value[a:b] for a, b in pairwise(start.tolist())] for start, value in lists))


class PairFinder(near_twin.PairFinder):
    """A PairFinder that searches over a uniform grid."""

    def __init__(self, scene: Scene, margin: float, timestep: float = 0.0) -> None:
        super().__init__(scene, margin, timestep)
        self._finder = _algorithms.PairFinder(
            self.center,
            self.half,
            self.radius,
            self.thickness,
            self.group,
            self.mask,
            self.ignored,
            margin,
            timestep,
            self.fall,
        )

    def _find(self, states: Array, membership: Membership) -> Ids:
        return self._finder.find(states, membership.bits)

    def _find_again(self, changed: Ids, membership: Membership) -> Ids:
        return self._finder.find_again(np.ascontiguousarray(changed), membership.bits)

    def _prepare(self, membership: Membership) -> None:
        self._finder.prepare(membership.bits)

    def keep_apart(self, clearances: Array) -> None:
        self._finder.keep_apart(clearances)
