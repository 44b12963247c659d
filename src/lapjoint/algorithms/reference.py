"""The readable twins, under the names `native.py` uses. `--algorithms reference` runs these."""

from __future__ import annotations

from .balance import balance
from .blend import blend
from .command_lists import command_lists
from .graph import Graph
from .near_pairs import PairFinder
from .overlap import assign_overlap
from .weights import compute_weights, depth_weights

__all__ = [
    "Graph",
    "PairFinder",
    "assign_overlap",
    "balance",
    "blend",
    "command_lists",
    "compute_weights",
    "depth_weights",
]
