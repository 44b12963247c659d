"""Which pairs of bodies may touch without a worker knowing: the server's part of detection (section 5.4).

A worker finds the contacts between its own bodies. What no worker can find are contacts between bodies that share
none: the server looks for those.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import rotation
from ..scene import Scene
from ..scene.part_filters import widest_filters
from ..scene.shapes import bounding_box
from ..scene.thickness import body_thickness
from .membership import Membership

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

SOON_FAST = 0.4
"""Share of its thickness that a body moves in a step from which on it is taken for fast: a little less than engines do
(scene/thickness.py), so that rounding decides nothing."""


class NearPairFinder(Protocol):
    """Finds near pairs. Two bodies are near when their boxes along the world's axes and their spheres, each wider by
    a margin, overlap. Those of a fast body, which moves farther in a step than half its thickness, are around its way
    in the next step."""

    def find(self, states: Array, membership: Membership) -> Ids:
        """All near pairs a < b that share no worker, or do not have the same workers if one is fast, ascending, but for
        those known to be apart."""
        ...

    def find_again(self, changed: ArrayLike, membership: Membership) -> Ids:
        """Of the pairs near at the last find: those that share no worker now and have one of these bodies."""
        ...

    def prepare(self, membership: Membership) -> None:
        """Do now what the next find would have to do anyway, as far as it can be foreseen."""
        ...

    def has_fast(self, states: Array) -> bool:
        """Whether any body is fast."""
        ...

    def have_fast(self, pairs: Ids, states: Array) -> NDArray[np.bool_]:
        """Which of these pairs have a fast body."""
        ...

    def keep_apart(self, clearances: Array) -> None:
        """Leave out the pairs of the last answer, if the finder can, until their bodies can have moved by these
        clearances [m]."""
        ...


class PairFinder:
    """A NearPairFinder that compares every body with all others. `margin` is in metres. It is made for a scene as it
    is, and finds pairs among the bodies that are there. With a timestep it looks ahead for fast bodies."""

    def __init__(self, scene: Scene, margin: float, timestep: float = 0.0) -> None:
        self._bodies = None if scene.alive.all() else np.flatnonzero(scene.alive).astype(np.int32)
        used = np.unique(scene.bodies.shape_id)
        boxes = np.zeros((len(scene.shapes), 2, 3))
        if len(used):
            boxes[used] = [bounding_box(scene.shapes[i]) for i in used]
        there = slice(None) if self._bodies is None else self._bodies
        self.center, self.half = (np.ascontiguousarray(boxes[scene.bodies.shape_id[there], k]) for k in (0, 1))
        self.radius = scene.bounding_radii()[there]
        self.group, self.mask = (bits[there].copy() for bits in widest_filters(scene.bodies, scene.shapes))
        pairs = scene.ignored_pairs.astype(np.int64)
        if self._bodies is not None:
            pairs = np.searchsorted(self._bodies, pairs[scene.alive[pairs].all(axis=1)])
        self.ignored = np.sort(pairs[:, 0] * len(self.half) + pairs[:, 1])
        self.margin, self.timestep = margin, timestep
        self.thickness = body_thickness(scene)[there] if timestep > 0 else np.empty(0)
        self.fall = float(np.linalg.norm(scene.gravity)) * timestep**2
        self._near: list[tuple[int, int]] = []
        self._fast_now: set[int] = set()

    def find(self, states: Array, membership: Membership) -> Ids:
        return self._all_numbers(self._find(*self._there(states, membership)))

    def find_again(self, changed: ArrayLike, membership: Membership) -> Ids:
        bodies = np.asarray(changed, np.int32)
        if self._bodies is not None:
            bodies = np.searchsorted(self._bodies, bodies[np.isin(bodies, self._bodies)]).astype(np.int32)
        return self._all_numbers(self._find_again(bodies, self._part(membership)))

    def prepare(self, membership: Membership) -> None:
        self._prepare(self._part(membership))

    def has_fast(self, states: Array) -> bool:
        there = states if self._bodies is None else states[self._bodies]
        return self.timestep > 0 and bool(self._are_fast(there, slice(None)).any())

    def have_fast(self, pairs: Ids, states: Array) -> NDArray[np.bool_]:
        if not (self.timestep > 0 and len(pairs)):
            return np.zeros(len(pairs), bool)
        places = pairs if self._bodies is None else np.searchsorted(self._bodies, pairs)
        return np.asarray(self._are_fast(states[pairs.ravel()], places.ravel()).reshape(-1, 2).any(axis=1))

    def keep_apart(self, clearances: Array) -> None:
        pass

    # ---- among bodies that are there, by their places ----------------------------------------------------------------

    def _there(self, states: Array, membership: Membership) -> tuple[Array, Membership]:
        return (states if self._bodies is None else states[self._bodies]), self._part(membership)

    def _part(self, membership: Membership) -> Membership:
        return membership if self._bodies is None else membership.part(self._bodies)

    def _all_numbers(self, pairs: Ids) -> Ids:
        return pairs if self._bodies is None else self._bodies[pairs]

    def _find(self, states: Array, membership: Membership) -> Ids:
        turn = rotation.to_matrix(states[:, 3:7])
        middle = states[:, :3] + np.einsum("nij,nj->ni", turn, self.center)
        offset = np.abs(middle - states[:, :3])
        reach = np.minimum(np.einsum("nij,nj->ni", np.abs(turn), self.half), self.radius[:, None] + offset)
        reach += self.margin
        low, high, radius = middle - reach, middle + reach, self.radius + self.margin
        fast = np.flatnonzero(self._are_fast(states, slice(None))) if self.timestep > 0 else np.empty(0, np.intp)
        self._fast_now = set(fast.tolist())
        moves = self.timestep * states[fast, 7:10]
        radius[fast] += self.fall
        for box, end in ((low, np.minimum), (high, np.maximum)):
            room = radius[fast, None] * (-1 if end is np.minimum else 1)
            box[fast] = states[fast, :3] + end(moves, 0.0) + room
        radius[fast] += np.linalg.norm(moves, axis=1)
        self._near = []
        for a in range(len(states)):
            boxes = ((low[a + 1 :] <= high[a]) & (low[a] <= high[a + 1 :])).all(axis=1)
            apart = np.linalg.norm(states[a + 1 :, :3] - states[a, :3], axis=1)
            spheres = apart <= radius[a + 1 :] + radius[a]
            others = (np.flatnonzero(boxes & spheres) + a + 1).tolist()
            self._near += [(a, b) for b in others if self._may_touch(a, b)]
        return self._apart(self._near, membership)

    def _are_fast(self, states: Array, places: NDArray[np.integer] | slice) -> NDArray[np.bool_]:
        """Which of the bodies at these places move far in the next step."""
        linear, angular = (np.linalg.norm(states[:, k : k + 3], axis=1) for k in (7, 10))
        moves = (linear + self.radius[places] * angular) * self.timestep
        return np.asarray(moves > SOON_FAST * self.thickness[places])

    def _find_again(self, changed: Ids, membership: Membership) -> Ids:
        bodies = set(changed.tolist())
        return self._apart([(a, b) for a, b in self._near if a in bodies or b in bodies], membership)

    def _prepare(self, membership: Membership) -> None:
        pass

    def _apart(self, pairs: list[tuple[int, int]], membership: Membership) -> Ids:
        def is_seen(a: int, b: int) -> bool:
            first, second = membership.workers(a), membership.workers(b)
            return first == second if a in self._fast_now or b in self._fast_now else bool(first & second)

        found = [pair for pair in pairs if not is_seen(*pair)]
        return np.array(found, np.int32).reshape(-1, 2)

    def _may_touch(self, a: int, b: int) -> bool:
        filtered = not (self.group[a] & self.mask[b] and self.group[b] & self.mask[a])
        return not filtered and a * len(self.half) + b not in self.ignored
