"""simulation.queries: what is where, as bodies are now."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..arrays.checks import integer_rows
from ..errors import LapjointError
from ..queries import ClosestPoints, Inside, Overlaps, RayHits
from ..queries.checks import checked_mask, checked_places, checked_points, checked_rays
from ..scene.filters import ALL_GROUPS
from ..scene.shapes import MovingShape
from ..whole import whole
from .base import Facet


class SimulationQueries(Facet):
    """What is where, as bodies are now. Nothing of the next step depends on it."""

    _prefix = "queries."

    @whole
    def cast_rays(
        self,
        origins: ArrayLike,
        directions: ArrayLike,
        max_distance: ArrayLike = np.inf,
        *,
        all_hits: bool = False,
        mask: int = ALL_GROUPS,
        statics: bool = True,
    ) -> RayHits:
        """What rays meet, of bodies whose group has a bit in `mask`: the closest of each ray, or with `all_hits` every
        body that it meets, each where it enters it first. Directions may have any length but 0; `max_distance` [m] is
        one for all or one per ray. Without `statics` rays pass through static bodies."""
        rays, groups = checked_rays(origins, directions, max_distance), checked_mask(mask, "queries.cast_rays")
        cast = self._core.queries.cast_all if all_hits else self._core.queries.cast_closest
        return cast(*rays, groups, statics)

    @whole
    def overlapping(
        self,
        shape: MovingShape,
        positions: ArrayLike,
        quaternions: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        *,
        mask: int = ALL_GROUPS,
        statics: bool = True,
    ) -> Overlaps:
        """Which bodies overlap a shape at each of these poses, of those whose group has a bit in `mask`. Touching is
        overlapping."""
        poses, groups = checked_places(shape, positions, quaternions), checked_mask(mask, "queries.overlapping")
        return self._core.queries.overlapping(shape, poses, groups, statics)

    @whole
    def closest_points(
        self, points: ArrayLike, max_distance: ArrayLike = np.inf, *, mask: int = ALL_GROUPS, statics: bool = True
    ) -> ClosestPoints:
        """The surface nearest to each point, of bodies whose group has a bit in `mask`, no farther away than
        `max_distance` [m]. Inside of bodies, that of the body which the point is deepest in."""
        rows, groups = checked_points(points, max_distance), checked_mask(mask, "queries.closest_points")
        return self._core.queries.closest_points(*rows, groups, statics)

    @whole
    def inside(self, sensor_ids: ArrayLike | None = None) -> Inside:
        """Which bodies are inside of these sensors now, or of all of them."""
        pairs, what = self._core.sensing.inside, "queries.inside"
        if sensor_ids is not None:
            known = len(self._core.scene.sensors)
            ids = integer_rows("sensor", sensor_ids, np.size(sensor_ids), what)
            for sensor in ids[(ids < 0) | (ids >= known)]:
                raise LapjointError(f"{what}: sensor {sensor} does not exist, the scene has {known} sensors")
            pairs = pairs[np.isin(pairs[:, 0], ids)]
        return Inside(pairs[:, 0].copy(), pairs[:, 1].copy())
