"""Checks of arrays a user hands over: one value for all rows or one per row, finite, named when wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import LapjointError

Array = NDArray[np.float64]
Title = Callable[[int], str]
LARGEST = float(np.finfo(np.float32).max)
"""Of numbers: engines may take them in single precision."""


def _title(title: Title | str | None, row: int) -> str:
    if title is None:
        return ""
    return (title if isinstance(title, str) else title(row)) + ": "


def is_finite(value: Any) -> bool:
    """Whether a value is one finite number."""
    try:
        return isinstance(value, (int, float, np.integer, np.floating)) and math.isfinite(value)
    except OverflowError:  # an integer beyond all floating-point numbers
        return False


def table(name: str, value: ArrayLike, columns: int, title: Title | str | None = None) -> Array:
    """`value` as rows of `columns` numbers, however many; one row may come without its brackets."""
    try:
        rows = np.asarray(value, float)
    except (TypeError, ValueError):
        rows = np.empty(0)
    rows = rows[None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or rows.shape[1] != columns:
        raise LapjointError(f"{_title(title, 0)}{name} is {short(value)}, expected rows of {columns} numbers")
    return rows


def as_rows(
    name: str,
    value: ArrayLike,
    count: int,
    shape: tuple[int, ...],
    title: Title | str | None = None,
    infinite: bool = False,
) -> Array:
    """`value` as `count` finite rows of `shape`, no number beyond LARGEST: given so, or one for all. With `infinite`,
    numbers may be that too."""
    try:
        given = np.asarray(value, float)
    except (TypeError, ValueError):
        given = None
    if given is None or given.shape not in (shape, (1, *shape), (count, *shape)):
        kind = f"{shape[0]} numbers" if shape else "one number"
        raise LapjointError(
            f"{_title(title, 0)}{name} is {short(value)}, expected {kind}" + (f" or {count} rows" if count > 1 else "")
        )
    rows = np.broadcast_to(given, (count, *shape))
    bad = np.isnan(rows) if infinite else ~np.isfinite(rows)
    if bad.any():
        row = int(np.argwhere(bad)[0][0])
        raise LapjointError(f"{_title(title, row)}{name} is {short(rows[row])}, expected finite numbers")
    large = np.abs(rows) > LARGEST
    if large.any() and not infinite:
        row = int(np.argwhere(large)[0][0])
        raise LapjointError(f"{_title(title, row)}{name} is {short(rows[row])}, expected numbers up to {LARGEST:.3g}")
    return rows


def integer_rows(
    name: str,
    value: ArrayLike,
    count: int,
    title: Title | str | None = None,
    low: int = -(2**31),
    high: int = 2**31 - 1,
) -> NDArray[np.int64]:
    """`value` as `count` whole numbers from `low` to `high`."""
    rows = as_rows(name, value, count, (), title)
    bad = np.flatnonzero((rows != np.rint(rows)) | (rows < low) | (rows > high))
    if len(bad):
        row = int(bad[0])
        raise LapjointError(
            f"{_title(title, row)}{name} is {rows[row]:.15g}, expected a whole number from {low} to {high}"
        )
    return rows.astype(np.int64)


def flag_rows(name: str, value: ArrayLike, count: int, title: Title) -> NDArray[np.bool_]:
    """`value` as `count` flags: true or false."""
    given = np.asarray(value)
    if given.dtype != bool or given.shape not in ((), (1,), (count,)):
        raise LapjointError(f"{title(0)}: {name} is {short(value)}, expected true or false")
    return np.broadcast_to(given, (count,))


def positive_rows(name: str, value: ArrayLike, count: int, title: Title, infinite: bool = False) -> Array:
    """`value` as `count` positive numbers, which may be infinite if that is said."""
    rows = as_rows(name, value, count, (), title, infinite)
    bad = np.flatnonzero(rows <= 0)
    if len(bad):
        raise LapjointError(f"{title(int(bad[0]))}: {name} is {rows[bad[0]]:g}, expected a positive number")
    return rows


def unit_quaternions(value: ArrayLike, count: int, title: Title) -> Array:
    """`value` as `count` quaternions of length 1, exactly so where they were nearly."""
    rows = as_rows("quaternion", value, count, (4,), title)
    norms = np.linalg.norm(rows, axis=1)
    bad = np.flatnonzero(np.abs(norms - 1) > 1e-5)
    if len(bad):
        row = int(bad[0])
        raise LapjointError(
            f"{title(row)}: quaternion {short(rows[row])} has length {norms[row]:.6g}, expected 1 (w, x, y, z)"
        )
    return np.asarray(rows / norms[:, None])


def unit_vectors(name: str, value: ArrayLike, count: int, title: Title) -> Array:
    """`value` as `count` vectors, scaled to length 1."""
    rows = as_rows(name, value, count, (3,), title)
    norms = np.linalg.norm(rows, axis=1)
    bad = np.flatnonzero(norms < 1e-12)
    if len(bad):
        raise LapjointError(f"{title(int(bad[0]))}: {name} is zero, expected a direction")
    return np.asarray(rows / norms[:, None])


def short(value: Any) -> str:
    """A value as messages show it: one line of at most 60 characters."""
    text = str(value).replace("\n", " ")
    return text if len(text) <= 60 else text[:57] + "..."


def inertia_rows(inertia: ArrayLike, count: int, title: Title) -> Array:
    """Inertia tensors (count, 3, 3) from three moments, one tensor or one tensor per row."""
    try:
        given = np.asarray(inertia, float)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.shape == (3,):
        given = np.diag(given)
    if given.shape not in ((3, 3), (count, 3, 3)):
        raise LapjointError(f"{title(0)}: inertia has shape {given.shape}, expected (3,), (3, 3) or ({count}, 3, 3)")
    tensors = np.broadcast_to(given, (count, 3, 3))
    sizes = np.trace(np.abs(tensors), axis1=1, axis2=2)[:, None, None]
    with np.errstate(invalid="ignore"):
        even = (np.abs(tensors - tensors.transpose(0, 2, 1)) <= 1e-9 * sizes).all(axis=(1, 2))
    crooked = np.flatnonzero(~even | ~np.isfinite(tensors).all(axis=(1, 2)))
    if len(crooked):
        raise LapjointError(f"{title(int(crooked[0]))}: inertia is not a finite symmetric tensor")
    moments = np.linalg.eigvalsh(tensors)
    bad = np.flatnonzero((moments[:, 0] <= 0) | (moments[:, 0] + moments[:, 1] < moments[:, 2] * (1 - 1e-9)))
    if len(bad):
        raise LapjointError(
            f"{title(int(bad[0]))}: principal moments of inertia are {moments[bad[0]]}, expected positive numbers of "
            "which no one is larger than the sum of the others"
        )
    return tensors
