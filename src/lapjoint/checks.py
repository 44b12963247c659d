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


def inertia_rows(inertia: ArrayLike, count: int, title: Title) -> Array:
    """Inertia tensors (count, 3, 3) from three moments, one tensor or one tensor per row."""
    given = np.asarray(inertia, float)
    if given.shape == (3,):
        given = np.diag(given)
    if given.shape not in ((3, 3), (count, 3, 3)):
        raise LapjointError(f"{title(0)}: inertia has shape {given.shape}, expected (3,), (3, 3) or ({count}, 3, 3)")
    tensors = np.broadcast_to(given, (count, 3, 3))
    for row, tensor in enumerate(tensors if given.ndim == 3 else tensors[:1]):
        if not (np.isfinite(tensor).all() and np.allclose(tensor, tensor.T, rtol=1e-9, atol=0)):
            raise LapjointError(f"{title(row)}: inertia is not a finite symmetric tensor")
        moments = np.linalg.eigvalsh(tensor)
        if moments[0] <= 0 or moments[0] + moments[1] < moments[2] * (1 - 1e-9):
            raise LapjointError(
                f"{title(row)}: principal moments of inertia are {moments}, expected positive numbers of which "
                "no one is larger than the sum of the others"
            )
    return tensors
