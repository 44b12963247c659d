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
from ..scene.shapes import bounding_box
from .membership import Membership

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


class NearPairFinder(Protocol):
    """Finds near pairs. Two bodies are near when their boxes along the world's axes and their spheres, each wider by
    a margin, overlap."""

    def find(self, states: Array, membership: Membership) -> Ids:
        """All near pairs a < b that share no worker, ascending, but for those known to be apart."""
        ...

    def find_again(self, changed: ArrayLike, membership: Membership) -> Ids:
        """Of the pairs near at the last find: those that share no worker now and have one of these bodies."""
        ...

    def prepare(self, membership: Membership) -> None:
        """Do now what the next find would have to do anyway, as far as it can be foreseen."""
        ...

    def keep_apart(self, clearances: Array) -> None:
        """Leave out the pairs of the last answer, if the finder can, until their bodies can have moved by these
        clearances [m]."""
        ...


class PairFinder:
    """A NearPairFinder that compares every body with all others. `margin` is in metres. It is made for a scene as it
    is, and finds pairs among the bodies that are there."""

    def __init__(self, scene: Scene, margin: float) -> None:
        self._bodies = None if scene.alive.all() else np.flatnonzero(scene.alive).astype(np.int32)
        used = np.unique(scene.bodies.shape_id)
        boxes = np.zeros((len(scene.shapes), 2, 3))
        if len(used):
            boxes[used] = [bounding_box(scene.shapes[i]) for i in used]
        there = slice(None) if self._bodies is None else self._bodies
        self.center, self.half = (np.ascontiguousarray(boxes[scene.bodies.shape_id[there], k]) for k in (0, 1))
        self.radius = scene.bounding_radii()[there]
        self.group, self.mask = (bits[there].copy() for bits in scene.widest_filters())
        pairs = scene.ignored_pairs.astype(np.int64)
        if self._bodies is not None:
            pairs = np.searchsorted(self._bodies, pairs[scene.alive[pairs].all(axis=1)])
        self.ignored = np.sort(pairs[:, 0] * len(self.half) + pairs[:, 1])
        self.margin = margin
        self._near: list[tuple[int, int]] = []

    def find(self, states: Array, membership: Membership) -> Ids:
        return self._all_numbers(self._find(*self._there(states, membership)))

    def find_again(self, changed: ArrayLike, membership: Membership) -> Ids:
        bodies = np.asarray(changed, np.int32)
        if self._bodies is not None:
            bodies = np.searchsorted(self._bodies, bodies[np.isin(bodies, self._bodies)]).astype(np.int32)
        return self._all_numbers(self._find_again(bodies, self._part(membership)))

    def prepare(self, membership: Membership) -> None:
        self._prepare(self._part(membership))

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
        self._near = []
        for a in range(len(states)):
            boxes = (np.abs(middle[a + 1 :] - middle[a]) <= reach[a + 1 :] + reach[a]).all(axis=1)
            apart = np.linalg.norm(states[a + 1 :, :3] - states[a, :3], axis=1)
            spheres = apart <= self.radius[a + 1 :] + self.radius[a] + 2 * self.margin
            others = (np.flatnonzero(boxes & spheres) + a + 1).tolist()
            self._near += [(a, b) for b in others if self._may_touch(a, b)]
        return self._apart(self._near, membership)

    def _find_again(self, changed: Ids, membership: Membership) -> Ids:
        bodies = set(changed.tolist())
        return self._apart([(a, b) for a, b in self._near if a in bodies or b in bodies], membership)

    def _prepare(self, membership: Membership) -> None:
        pass

    def _apart(self, pairs: list[tuple[int, int]], membership: Membership) -> Ids:
        found = [pair for pair in pairs if not membership.workers(pair[0]) & membership.workers(pair[1])]
        return np.array(found, np.int32).reshape(-1, 2)

    def _may_touch(self, a: int, b: int) -> bool:
        filtered = not (self.group[a] & self.mask[b] and self.group[b] & self.mask[a])
        return not filtered and a * len(self.half) + b not in self.ignored
