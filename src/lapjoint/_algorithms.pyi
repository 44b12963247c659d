"""Native algorithms (native/bindings/algorithms_module.cpp)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Array = NDArray[np.float64]
Bits = NDArray[np.uint64]
Integers = NDArray[np.int64]

max_workers: int

def build_graph(body_count: int, joints: Ids, contacts: list[Ids]) -> tuple[Ids, Ids, Ids, Ids]: ...
def assign_overlap(
    growth_depth: int, start: Ids, neighbor: Ids, bits: Bits, load: Integers, rate: Integers, cost: Integers
) -> None: ...
def balance(
    contacts: Ids,
    growth_depth: int,
    start: Ids,
    neighbor: Ids,
    bits: Bits,
    load: Integers,
    rate: Integers,
    cost: Integers,
    mode: int,
    jointed: NDArray[np.bool_],
    linger: int,
    must_wait: Ids,
    since_left: Ids,
) -> Ids: ...
def compute_weights(
    search_depth: int, start: Ids, neighbor: Ids, bits: Bits, overlap: Ids, offset: Ids, worker: Ids, weight: Array
) -> None: ...
def depth_weights(
    search_depth: int, start: Ids, neighbor: Ids, bits: Bits, overlap: Ids, offset: Ids, worker: Ids, weight: Array
) -> None: ...
def command_lists(bits: Bits, known: Bits, worker_count: int, reset: Ids, worker: Ids) -> list[tuple[Ids, Ids]]: ...
def blend(offset: Ids, weight: Array, worker_states: Array, body: Ids, states: Array) -> None: ...

class PairFinder:
    def __init__(
        self,
        center: Array,
        half: Array,
        radius: Array,
        thickness: Array,
        group: NDArray[np.uint32],
        mask: NDArray[np.uint32],
        ignored: NDArray[np.int64],
        margin: float,
        timestep: float,
        fall: float,
    ) -> None: ...
    def find(self, states: Array, bits: Bits) -> Ids: ...
    def find_again(self, changed: Ids, bits: Bits) -> Ids: ...
    def prepare(self, bits: Bits) -> None: ...
    def keep_apart(self, gaps: Array) -> None: ...

def solve_blocks(
    kept: Sequence[int],
    pairs: Sequence[tuple[int, int]],
    matrix: Array,
    values: Array,
    left: Array,
    limit: int = ...,
) -> bool: ...
