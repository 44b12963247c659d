"""Structures of joints across workers: which of them are narrow enough between workers to be solved at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...arrays.growing import grown
from ...scene import WORLD, Scene
from ...scene.bonds import is_bond
from .turns import MOST_WORKERS

Ids = NDArray[np.int32]

MOST_WORK = 20_000
"""Products of blocks that it may take to solve for all bodies at the ends of a structure's joints between workers, if
the structure is to be solved at once: about a millisecond and a half. With two workers that is 39 such bodies each."""
MOST_WORK_PER_ROW = {"auto": 40, "direct": 200, "swept": 0}
"""Or so many for every row of the structure, if that is more: then a structure that one worker would solve at once is
no more work for several. A curtain of 20 x 19 balls takes 6.4 ms on one worker, 4.7, 5.4 and 7.1 on 2, 4 and 8; one of
60 x 59 with `joints` direct 250 ms on one, 150 on two. Swept, their gaps are 100 and 200 times as large."""
BLOCK_BYTES = 36 * 8 + 8
"""Of a block in a message, with its place."""
NOBODY = np.empty(0, np.int32)


class Structures:
    """Bodies that joints tie together."""

    def __init__(self, scene: Scene, joint_choice: str, room: int) -> None:
        """`joint_choice` is `joints` of Params; `room` is how many bytes a message between two workers can have."""
        self._scene, self._joint_choice, self._room = scene, joint_choice, room
        self._joint_count = -1
        self._label: Ids = NOBODY
        self._most_work: NDArray[np.float64] = np.empty(0)
        self._last: tuple[Ids, Ids] | None = None  # owners, and what was found for them

    def note_changes(self) -> None:
        """Bodies or joints have come or gone."""
        self._last = None

    def _find_structures(self) -> None:
        """Of all joints that there have ever been: to break is not to make a structure smaller."""
        scene = self._scene
        if self._joint_count == scene.joint_count:  # bodies that are new have none
            self._label = np.concatenate([self._label, np.arange(len(self._label), scene.body_count, dtype=np.int32)])
            self._most_work = grown(self._most_work, scene.body_count, MOST_WORK)
            return
        joints = np.stack([scene.joints.body_a, scene.joints.body_b], axis=1)
        inner = joints[:, 1] != WORLD
        counts = row_counts(scene)
        self._locked, self._joint_count = joints[inner & (counts > 0)], scene.joint_count
        self._label = structure_labels(self._locked, scene.body_count)
        in_structure = np.bincount(self._label[joints[inner, 0]], counts[inner], scene.body_count)
        most_per_row = MOST_WORK_PER_ROW[self._joint_choice]
        self._most_work = np.maximum(float(MOST_WORK), most_per_row * in_structure)  # by structures' labels
        self._most_work[self._label[joints[is_bond(scene.joints), 0]]] = np.inf  # bonds are always solved at once

    def narrow(self, owner: Ids) -> Ids:
        """Structures across workers, by their lowest bodies, with so few bodies at both ends of joints between workers
        that every worker can solve for these by itself, and that its part of all of them fits in a message."""
        if self._last is None or self._last[0] is not owner:
            self._last = owner, self._find(owner)
        return self._last[1]

    def _find(self, owner: Ids) -> Ids:
        if self._scene.joint_count == 0:
            return NOBODY
        self._find_structures()
        across = self._locked[owner[self._locked[:, 0]] != owner[self._locked[:, 1]]]
        across = across[self._scene.alive[across].all(axis=1)].astype(np.int64)
        if len(across) == 0:
            return NOBODY
        label = self._label[across[:, 0]].astype(np.int64)
        # Every worker of a joint has both its bodies in its part of the structure.
        parts = [np.stack([label, owner[across[:, w]], across[:, end]], axis=1) for w in range(2) for end in range(2)]
        bodies = np.unique(np.concatenate(parts), axis=0)
        pairs, width = np.unique(bodies[:, :2], axis=0, return_counts=True)
        labels, inverse = np.unique(pairs[:, 0], return_inverse=True)
        work = np.bincount(inverse, width**3 / 6)
        is_narrow = work <= self._most_work[labels]
        # A worker's part has blocks for its own of these bodies with each other, and for every joint and ghost.
        part = _places(bodies[:, :2], pairs)
        own = np.bincount(part, owner[bodies[:, 2]] == bodies[:, 1], len(pairs))
        ends = np.concatenate([np.stack([label, owner[across[:, end]]], axis=1) for end in range(2)])
        block_count = own * (own + 1) / 2 + (width - own) + np.bincount(_places(ends, pairs), minlength=len(pairs))
        size = BLOCK_BYTES * block_count + 8 * width
        sent = np.bincount(pairs[:, 1], size * is_narrow[inverse])
        if sent.max() > self._room:
            sent[:] = 0
            bonded_first = np.argsort(np.isfinite(self._most_work[labels]), kind="stable")
            for i in bonded_first[is_narrow[bonded_first]].tolist():  # as many as there is room for
                mine = inverse == i
                after = sent[pairs[mine, 1]] + size[mine]
                is_narrow[i] = after.max() <= self._room
                if is_narrow[i]:
                    sent[pairs[mine, 1]] = after
        narrow: Ids = labels[is_narrow].astype(np.int32)
        return narrow


def row_counts(scene: Scene) -> NDArray[np.int64]:
    """Of each joint, rows that hold its bodies, all the time or at times: locked axes, or at least one for a limit,
    motor, friction or distance. 0: it does not tie them, as a spring, drive or gear does not."""
    table = scene.joints
    locked = ((table.lower == 0) & (table.upper == 0)).sum(axis=1)
    at_times = np.isfinite(table.lower) | np.isfinite(table.upper) | (table.motor_max_force > 0) | (table.friction > 0)
    return np.asarray(np.maximum(locked, at_times.any(axis=1)))


def _places(pairs: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.intp]:
    """Of pairs of a label and a worker, the places among those that are known, which are ascending."""
    return np.searchsorted(known[:, 0] * MOST_WORKERS + known[:, 1], pairs[:, 0] * MOST_WORKERS + pairs[:, 1])


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
