"""Native measures (native/bindings/measures_module.cpp)."""

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Array = NDArray[np.float64]

def joint_gaps(
    states: Array,
    joint_ids: Ids,
    body_a: Ids,
    body_b: Ids,
    frame_a: Array,
    frame_b: Array,
    lower: Array,
    upper: Array,
    spring_stiffness: Array,
    gaps: Array,
) -> None: ...
def motion(states: Array, mass: Array, inertia: Array, sums: Array) -> None: ...
def copy_rows(source: Array, target: Array, rows: Ids) -> None: ...
def find_not_finite(table: Array, rows: Ids) -> list[int]: ...
