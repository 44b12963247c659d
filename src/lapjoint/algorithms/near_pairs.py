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
    """A NearPairFinder that compares every body with all others. `margin` is in metres; bodies of broken joints may
    touch."""

    def __init__(self, scene: Scene, margin: float, broken: ArrayLike = ()) -> None:
        used = np.unique(scene.bodies.shape_id)
        boxes = np.zeros((len(scene.shapes), 2, 3))
        if len(used):
            boxes[used] = [bounding_box(scene.shapes[i]) for i in used]
        self.center, self.half = (np.ascontiguousarray(boxes[scene.bodies.shape_id, k]) for k in (0, 1))
        self.radius = scene.bounding_radii()
        self.group, self.mask = scene.bodies.group.copy(), scene.bodies.mask.copy()
        pairs = scene.ignored_pairs_without(broken).astype(np.int64)
        self.ignored = np.sort(pairs[:, 0] * scene.body_count + pairs[:, 1])
        self.margin = margin
        self._near: list[tuple[int, int]] = []

    def find(self, states: Array, membership: Membership) -> Ids:
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

    def find_again(self, changed: ArrayLike, membership: Membership) -> Ids:
        bodies = set(np.asarray(changed).tolist())
        return self._apart([(a, b) for a, b in self._near if a in bodies or b in bodies], membership)

    def prepare(self, membership: Membership) -> None:
        pass

    def keep_apart(self, clearances: Array) -> None:
        pass

    def _apart(self, pairs: list[tuple[int, int]], membership: Membership) -> Ids:
        found = [pair for pair in pairs if not membership.workers(pair[0]) & membership.workers(pair[1])]
        return np.array(found, np.int32).reshape(-1, 2)

    def _may_touch(self, a: int, b: int) -> bool:
        filtered = not (self.group[a] & self.mask[b] and self.group[b] & self.mask[a])
        return not filtered and a * len(self.half) + b not in self.ignored
