"""Checks of arrays a user hands over: one value for all rows or one per row, finite, named when wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import LapjointError

Array = NDArray[np.float64]
Title = Callable[[int], str]


def _title(title: Title | str | None, row: int) -> str:
    if title is None:
        return ""
    return (title if isinstance(title, str) else title(row)) + ": "


def as_rows(name: str, value: ArrayLike, count: int, shape: tuple[int, ...], title: Title | str | None = None) -> Array:
    """`value` as `count` finite rows of `shape`."""
    wanted = (count, *shape)
    try:
        given = np.asarray(value, float)
        rows = np.broadcast_to(given, wanted)
    except (TypeError, ValueError):
        kind = f"{shape[0]} numbers" if shape else "one number"
        raise LapjointError(
            f"{_title(title, 0)}{name} is {_short(value)}, expected {kind}" + (f" or {count} rows" if count > 1 else "")
        ) from None
    bad = ~np.isfinite(rows)
    if bad.any():
        row = int(np.argwhere(bad)[0][0])
        raise LapjointError(f"{_title(title, row)}{name} is {_short(rows[row])}, expected finite numbers")
    return rows


def positive_rows(name: str, value: ArrayLike, count: int, title: Title) -> Array:
    rows = as_rows(name, value, count, (), title)
    bad = np.flatnonzero(rows <= 0)
    if len(bad):
        raise LapjointError(f"{title(int(bad[0]))}: {name} is {rows[bad[0]]:g}, expected a positive number")
    return rows


def unit_quaternions(value: ArrayLike, count: int, title: Title) -> Array:
    rows = as_rows("quaternion", value, count, (4,), title)
    norms = np.linalg.norm(rows, axis=1)
    bad = np.flatnonzero(np.abs(norms - 1) > 1e-5)
    if len(bad):
        row = int(bad[0])
        raise LapjointError(
            f"{title(row)}: quaternion {_short(rows[row])} has length {norms[row]:.6g}, expected 1 (w, x, y, z)"
        )
    return np.asarray(rows / norms[:, None])


def unit_vectors(name: str, value: ArrayLike, count: int, title: Title) -> Array:
    rows = as_rows(name, value, count, (3,), title)
    norms = np.linalg.norm(rows, axis=1)
    bad = np.flatnonzero(norms < 1e-12)
    if len(bad):
        raise LapjointError(f"{title(int(bad[0]))}: {name} is zero, expected a direction")
    return np.asarray(rows / norms[:, None])


def _short(value: Any) -> str:
    text = str(value).replace("\n", " ")
    return text if len(text) <= 60 else text[:57] + "..."
