"""What the readable algorithms and the native ones both offer, as types. mypy checks every call of an algorithm by
these, and that both modules satisfy them (__init__.py); tests/algorithms/test_protocol.py compares the signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..scene import Scene
from .balance import Balance
from .command_lists import CommandLists
from .graph import ConstraintGraph
from .membership import Membership
from .near_pairs import NearPairFinder

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


class Algorithms(Protocol):
    """A module with the paper's algorithms: `reference`, which is readable, or `native`."""

    def Graph(self, body_count: int, joints: ArrayLike, contacts: Sequence[ArrayLike] = ()) -> ConstraintGraph:
        """Builds the constraint graph; see graph.py."""
        ...

    def PairFinder(self, scene: Scene, margin: float, timestep: float = 0.0) -> NearPairFinder:
        """Prepares the search for pairs that no worker sees; see near_pairs.py."""
        ...

    def assign_overlap(self, growth_depth: int, graph: ConstraintGraph, membership: Membership) -> None:
        """Algorithms 2 and 3; see overlap.py."""
        ...

    def balance(
        self,
        contacts: ArrayLike,
        growth_depth: int,
        graph: ConstraintGraph,
        membership: Membership,
        mode: Balance = Balance.PRUNED,
        jointed: ArrayLike | None = None,
        linger: int = 0,
    ) -> Ids:
        """Algorithms 6 and 7; see balance.py."""
        ...

    def blend(
        self, offset: ArrayLike, weight: ArrayLike, worker_states: ArrayLike, bodies: ArrayLike, states: Array
    ) -> None:
        """Algorithm 4; see blend.py."""
        ...

    def command_lists(
        self, membership: Membership, known: NDArray[np.uint64], reset: ArrayLike, worker: ArrayLike
    ) -> CommandLists:
        """What every worker's next command lists; see command_lists.py."""
        ...

    def compute_weights(
        self, search_depth: int, graph: ConstraintGraph, membership: Membership, overlap: ArrayLike
    ) -> tuple[Ids, Ids, Array]:
        """Algorithm 5; see weights.py."""
        ...

    def depth_weights(
        self, search_depth: int, graph: ConstraintGraph, membership: Membership, overlap: ArrayLike
    ) -> tuple[Ids, Ids, Array]:
        """Weights by depth in place of Algorithm 5; see weights.py."""
        ...
