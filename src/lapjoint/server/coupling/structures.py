"""Structures of joints across workers: which of them are narrow enough between workers to be solved at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...scene import WORLD, Scene

Ids = NDArray[np.int32]

MOST_WORK = 20_000
"""Products of blocks that it may take to solve for all bodies at the ends of a structure's joints between workers, if
the structure is to be solved at once: about a millisecond. One worker has 49 such bodies then, at most."""
NOBODY = np.empty(0, np.int32)


class Structures:
    """Bodies that joints tie together."""

    def __init__(self, scene: Scene) -> None:
        joints = np.stack([scene.joints.body_a, scene.joints.body_b], axis=1)
        locks = ((scene.joints.lower == 0) & (scene.joints.upper == 0)).any(axis=1)
        self._locked = joints[(joints[:, 1] != WORLD) & locks]
        self._label = structure_labels(self._locked, scene.body_count)
        self._last: tuple[Ids, Ids, Ids] | None = None  # owners, removed bodies, and what was found for them

    def narrow(self, owner: Ids, removed: Ids) -> Ids:
        """Structures across workers, by their lowest bodies, with so few bodies at both ends of joints between workers
        that every worker can solve for these by itself. Without bodies that are out of all engines."""
        if self._last is None or self._last[0] is not owner or not np.array_equal(self._last[1], removed):
            self._last = owner, removed.copy(), self._find(owner, removed)
        return self._last[2]

    def _find(self, owner: Ids, removed: Ids) -> Ids:
        across = self._locked[owner[self._locked[:, 0]] != owner[self._locked[:, 1]]]
        across = across[~np.isin(across, removed).any(axis=1)].astype(np.int64)
        if len(across) == 0:
            return NOBODY
        label = self._label[across[:, 0]].astype(np.int64)
        # Every worker of a joint has both its bodies in its part of the structure.
        parts = [np.stack([label, owner[across[:, w]], across[:, end]], axis=1) for w in range(2) for end in range(2)]
        bodies = np.unique(np.concatenate(parts), axis=0)
        pairs, width = np.unique(bodies[:, :2], axis=0, return_counts=True)
        labels, inverse = np.unique(pairs[:, 0], return_inverse=True)
        work = np.bincount(inverse, width**3 / 6)
        return labels[work <= MOST_WORK].astype(np.int32)


def structure_labels(joints: Ids, body_count: int) -> Ids:
    """The lowest body of the structure that each body is part of: bodies that joints tie together."""
    label = np.arange(body_count, dtype=np.int32)
    while True:
        low = label.copy()
        for one, other in ((0, 1), (1, 0)):
            np.minimum.at(low, joints[:, one], label[joints[:, other]])
        low = low[low]  # follow the labels' own labels
        if np.array_equal(low, label):
            return label
        label = low
