"""Answers, as arrays. A static body s has the number -1 - s in all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

NO_BODY = -(2**31)
"""In place of a body's number: there is none."""


@dataclass(frozen=True)
class RayHits:
    """Where rays meet bodies. Of the closest hits there is one row for each ray; of all hits as many as there are, in
    the order of rays, distances and bodies."""

    ray: Ids
    """(n,) which ray."""
    body: Ids
    """(n,) which body; NO_BODY where the ray meets none."""
    distance: Array
    """(n,) from the ray's origin [m]; infinite where it meets none, 0 where it begins inside."""
    point: Array
    """(n, 3) where [m]; infinite where it meets none."""
    normal: Array
    """(n, 3) outward unit vector of the surface; against the ray where it begins inside, 0 where it meets none."""

    def __len__(self) -> int:
        return len(self.body)

    @property
    def is_hit(self) -> NDArray[np.bool_]:
        """Which rows are hits."""
        return np.asarray(self.body != NO_BODY)


@dataclass(frozen=True)
class Overlaps:
    """Which bodies overlap the shapes that were asked about, in the order of both."""

    query: Ids
    """(n,) which of the places."""
    body: Ids
    """(n,) a body that overlaps the shape there."""

    def __len__(self) -> int:
        return len(self.body)


@dataclass(frozen=True)
class ClosestPoints:
    """The surface nearest to each point that was asked about."""

    body: Ids
    """(n,) whose surface; NO_BODY where none is near enough."""
    distance: Array
    """(n,) from the point to the surface [m]: negative inside; infinite where there is none."""
    point: Array
    """(n, 3) of the surface [m]; infinite where there is none."""
    normal: Array
    """(n, 3) outward unit vector of the surface; 0 where there is none."""

    def __len__(self) -> int:
        return len(self.body)
