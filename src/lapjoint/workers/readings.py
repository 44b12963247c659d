"""Answers to questions about the last step: forces of joints, contact points, forces between groups of bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines import ContactPoints, Engine, ReadingEngine
from ..errors import WorkerError

Array = NDArray[np.float64]
Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]
Arrays = dict[str, NDArray[Any]]

JOINT_FORCES, CONTACT_POINTS, CONTACT_FORCES = "joint forces", "contact points", "contact forces"
CONTACTS = "contacts"
"""Those of the last step, as it began: the worker itself keeps them."""


def _engine(engine: Engine) -> ReadingEngine:
    if not isinstance(engine, ReadingEngine):
        raise WorkerError("its engine keeps no forces")
    return engine


def joint_forces(engine: Engine, asked: Arrays) -> Arrays:
    """Those of `joints`, (n, 6)."""
    return {"forces": _engine(engine).joint_forces(asked["joints"])}


def contact_points(engine: Engine, asked: Arrays) -> Arrays:
    """Those that this worker reports, of `numbers` (bodies, or -1 - s), or of all if there are none."""
    points = _own_points(engine, asked)
    if "numbers" in asked:
        points = points.taken(np.isin(points.bodies, asked["numbers"]).any(axis=1))
    return dict(vars(points))


def contact_forces(engine: Engine, asked: Arrays) -> Arrays:
    """Impulses that groups of bodies had from others, (n, 6): linear, and angular about the world's origin. See
    `group_sums` for the groups."""
    points = _own_points(engine, asked)
    return {"sums": group_sums(points, asked["group"], asked["others"], len(asked["has_others"]), asked["has_others"])}


ANSWERS = {JOINT_FORCES: joint_forces, CONTACT_POINTS: contact_points, CONTACT_FORCES: contact_forces}


def _own_points(engine: Engine, asked: Arrays) -> ContactPoints:
    points = _engine(engine).contact_points()
    if len(asked["overlap"]) == 0:
        return points
    return points.taken(is_reported(points.bodies, asked["overlap"], asked["weight"], int(asked["worker"][0])))


def is_reported(bodies: Ids, overlap: Ids, weight: Array, worker: int) -> Mask:
    """Of contacts that this worker has, those that it reports: where several have one, the worker of largest weight
    does, and of several such the first. `weight` is of all workers in each body of the overlap, which is ascending,
    below zero where a worker does not have it."""
    place = np.minimum(np.searchsorted(overlap, bodies), len(overlap) - 1)
    is_shared = overlap[place] == bodies
    about = np.where(is_shared[:, :, None], weight[place], np.inf).min(axis=1)
    # A body that is in no overlap, and not static, is in this worker alone.
    is_alone = ((bodies >= 0) & ~is_shared).any(axis=1)
    return np.asarray(is_alone | (np.argmax(about, axis=1) == worker))


def group_sums(points: ContactPoints, group: Ids, others: Ids, count: int, has_others: Mask) -> Array:
    """What each of `count` groups had from its others: (count, 6) impulses, linear and about the world's origin.

    `group` and `others` are rows of a number (of a body, or -1 - s) and the pair of groups that it is of; where a pair
    does not have others, they are all that are not in its group.
    """
    impulse = points.impulse
    twist = np.cross(points.point, impulse) + points.angular_impulse
    both = np.concatenate([impulse, twist], axis=1)
    sums = np.zeros((count, 6))
    in_group, in_others = _Places(group, count), _Places(others, count)
    for side, sign in ((0, 1.0), (1, -1.0)):
        rows, pairs = in_group.pairs_of(points.bodies[:, side])
        other = points.bodies[rows, 1 - side]
        meets = np.where(has_others[pairs], in_others.has(other, pairs), ~in_group.has(other, pairs))
        np.add.at(sums, pairs[meets], sign * both[rows[meets]])
    return sums


class _Places:
    """Which numbers are of which pairs of groups."""

    def __init__(self, rows: Ids, count: int) -> None:
        self._count = count
        self._keys = np.sort(rows[:, 0].astype(np.int64) * count + rows[:, 1])

    def has(self, numbers: Ids, pairs: NDArray[np.int64]) -> Mask:
        keys = numbers.astype(np.int64) * self._count + pairs
        place = np.searchsorted(self._keys, keys)
        found = np.zeros(len(keys), bool)
        inside = place < len(self._keys)
        found[inside] = self._keys[place[inside]] == keys[inside]
        return found

    def pairs_of(self, numbers: Ids) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of each number, all its pairs: the row in `numbers` of each, and the pair."""
        first = numbers.astype(np.int64) * self._count
        start, stop = np.searchsorted(self._keys, first), np.searchsorted(self._keys, first + self._count)
        length = stop - start
        rows = np.repeat(np.arange(len(numbers)), length)
        place = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length) + np.repeat(start, length)
        return rows, self._keys[place] % self._count
