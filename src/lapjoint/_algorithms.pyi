"""Native algorithms (native/bindings/algorithms_module.cpp)."""

# Made by tools/make-stubs.

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

max_workers: int

def build_graph(
    body_count: int, joints: NDArray[np.int32], contacts: Sequence[NDArray[np.int32]]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]: ...
def assign_overlap(
    growth_depth: int,
    start: NDArray[np.int32],
    neighbor: NDArray[np.int32],
    bits: NDArray[np.uint64],
    load: NDArray[np.int64],
    rate: NDArray[np.int64],
    cost: NDArray[np.int64],
) -> None: ...
def balance(
    contacts: NDArray[np.int32],
    growth_depth: int,
    start: NDArray[np.int32],
    neighbor: NDArray[np.int32],
    bits: NDArray[np.uint64],
    load: NDArray[np.int64],
    rate: NDArray[np.int64],
    cost: NDArray[np.int64],
    mode: int,
    jointed: NDArray[np.bool_],
    linger: int,
    must_wait: NDArray[np.int32],
    since_left: NDArray[np.int32],
) -> NDArray[np.int32]: ...
def compute_weights(
    search_depth: int,
    start: NDArray[np.int32],
    neighbor: NDArray[np.int32],
    bits: NDArray[np.uint64],
    overlap: NDArray[np.int32],
    offset: NDArray[np.int32],
    worker: NDArray[np.int32],
    weight: NDArray[np.float64],
) -> None: ...
def depth_weights(
    search_depth: int,
    start: NDArray[np.int32],
    neighbor: NDArray[np.int32],
    bits: NDArray[np.uint64],
    overlap: NDArray[np.int32],
    offset: NDArray[np.int32],
    worker: NDArray[np.int32],
    weight: NDArray[np.float64],
) -> None: ...
def command_lists(
    bits: NDArray[np.uint64],
    known: NDArray[np.uint64],
    worker_count: int,
    reset: NDArray[np.int32],
    worker: NDArray[np.int32],
) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]: ...
def blend(
    offset: NDArray[np.int32],
    weight: NDArray[np.float64],
    worker_states: NDArray[np.float64],
    body: NDArray[np.int32],
    states: NDArray[np.float64],
) -> None: ...

class PairFinder:
    def __init__(
        self,
        center: NDArray[np.float64],
        half: NDArray[np.float64],
        radius: NDArray[np.float64],
        thickness: NDArray[np.float64],
        group: NDArray[np.uint32],
        mask: NDArray[np.uint32],
        ignored: NDArray[np.int64],
        margin: float,
        timestep: float,
        fall: float,
    ) -> None: ...
    def find(self, states: NDArray[np.float64], bits: NDArray[np.uint64]) -> NDArray[np.int32]: ...
    def find_again(self, changed: NDArray[np.int32], bits: NDArray[np.uint64]) -> NDArray[np.int32]: ...
    def prepare(self, bits: NDArray[np.uint64]) -> None: ...
    def keep_apart(self, gaps: NDArray[np.float64]) -> None: ...

def structure_fits(body_count: int, pairs: Sequence[tuple[int, int]], row_count: int) -> bool: ...
def solve_blocks(
    kept: Sequence[int],
    pairs: Sequence[tuple[int, int]],
    matrix: NDArray[np.float64],
    values: NDArray[np.float64],
    left: NDArray[np.float64],
    limit: int = 1099511627776,
) -> bool: ...
