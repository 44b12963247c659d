"""Seeds: points that a shape is cut from, all over it or denser where something hits it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ..arrays.checks import as_rows, is_finite
from ..errors import LapjointError
from .outline import Solid, bounds, contains
from .pieces import Array


def seeds_uniform(shape: Solid, count: int, seed: int = 0) -> Array:
    """Seeds all over a shape, (count, 3)."""
    low, high = bounds(shape)
    return _inside(shape, count, seed, lambda rng, size: rng.uniform(low, high, (size, 3)))


def seeds_around(shape: Solid, point: ArrayLike, count: int, spread: float | None = None, seed: int = 0) -> Array:
    """Seeds that are denser near a point of the shape's frame, where something hits it, (count, 3). Half of them are
    within `spread` [m]; a sixth of the shape's largest extent unless given."""
    low, high = bounds(shape)
    middle = as_rows("point", point, 1, (3,), "seeds_around")[0]
    spread = float((high - low).max()) / 6 if spread is None else spread
    if not (is_finite(spread) and spread > 0):
        raise LapjointError(f"seeds_around: spread is {spread}, expected a positive number")

    def draw(rng: np.random.Generator, size: int) -> Array:
        # Half of a Cauchy distribution's numbers are below its scale, and there are some at any distance.
        distance = spread * np.abs(rng.standard_cauchy(size))
        direction = rng.normal(size=(size, 3)) * (high - low)  # a pane is cut along itself, not through
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        return np.asarray(middle + distance[:, None] * direction)

    return _inside(shape, count, seed, draw)


def _inside(shape: Solid, count: int, seed: int, draw: Callable[[np.random.Generator, int], Array]) -> Array:
    """`count` points inside a shape, of those that `draw` makes."""
    if not isinstance(count, int | np.integer) or count < 1:
        raise LapjointError(f"count of seeds is {count!r}, expected a whole number, at least 1")
    rng, found = np.random.default_rng(seed), np.empty((0, 3))
    for _ in range(1000):
        points = draw(rng, 4 * int(count))
        found = np.concatenate([found, points[contains(shape, points)]])[:count]
        if len(found) == count:
            return found
    raise LapjointError(f"only {len(found)} of {count} seeds fall into the shape, expected a point inside of it")
