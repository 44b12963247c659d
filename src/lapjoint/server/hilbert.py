"""Hilbert's curve: it passes every cell of a cube, each next to the one before, so what is near on it is near in space.

J. Skilling, Programming the Hilbert curve, AIP Conference Proceedings 707 (2004): the transform of axes, for all points
at once.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

BITS = 16
"""Of a cell's number along each axis: 65,536 cells on the longest side."""


def hilbert_keys(position: NDArray[np.float64]) -> NDArray[np.uint64]:
    """How far along the curve points are, (n,), in a cube around all of them, (n, 3)."""
    low, side = position.min(axis=0), float(np.ptp(position, axis=0).max())
    scale = ((1 << BITS) - 1) / side if side else 0.0
    return cell_keys(((position - low) * scale).astype(np.uint32), BITS)


def cell_keys(cells: NDArray[np.uint32], bits: int) -> NDArray[np.uint64]:
    """The same of cells, by their numbers along the axes, each of so many bits."""
    axes = [cells[:, axis].copy() for axis in range(cells.shape[1])]
    for bit in range(bits - 1, 0, -1):  # turn and mirror every part of the curve as the larger one has it
        low = np.uint32((1 << bit) - 1)
        for axis in axes:
            is_set = (axis >> np.uint32(bit) & np.uint32(1)).astype(bool)
            swap = np.where(is_set, np.uint32(0), (axes[0] ^ axis) & low)
            axes[0] ^= np.where(is_set, low, swap)
            if axis is not axes[0]:
                axis ^= swap
    for before, axis in pairwise(axes):  # Gray code
        axis ^= before
    flip = np.zeros_like(axes[0])
    for bit in range(bits - 1, 0, -1):
        flip ^= np.where(axes[-1] >> np.uint32(bit) & np.uint32(1), np.uint32((1 << bit) - 1), np.uint32(0))
    keys = np.zeros(len(cells), np.uint64)
    for bit in range(bits - 1, -1, -1):
        for axis in axes:
            keys = keys << np.uint64(1) | ((axis ^ flip) >> np.uint32(bit) & np.uint32(1)).astype(np.uint64)
    return keys
