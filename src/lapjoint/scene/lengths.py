"""Checks that shapes have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays.checks import is_finite, short
from ..errors import LapjointError

LONGEST = 1e12
"""Metres: the inertia of a shape of this size is still finite."""


def positive_length(owner: str, name: str, value: float) -> float:
    """A length, or an error that names the shape and the length."""
    if not (is_finite(value) and value > 0):
        raise LapjointError(f"{owner}: {name} is {value}, expected a positive length in metres")
    if value > LONGEST:
        raise LapjointError(f"{owner}: {name} is {value} m, expected at most {LONGEST:g}")
    return float(value)


def positive_lengths(owner: str, name: str, value: ArrayLike, count: int) -> tuple[float, ...]:
    """So many lengths."""
    words = {2: "two", 3: "three"}
    lengths = np.asarray(value).ravel()
    if lengths.shape != (count,):
        raise LapjointError(f"{owner}: {name} is {short(value)}, expected {words[count]} lengths in metres")
    return tuple(positive_length(owner, name, one) for one in lengths)


def number_rows(owner: str, name: str, value: ArrayLike, columns: int | None, dtype: type = float) -> NDArray[Any]:
    """A table of finite numbers that cannot be written to, of any width if no count of columns is given."""
    shape = f"(n, {'m' if columns is None else columns})"
    try:
        array: NDArray[Any] = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise LapjointError(f"{owner}: {name} is not an array of numbers, expected {shape}") from None
    if array.ndim != 2 or (columns is not None and array.shape[1] != columns):
        raise LapjointError(f"{owner}: {name} has shape {array.shape}, expected {shape}")
    if not np.isfinite(array).all():
        raise LapjointError(f"{owner}: {name} contains a value that is not finite")
    if (np.abs(array) > LONGEST).any():
        raise LapjointError(f"{owner}: {name} contains a number larger than {LONGEST:g}")
    if dtype is not float and not np.array_equal(array, np.rint(array)):
        raise LapjointError(f"{owner}: {name} contains a number that is not whole")
    array = array.astype(dtype)
    array.setflags(write=False)
    return array
