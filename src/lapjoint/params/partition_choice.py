"""The first partition: the name of a kind, a file, or the worker of each body."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import LapjointError

PartitionLike: TypeAlias = str | Sequence[int] | NDArray[np.integer[Any]]
"""What a user may give. Params keep an array as a tuple, which can be compared, hashed and written to JSON."""
EXPECTED = "expected auto, labels, metis, curve, boxes, equal, a file, or an array with the worker of each body"


def checked_partition(given: Any) -> str | tuple[int, ...]:
    """A name or path as it is; an array, list or tuple of whole numbers as a tuple. The scene and the number of
    workers are not known here: `make_partition` checks against them."""
    if isinstance(given, str):
        return given
    if isinstance(given, Path):
        return str(given)
    try:
        array = np.asarray(given)
    except ValueError:  # of rows that differ in length
        raise LapjointError(f"partition is {given!r}, {EXPECTED}") from None
    if array.ndim != 1:
        raise LapjointError(f"partition has shape {array.shape}, {EXPECTED}" if array.ndim else _not_one(given))
    if len(array) and not np.issubdtype(array.dtype, np.integer):
        raise LapjointError(f"partition is an array of {array.dtype}, expected whole numbers, a worker for each body")
    return tuple(array.tolist())


def _not_one(given: Any) -> str:
    return f"partition is {given!r}, {EXPECTED}"
