"""Native measures (native/bindings/measures_module.cpp)."""

# Made by tools/make-stubs.

import numpy as np
from numpy.typing import NDArray

def joint_gaps(
    states: NDArray[np.float64],
    joint_ids: NDArray[np.int32],
    body_a: NDArray[np.int32],
    body_b: NDArray[np.int32],
    frame_a: NDArray[np.float64],
    frame_b: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    spring_stiffness: NDArray[np.float64],
    gaps: NDArray[np.float64],
) -> None: ...
def motion(
    states: NDArray[np.float64], mass: NDArray[np.float64], inertia: NDArray[np.float64], sums: NDArray[np.float64]
) -> None: ...
def copy_rows(source: NDArray[np.float64], target: NDArray[np.float64], rows: NDArray[np.int32]) -> None: ...
def find_not_finite(table: NDArray[np.float64], rows: NDArray[np.int32]) -> list[int]: ...
