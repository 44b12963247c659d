"""Labels of a wide scene: 64 blocks of ground, numbered so that consecutive ones make compact blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

HALVINGS = 6


def block_labels(places: NDArray[np.floating[Any]], extent: ArrayLike) -> NDArray[np.int64]:
    """The block of each place (n, 2) on a ground from zero to `extent`, whose longer side is halved six times."""
    rows = np.arange(len(places))
    low = np.zeros((len(places), 2))
    high = np.tile(np.array(extent, float), (len(places), 1))
    label = np.zeros(len(places), np.int64)
    for _ in range(HALVINGS):
        axis = np.argmax(high - low, axis=1)
        middle = (low[rows, axis] + high[rows, axis]) / 2
        upper = places[rows, axis] > middle
        low[rows, axis] = np.where(upper, middle, low[rows, axis])
        high[rows, axis] = np.where(upper, high[rows, axis], middle)
        label = 2 * label + upper
    return label
