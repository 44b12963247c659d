"""Rows of tables of states: those of a worker's own bodies, before it writes them and after."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


def copy_rows(source: Array, target: Array, rows: ArrayLike) -> None:
    """Copy these rows of one table to the same places of another."""
    places = np.asarray(rows, np.int32)
    target[places] = source[places]


def find_not_finite(table: Array, rows: ArrayLike) -> Ids:
    """Of these rows, those with a number that is not finite, in their order."""
    places = np.asarray(rows, np.int32)
    return places[~np.isfinite(table[places]).all(axis=1)]
