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
def blend(offset: Ids, weight: Array, worker_states: Array, body: Ids, states: Array) -> None: ...
