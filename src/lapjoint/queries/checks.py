"""Checks of what a user asks. One that cannot be answered is refused with its number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays.checks import as_rows, integer_rows, table, unit_quaternions, unit_vectors
from ..errors import LapjointError
from ..scene.filters import ALL_GROUPS
from ..scene.shapes import STATIC_ONLY, MovingShape, check_shape

Array = NDArray[np.float64]


def checked_rays(origins: ArrayLike, directions: ArrayLike, max_distance: ArrayLike) -> tuple[Array, Array, Array]:
    """Origins, directions of length 1 and lengths of rays: as many as there are origins or directions."""
    title = _title("queries.cast_rays: ray")
    starts, ways = table("origin", origins, 3, title), table("direction", directions, 3, title)
    count = max(len(starts), len(ways)) if min(len(starts), len(ways)) else 0
    starts = np.ascontiguousarray(as_rows("origin", starts, count, (3,), title))
    return starts, unit_vectors("direction", ways, count, title), _lengths(max_distance, count, title)


def checked_points(points: ArrayLike, max_distance: ArrayLike) -> tuple[Array, Array]:
    title = _title("queries.closest_points: point")
    rows = table("point", points, 3, title)
    rows = np.ascontiguousarray(as_rows("point", rows, len(rows), (3,), title))
    return rows, _lengths(max_distance, len(rows), title)


def checked_places(shape: MovingShape, positions: ArrayLike, quaternions: ArrayLike) -> Array:
    """Positions and quaternions of a shape, (n, 7)."""
    check_shape(shape, "queries.overlapping")
    if isinstance(shape, STATIC_ONLY):
        raise LapjointError(f"queries.overlapping: shape is a {type(shape).__name__}, expected one that has a volume")
    title = _title("queries.overlapping: pose")
    places, turns = table("position", positions, 3, title), table("quaternion", quaternions, 4, title)
    count = max(len(places), len(turns)) if min(len(places), len(turns)) else 0
    return np.concatenate(
        [as_rows("position", places, count, (3,), title), unit_quaternions(turns, count, title)], axis=1
    )


def checked_mask(mask: int, what: str) -> int:
    return int(integer_rows("mask", mask, 1, what, 0, ALL_GROUPS)[0])


def _lengths(max_distance: ArrayLike, count: int, title: Callable[[int], str]) -> Array:
    lengths = as_rows("max_distance", max_distance, count, (), title, infinite=True)
    for row in np.flatnonzero(lengths < 0):
        raise LapjointError(f"{title(int(row))}: max_distance is {lengths[row]:g}, expected 0 or more")
    return np.ascontiguousarray(lengths)


def _title(what: str) -> Callable[[int], str]:
    return lambda row: f"{what} {row}"
