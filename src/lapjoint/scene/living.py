"""LivingScene: a scene in motion. Bodies and joints are added to it and removed; numbers only grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import rotation
from ..arrays.checks import integer_rows
from ..arrays.columns import Columns
from ..arrays.growing import Scalar, grown
from ..errors import LapjointError
from .joints import WORLD
from .scene import Scene

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


NEVER = np.iinfo(np.int32).max
BLOCK = 1024
"""Bodies whose memory is given back together, once all of them are gone."""
STEPS = ("first_step", "last_step", "joint_first_step", "joint_last_step")
"""What is known of every body and joint."""


@dataclass(frozen=True)
class Life:
    """What has become of a scene."""

    began_with: tuple[int, int, int]
    """Its extent at the start."""
    states: Array
    """Of all bodies now."""
    first_step: Ids
    """How many steps had been taken when each body was added; 0 for those that it began with."""
    last_step: Ids
    """How many had been taken when it was removed; NEVER while it is there."""
    joint_first_step: Ids
    joint_last_step: Ids
    """The same of joints: when each broke or was removed."""


class LivingScene(Scene):
    """What a scene began with, and all that was added since. What is removed keeps its row and its number, which is
    never used again. The scene that it began with does not change."""

    def __init__(self, scene: Scene, states_now: Callable[[], Array], life: Life | None = None) -> None:
        """`states_now` returns the states of all bodies as they are. With `life` it has been in motion already."""
        super().__init__(scene.name, **_settings(scene))
        _share(self, scene)
        self._states_now = states_now
        self._joints_of = JointsOf(self.joints)
        self._is_open = False
        self._life = {name: np.zeros(self.extent[1 + name.startswith("joint")], np.int32) for name in STEPS}
        for name in ("last_step", "joint_last_step"):
            self._life[name][:] = NEVER
        if life is not None:
            self._life = {name: np.array(getattr(life, name), np.int32) for name in STEPS}
        self._alive, self._joint_alive = (self._life[name] == NEVER for name in ("last_step", "joint_last_step"))
        self._block_counts = np.zeros(0, np.int32)  # of living bodies
        self._spans: list[slice] | None = None
        self._count_blocks(0)
        self._released_blocks = np.zeros(len(self._block_counts), bool)
        self.began_with = self.extent if life is None else life.began_with
        """Shapes, bodies and joints that it began with."""
        self._so_far: Scene | None = None

    # ---- what lives --------------------------------------------------------------------------------------------------

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which bodies are there, by number; a view that cannot be written to."""
        return _read_only(self._alive)

    @property
    def joint_alive(self) -> NDArray[np.bool_]:
        """Which joints hold, by number: they have neither broken nor been removed, and their bodies are there."""
        return _read_only(self._joint_alive)

    @property
    def living_count(self) -> int:
        """How many bodies are there."""
        return int(self._block_counts.sum())

    @property
    def spans(self) -> list[slice]:
        """Where bodies are there, by number: all of them are in these few runs, and few others are, however many have
        come and gone."""
        if self._spans is None:
            there = np.concatenate([[False], self._block_counts > 0, [False]])
            edges = np.flatnonzero(there[1:] != there[:-1]) * BLOCK
            pairs = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
            self._spans = [slice(first, min(last, self.body_count)) for first, last in pairs]
        return self._spans

    def _count_blocks(self, first: int) -> None:
        """Count bodies from number `first` on, which are new, or there from the start."""
        self._block_counts = grown(self._block_counts, -(-self.body_count // BLOCK))
        block = np.flatnonzero(self._alive[first:]) + first
        np.add.at(self._block_counts, block // BLOCK, 1)
        self._spans = None

    def release(self) -> list[slice]:
        """Give back the memory of bodies that are gone, where all of a block are. Returns the blocks, each once. What
        it began with stays: a restart needs it, and it may be the memory of the scene that was given."""
        self._released_blocks = grown(self._released_blocks, len(self._block_counts), False)
        first, whole = -(-self.began_with[1] // BLOCK), self.body_count // BLOCK
        empty = first + np.flatnonzero((self._block_counts[first:whole] == 0) & ~self._released_blocks[first:whole])
        self._released_blocks[empty] = True
        blocks = [slice(BLOCK * i, BLOCK * (i + 1)) for i in empty.tolist()]
        for block in blocks:
            self.bodies.release(block.start, block.stop)
        return blocks

    def _table_arrays(self, name: str) -> dict[str, NDArray[Any]]:
        """With a rotation and an inertia for bodies whose memory was given back, so that it is a scene."""
        arrays = super()._table_arrays(name)
        rows = np.repeat(self._released_blocks, BLOCK)[: self.body_count]
        for column_name, value in (("quaternion", rotation.IDENTITY), ("inertia", np.eye(3))):
            if name == "bodies" and rows.any():
                column = np.array(arrays[column_name])
                column[: len(rows)][rows] = value
                arrays[column_name] = column
        return arrays

    @property
    def first_step(self) -> Ids:
        """How many steps had been taken when each body was added, by number; 0 for those that it began with."""
        return _read_only(self._life["first_step"])

    @property
    def last_step(self) -> Ids:
        """How many steps had been taken when each body was removed; NEVER for those that are there."""
        return _read_only(self._life["last_step"])

    @property
    def joint_first_step(self) -> Ids:
        """How many steps had been taken when each joint was added."""
        return _read_only(self._life["joint_first_step"])

    @property
    def joint_last_step(self) -> Ids:
        """How many steps had been taken before the one in which each joint broke, or when it was removed; NEVER for
        those that hold."""
        return _read_only(self._life["joint_last_step"])

    @property
    def steps(self) -> dict[str, Ids]:
        """All of these, by name."""
        return {name: getattr(self, name) for name in STEPS}

    def known_joint_ids(self, joint_ids: ArrayLike, what: str) -> Ids:
        """Numbers of joints that hold or ever did; any other raises a LapjointError that begins with `what`."""
        ids = integer_rows("joint", joint_ids, np.size(joint_ids), what).astype(np.int32)
        for joint in ids[(ids < 0) | (ids >= self.joint_count)]:
            raise LapjointError(f"{what}: joint {joint} does not exist, the scene has {self.joint_count} joints")
        return ids

    def checked_joint_ids(self, joint_ids: ArrayLike, what: str) -> Ids:
        """Numbers of joints that hold; any other raises a LapjointError that begins with `what`."""
        ids = self.known_joint_ids(joint_ids, what)
        for joint in ids[~self._joint_alive[ids]]:
            raise LapjointError(f"{what}: joint {joint} has broken or was removed before")
        return ids

    def so_far(self) -> Scene:
        """A scene with all that is or ever was in this one, which stays so when more is added here; the same one until
        then. Tables are not copied."""
        if self._so_far is None or self._so_far.extent != self.extent:
            self._so_far = Scene(self.name, **_settings(self))
            _share(self._so_far, self)
        return self._so_far

    # ---- changes -----------------------------------------------------------------------------------------------------

    @contextmanager
    def open(self, step_count: int) -> Iterator[None]:
        """Where the simulation adds to it, after so many steps. After an exception it is as it was."""
        before, self._is_open = self.extent, True
        try:
            yield
        except BaseException:
            self._cut(before)
            raise
        finally:
            self._is_open = False
            for prefix, count in (("", self.body_count), ("joint_", self.joint_count)):
                for name, fill in ((f"{prefix}first_step", step_count), (f"{prefix}last_step", NEVER)):
                    self._life[name] = grown(self._life[name], count, fill)
            first = len(self._alive)
            self._alive = grown(self._alive, self.body_count, True)
            self._count_blocks(first)
            self._joint_alive = grown(self._joint_alive, self.joint_count, True)

    def _cut(self, extent: tuple[int, int, int]) -> None:
        shapes, bodies, joints = extent
        for shape in self.shapes[shapes:]:
            del self._shape_ids[shape]
        del self.shapes[shapes:]
        for body in range(bodies, self.body_count):
            self._body_ids.pop(self.body_names.pop(body, ""), None)
        self.bodies.cut(bodies)
        self.joints.cut(joints)

    def remove(self, body_ids: Ids, step_count: int) -> Ids:
        """Let bodies go, and their joints with them, after so many steps. Returns these joints."""
        self._alive[body_ids], self._life["last_step"][body_ids] = False, step_count
        np.subtract.at(self._block_counts, body_ids // BLOCK, 1)
        self._spans = None
        found = self._joints_of.find(body_ids)
        joints: Ids = found[self._joint_alive[found]].astype(np.int32)
        self.remove_joints(joints, step_count)
        return joints

    def remove_joints(self, joint_ids: Ids, step_count: int | Ids) -> None:
        """Let joints that hold go, all after so many steps or each after its own number of them."""
        self._joint_alive[joint_ids], self._life["joint_last_step"][joint_ids] = False, step_count

    def _require_unlocked(self) -> None:
        if not self._is_open:
            raise LapjointError(
                f"scene {self.name!r} is in motion: its simulation changes it (bodies.add, bodies.remove, joints.add, "
                "joints.remove, set_states)"
            )

    def _check_joint_bodies(self, body_a: NDArray[Any], body_b: NDArray[Any], title: Any) -> None:
        super()._check_joint_bodies(body_a, body_b, title)
        for side, ids in (("a", body_a), ("b", body_b)):
            for row in np.flatnonzero((ids != WORLD) & ~self._alive[ids]):
                raise LapjointError(f"{title(int(row))}: body {side}, {self.body_title(ids[row])}, was removed")

    def _poses(self, body_ids: NDArray[np.int64]) -> tuple[Array, Array]:
        states = self._states_now()[body_ids]
        return states[:, :3], states[:, 3:7] / np.linalg.norm(states[:, 3:7], axis=1)[:, None]


class JointsOf:
    """Which joints bodies have. Joints that are added later cost no look at those of before."""

    def __init__(self, joints: Columns) -> None:
        self._joints = joints
        self._sorted: NDArray[np.int64] | None = None  # ends of joints by their bodies
        self._bodies: NDArray[np.int32] = np.empty(0, np.int32)
        self._later: dict[int, list[int]] = {}
        self._count = 0

    def find(self, body_ids: Ids) -> Ids:
        """Joints of these bodies, ascending."""
        self._read()
        assert self._sorted is not None
        low, high = np.searchsorted(self._bodies, body_ids), np.searchsorted(self._bodies, body_ids, "right")
        parts = [self._sorted[a:b] for a, b in zip(low.tolist(), high.tolist(), strict=True) if b > a]
        parts += [np.array(self._later[body]) for body in body_ids.tolist() if body in self._later]
        return np.unique(np.concatenate([np.empty(0, np.int64), *parts])).astype(np.int32)

    def _read(self) -> None:
        joints = self._joints
        if self._sorted is None:
            ends = np.concatenate([joints.body_a, joints.body_b])
            order = np.argsort(ends, kind="stable")
            self._sorted, self._bodies = order % max(len(joints), 1), ends[order]
            self._count = len(joints)
        for joint in range(self._count, len(joints)):
            for body in (int(joints.body_a[joint]), int(joints.body_b[joint])):
                self._later.setdefault(body, []).append(joint)
        self._count = len(joints)


def _read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    view = array[:]
    view.flags.writeable = False
    return view


def _settings(scene: Scene) -> dict[str, Any]:
    """What a scene is made with."""
    return {
        name: getattr(scene, name) for name in ("gravity", "timestep", "iterations", "growth_depth", "search_depth")
    }


def _share(mine: Scene, theirs: Scene) -> None:
    """Let an empty scene have all that another has, in the same memory."""
    mine.camera = theirs.camera
    mine.shapes, mine._shape_ids = list(theirs.shapes), dict(theirs._shape_ids)
    for name in ("bodies", "statics", "joints", "sensors"):
        getattr(mine, name).share(getattr(theirs, name))
    mine.motions = dict(theirs.motions)
    mine.fields = list(theirs.fields)
    mine.glued = list(theirs.glued)
    mine._ignored = list(theirs._ignored)
    mine.body_names, mine._body_ids = dict(theirs.body_names), dict(theirs._body_ids)
