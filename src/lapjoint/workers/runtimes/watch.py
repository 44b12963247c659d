"""Whose states the server has to have after every step, where workers are on other machines.

The server decides who simulates what by the contacts between bodies that share no worker. It has to know exactly where
a body is that may be about to touch one of those, and of all others only that they are not. So a worker sends
the states of

- the bodies that are watched: whose neighbourhood is not all their own worker's,
- the bodies that have moved by more than a limit since it last sent theirs.

Of any other body the server's table is off by that limit at most. Watched are bodies within four limits of one that has
other workers, so no other body can touch such a one before the server has its state, as long as none moves by three
limits in a step. The server asks for all states if one does and comes near bodies that are not watched, if it sends
another worker a body whose state it does not have exactly, and if somebody looks at them. So what comes of a step is
the same to the last bit as if it knew all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...algorithms import Membership, load_algorithms
from ...arrays.growing import grown
from ...engines import CONTACT_MARGIN
from ...params import Params
from ...scene import Scene
from ...scene.shapes import STATIC_ONLY, bounding_box, bounding_radius
from ..messages import Command, Migrate, StepCommand, WriteState

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

POSE = 7
"""Position and quaternion: where a body is."""
LIMIT = 0.06
"""How far a body may be from where the server takes it to be, in length units. Less: fewer bodies are watched, more
are sent because they moved."""
MOST = 3.0
"""So many limits a body may move in a step before the server asks for all states."""


def limit_of(params: Params) -> float:
    """[m]"""
    return LIMIT * (params.units.length or 1.0)


def turn_reaches(scene: Scene, first: int = 0) -> Array:
    """How far the farthest corner of each body, from number `first` on, is from its position [m]; 0 for balls, which
    look the same turned."""
    used, shape = np.unique(scene.bodies.shape_id[first:], return_inverse=True)
    shapes = [scene.shapes[i] for i in used]
    boxes = np.array([bounding_box(one) for one in shapes]).reshape(-1, 2, 3)
    radius = np.array([0.0 if isinstance(one, STATIC_ONLY) else bounding_radius(one) for one in shapes])
    ball = (boxes[:, 1] == radius[:, None]).all(axis=1) & (boxes[:, 0] == 0).all(axis=1)
    reach = np.where(ball, 0.0, np.linalg.norm(boxes, axis=2).sum(axis=1))
    return np.asarray(reach[shape])


def distances(before: Array, after: Array, reach: Array) -> Array:
    """How far any point of a body has moved from one pose to another, at most [m]."""
    step = after[:, :3] - before[:, :3]
    way = np.sqrt(np.einsum("ij,ij->i", step, step))
    if not reach.any():
        return np.asarray(way)
    p, q = before[:, 3:POSE], after[:, 3:POSE]
    q = np.where(np.einsum("ij,ij->i", p, q)[:, None] < 0, -q, q)
    turn = np.sqrt(np.einsum("ij,ij->i", q - p, q - p))
    # A point at distance r moves by 2 r sin(angle / 2), which is at most 2 r |dq|.
    return np.asarray(way + 2 * reach * turn)


class Tracker:
    """A worker's side: what the server knows of its bodies."""

    def __init__(self, scene: Scene, params: Params) -> None:
        self._scene, self._reach = scene, turn_reaches(scene)
        self._limit = limit_of(params)
        self._known = np.full((scene.body_count, POSE), np.inf)

    def grow(self) -> None:
        """The scene has more bodies."""
        count, before = self._scene.body_count, len(self._reach)
        self._reach, self._known = grown(self._reach, count), grown(self._known, count, np.inf)
        self._reach[before:] = turn_reaches(self._scene, before)

    def known(self, ids: Ids, states: Array) -> None:
        """The server has these states, one row per body."""
        self._known[ids] = states[:, :POSE]

    def moved(self, ids: Ids, states: Array) -> Ids:
        """Of these bodies, those that are farther than the limit from where the server takes them to be."""
        with np.errstate(invalid="ignore"):
            far = distances(self._known[ids], states[:, :POSE], self._reach[ids])
        return ids[~(far <= self._limit)]  # NaN is far


class Watch:
    """The server's side: who is watched, from the commands that workers are given."""

    def __init__(self, scene: Scene, params: Params) -> None:
        self._scene, self._reach = scene, turn_reaches(scene)
        self._limit = limit_of(params)
        unit = params.units.length or 1.0
        # Where overlap grows, neighbours of such bodies are soon given to other workers too.
        ahead = 0.5 * unit * min(params.blend.growth_depth or 0, 1)
        algorithms = load_algorithms(params.algorithms)
        self._make_finder = partial(algorithms.PairFinder, scene, CONTACT_MARGIN * unit + 2 * self._limit + ahead)
        self._finder = self._make_finder()
        self._start = np.empty((scene.body_count, POSE))
        self._label = np.zeros(scene.body_count, np.int64)
        self._active: list[NDArray[np.bool_]] = []

    def set_worker(self, index: int) -> None:
        """A fresh and empty worker at this place, or at the end of the list."""
        self._active[index : index + 1] = [np.zeros(len(self._reach), bool)]

    def set_worker_count(self, worker_count: int) -> None:
        """Those at the end have left."""
        del self._active[worker_count:]

    def grow(self) -> None:
        """The scene has more bodies."""
        count, before = self._scene.body_count, len(self._reach)
        self._reach, self._start = grown(self._reach, count), grown(self._start, count)
        self._reach[before:] = turn_reaches(self._scene, before)
        self._active = [grown(active, count, False) for active in self._active]
        self._label = grown(self._label, count)
        self._finder = self._make_finder()

    def note(self, commands: Sequence[Command | None]) -> None:
        """These are given to the workers."""
        for active, command in zip(self._active, commands, strict=True):
            if isinstance(command, StepCommand | Migrate):
                active[command.deactivate] = False
                if not self._scene.alive[command.deactivate].all():
                    self._finder = self._make_finder()  # without those that were removed
            if isinstance(command, StepCommand | Migrate | WriteState):
                active[command.activate] = True

    def watched(self, states: Array) -> list[Ids]:
        """For each worker the bodies whose states it sends after the step that begins with these states."""
        table = np.array(self._active)
        # Bodies with one worker have that worker's number; the server itself knows those with several, or none.
        several = len(self._active)
        self._label = np.where(table.sum(axis=0) == 1, table.argmax(axis=0), several)
        near = np.unique(self._finder.find(states, Membership(self._label, several + 1)))
        self._start[:] = states[:, :POSE]
        worker = self._label[near]
        return [near[worker == w].astype(np.int32) for w in range(several)]

    def known_without(self, workers: Sequence[int]) -> Ids:
        """Bodies whose states the server has without these workers' replies: none of these workers alone has one."""
        return np.flatnonzero(~np.isin(self._label, workers)).astype(np.int32)

    def is_fast(self, ids: Ids, states: Array) -> bool:
        """Whether one of these bodies, one row each, has moved too far in the step for the watch to hold."""
        if len(ids) == 0:
            return False
        far = distances(self._start[ids], states[:, :POSE], self._reach[ids])
        return not bool((far < MOST * self._limit).all())
