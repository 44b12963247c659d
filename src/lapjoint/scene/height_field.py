"""Height fields: ground that is given by its heights over a grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import LapjointError
from .lengths import number_rows, positive_lengths

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HeightField:
    """Static only: a surface over a grid in x and y, with its middle over the body's position.

    `heights` has a row for each y and a column for each x, both ascending, [m]; at least two of each. `spacing` is the
    distance of columns and of rows: one for both, or one along x and one along y [m]. Each cell is two triangles, which
    meet in the diagonal from the corner of lowest x and y to that of highest x and y.
    """

    heights: Array
    spacing: tuple[float, float]

    def __post_init__(self) -> None:
        heights = number_rows("HeightField", "heights", self.heights, None)
        if min(heights.shape) < 2:
            raise LapjointError(
                f"HeightField: heights has shape {heights.shape}, expected two rows and columns or more"
            )
        given = np.asarray(self.spacing)
        both = (self.spacing, self.spacing) if given.ndim == 0 else self.spacing
        object.__setattr__(self, "heights", heights)
        object.__setattr__(self, "spacing", positive_lengths("HeightField", "spacing", both, 2))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HeightField):
            return False
        return self.spacing == other.spacing and np.array_equal(self.heights, other.heights)

    def __hash__(self) -> int:
        return hash(("HeightField", self.spacing, self.heights.shape, self.heights.tobytes()))

    @property
    def vertices(self) -> Array:
        """The grid's points, row after row, in the shape's frame."""
        rows, columns = self.heights.shape
        x = (np.arange(columns) - (columns - 1) / 2) * self.spacing[0]
        y = (np.arange(rows) - (rows - 1) / 2) * self.spacing[1]
        return np.column_stack([np.tile(x, rows), np.repeat(y, columns), self.heights.ravel()])

    @property
    def triangles(self) -> NDArray[np.int32]:
        """Numbers of the points of each triangle, counterclockwise seen from above: two for each cell."""
        rows, columns = self.heights.shape
        low = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
        right, up, far = low + 1, low + columns, low + columns + 1
        both = np.stack([low, right, far, low, far, up], axis=1)
        return both.reshape(-1, 3).astype(np.int32)

    def height_at(self, x: ArrayLike, y: ArrayLike) -> Array:
        """The surface's height at points of the shape's frame [m]; nan beyond its rim."""
        rows, columns = self.heights.shape
        u = np.asarray(x, float) / self.spacing[0] + (columns - 1) / 2
        v = np.asarray(y, float) / self.spacing[1] + (rows - 1) / 2
        inside = (u >= 0) & (u <= columns - 1) & (v >= 0) & (v <= rows - 1)
        i = np.clip(np.nan_to_num(u).astype(int), 0, columns - 2)
        j = np.clip(np.nan_to_num(v).astype(int), 0, rows - 2)
        u, v = u - i, v - j
        low, right = self.heights[j, i], self.heights[j, i + 1]
        up, far = self.heights[j + 1, i], self.heights[j + 1, i + 1]
        below = low + u * (right - low) + v * (far - right)
        above = low + v * (up - low) + u * (far - up)
        return np.asarray(np.where(inside, np.where(v <= u, below, above), np.nan))
