"""Some rows of large tables, copied and looked at where they lie: half the time of taking them out first."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _measures

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


def copy_rows(source: Array, target: Array, rows: ArrayLike) -> None:
    """Copy these rows of one table to the same places of another. 250,000 rows of states take 7 ms, with numpy 13."""
    ids = _checked(source, rows)
    assert target.shape[1] == source.shape[1]
    _checked(target, ids)
    _measures.copy_rows(source, target, ids)


def find_not_finite(table: Array, rows: ArrayLike) -> Ids:
    """Of these rows, those with a number that is not finite, in their order."""
    return np.array(_measures.find_not_finite(table, _checked(table, rows)), np.int32)


def _checked(table: Array, rows: ArrayLike) -> Ids:
    ids = np.ascontiguousarray(rows, np.int32)
    if len(ids) and not (ids.min() >= 0 and ids.max() < len(table)):
        raise IndexError(f"rows are from {ids.min()} to {ids.max()}, but the table has {len(table)}")
    return ids
