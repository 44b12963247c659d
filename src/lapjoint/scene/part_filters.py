"""Groups and masks of bodies whose parts have their own, for those who look at whole bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.columns import Columns
from .shapes import Compound, StaticShape


def widest_filters(table: Columns, shapes: Sequence[StaticShape]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Group and mask of each row of a table: where parts have their own, the bits that any part has. Two bodies whom
    these keep apart have no parts that may touch."""
    group, mask = table.group, table.mask
    for shape_id, shape in enumerate(shapes):
        if not isinstance(shape, Compound) or not shape.has_filters:
            continue
        rows = table.shape_id == shape_id
        group, mask = group.copy(), mask.copy()
        group[rows] = _widest(group[rows], [part.group for part in shape.parts])
        mask[rows] = _widest(mask[rows], [part.mask for part in shape.parts])
    return group, mask


def _widest(own: NDArray[Any], parts: Sequence[int | None]) -> NDArray[Any]:
    bits = np.uint32(0)
    for one in parts:
        bits |= np.uint32(one or 0)
    return np.asarray(own | bits if None in parts else np.full_like(own, bits))
