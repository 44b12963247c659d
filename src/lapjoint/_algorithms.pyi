"""Native algorithms (native/bindings/algorithms_module.cpp)."""

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Array = NDArray[np.float64]

max_workers: int

def build_graph(body_count: int, pairs: Ids) -> tuple[Ids, Ids, Ids]: ...
def assign_overlap(
    growth_depth: int, start: Ids, neighbor: Ids, bits: NDArray[np.uint64], load: NDArray[np.int64]
) -> None: ...
def balance(
    contacts: Ids,
    growth_depth: int,
    start: Ids,
    neighbor: Ids,
    bits: NDArray[np.uint64],
    load: NDArray[np.int64],
    mode: int,
    jointed: NDArray[np.bool_],
) -> None: ...
def compute_weights(
    search_depth: int,
    start: Ids,
    neighbor: Ids,
    bits: NDArray[np.uint64],
    load: NDArray[np.int64],
    overlap: Ids,
    offset: Ids,
    worker: Ids,
    weight: Array,
) -> None: ...
def depth_weights(
    search_depth: int,
    start: Ids,
    neighbor: Ids,
    bits: NDArray[np.uint64],
    load: NDArray[np.int64],
    overlap: Ids,
    offset: Ids,
    worker: Ids,
    weight: Array,
) -> None: ...
def blend(offset: Ids, weight: Array, worker_states: Array, body: Ids, states: Array) -> None: ...

class PairFinder:
    def __init__(
        self,
        center: Array,
        half: Array,
        radius: Array,
        group: NDArray[np.uint32],
        mask: NDArray[np.uint32],
        ignored: NDArray[np.int64],
        margin: float,
    ) -> None: ...
    def find(self, states: Array, bits: NDArray[np.uint64], load: NDArray[np.int64]) -> Ids: ...
    def find_again(self, changed: Ids, bits: NDArray[np.uint64], load: NDArray[np.int64]) -> Ids: ...
