"""SceneContent: the tables of a scene, and what can be read from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays.checks import as_rows, integer_rows, is_finite
from ..arrays.columns import Columns
from ..errors import LapjointError
from .fields import GivenField
from .glue import Glued
from .joints import WORLD
from .locks import Locks
from .motions import GivenMotion
from .sensors import SensorTable
from .shapes import STATIC_ONLY, MovingShape, StaticShape, bounding_radius
from .tables import BODY_LAYOUT, JOINT_LAYOUT, STATIC_LAYOUT

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

LONGEST_TIMESTEP = 1e6
"""Seconds: beyond what anybody simulates, and short enough for its square to be a number."""


class SceneContent:
    """Bodies, static bodies, joints and sensors, each in a table of its own, and what belongs to them."""

    def __init__(
        self,
        name: str = "scene",
        *,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        timestep: float = 0.002,
        iterations: int = 50,
        growth_depth: int = 0,
        search_depth: int = 4,
    ) -> None:
        if not isinstance(name, str):
            raise LapjointError(f"name is {name!r}, expected a text")
        self.name = name
        self.gravity = as_rows("gravity", gravity, 1, (3,))[0]
        if not (is_finite(timestep) and timestep > 0):
            raise LapjointError(f"timestep is {timestep}, expected a positive number of seconds")
        if timestep > LONGEST_TIMESTEP:
            raise LapjointError(f"timestep is {timestep} s, expected at most {LONGEST_TIMESTEP:g}")
        self.timestep = float(timestep)
        self.iterations = int(integer_rows("iterations", iterations, 1, None, 1)[0])
        self.growth_depth = int(integer_rows("growth_depth", growth_depth, 1, None, 0)[0])
        self.search_depth = int(integer_rows("search_depth", search_depth, 1, None, 0)[0])
        self.camera: tuple[tuple[float, float, float], tuple[float, float, float]] | None = None
        """Where a picture is taken from and what it looks at; None lets the viewer choose."""
        self.shapes: list[StaticShape] = []
        self._shape_ids: dict[StaticShape, int] = {}
        self._mass_properties: dict[MovingShape, tuple[float, Array]] = {}
        self.bodies = Columns(BODY_LAYOUT)
        self.statics = Columns(STATIC_LAYOUT)
        self.joints = Columns(JOINT_LAYOUT)
        self.sensors = SensorTable()
        self.motions: dict[int, GivenMotion] = {}
        """Of static bodies that are kinematic, by number: how they move from the start."""
        self.fields: list[GivenField] = []
        """Force fields, as numbers, in the order they were added."""
        self.glued: list[Glued] = []
        """Bodies that come apart when they are hit: `fracture.add_glued` adds them."""
        self._ignored: list[Ids] = []
        self.body_names: dict[int, str] = {}
        self._body_ids: dict[str, int] = {}
        self.locks = Locks()

    def __getstate__(self) -> dict[str, Any]:
        """A copy is nobody's: it is not locked."""
        return {**vars(self), "locks": Locks()}

    # ---- counts and numbers ---------------------------------------------------------------------------------------

    @property
    def body_count(self) -> int:
        return len(self.bodies)

    @property
    def static_count(self) -> int:
        return len(self.statics)

    @property
    def kinematic_ids(self) -> Ids:
        """Static bodies that are kinematic, ascending."""
        return np.array(sorted(self.motions), np.int32)

    @property
    def joint_count(self) -> int:
        return len(self.joints)

    @property
    def states(self) -> Array:
        """Initial states, (body_count, 13): position, quaternion w x y z, linear velocity, angular velocity.

        A copy that cannot be written to; `set_states` changes them.
        """
        states = states_from(self, 0)
        states.flags.writeable = False
        return states

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which bodies are there, by number: all, but for those that a simulation has removed."""
        return np.ones(self.body_count, bool)

    @property
    def joint_alive(self) -> NDArray[np.bool_]:
        """Which joints hold, by number: all, but for those that have broken or were removed."""
        return np.ones(self.joint_count, bool)

    @property
    def ignored_pairs(self) -> Ids:
        """Pairs of bodies that never touch, (n, 2), lower number first: those asked for, and jointed neighbours."""
        joints = self.joints
        quiet = ~joints.collide & (joints.body_b != WORLD) & self.joint_alive
        jointed = np.stack([joints.body_a[quiet], joints.body_b[quiet]], axis=1)
        pairs = np.sort(np.concatenate([*self._ignored, jointed]), axis=1)
        return np.unique(pairs, axis=0).astype(np.int32).reshape(-1, 2)

    def body_id(self, name: str) -> int:
        """The number of the body with that name."""
        try:
            return self._body_ids[name]
        except KeyError:
            raise LapjointError(f"scene {self.name!r} has no body named {name!r}") from None

    def body_title(self, body_id: int) -> str:
        """How messages call a body: its number, and its name if it has one."""
        name = self.body_names.get(int(body_id))
        return f"body {body_id} ({name!r})" if name else f"body {body_id}"

    def sensor_id(self, name: str) -> int:
        """The number of the sensor with that name."""
        for number, known in self.sensors.names.items():
            if known == name:
                return number
        raise LapjointError(f"scene {self.name!r} has no sensor named {name!r}")

    def bounding_radii(self, first: int = 0) -> Array:
        """Radius of each body's bounding sphere, from number `first` on [m]."""
        used = np.unique(self.bodies.shape_id[first:])
        by_shape = np.zeros(len(self.shapes))
        by_shape[used] = [bounding_radius(self._moving(i)) for i in used]
        return np.asarray(by_shape[self.bodies.shape_id[first:]])

    @property
    def extent(self) -> tuple[int, int, int]:
        """How many shapes, bodies and joints there are: numbers only grow."""
        return len(self.shapes), self.body_count, self.joint_count

    def _moving(self, shape_id: int) -> MovingShape:
        shape = self.shapes[shape_id]
        assert not isinstance(shape, STATIC_ONLY)
        return shape

    def _table_arrays(self, name: str) -> dict[str, NDArray[Any]]:
        """The columns of a table, one of bodies, statics and joints, as they are written."""
        return self._table(name).to_arrays()

    def _table(self, name: str) -> Columns:
        """One of bodies, statics and joints."""
        return {"bodies": self.bodies, "statics": self.statics, "joints": self.joints}[name]

    def _title(self, name: str | None, row: int = 0) -> str:
        number = self.body_count + row
        return f"body {number} ({name!r})" if name else f"body {number}"

    def _shape_id(self, shape: StaticShape) -> int:
        if shape not in self._shape_ids:
            self._shape_ids[shape] = len(self.shapes)
            self.shapes.append(shape)
        return self._shape_ids[shape]

    # ---- checks ---------------------------------------------------------------------------------------------------

    def _check_joint_bodies(self, body_a: NDArray[Any], body_b: NDArray[Any], title: Any) -> None:
        """Refuse joints to missing bodies, from the WORLD, or from a body to itself."""
        for side, ids, lowest in (("a", body_a, 0), ("b", body_b, WORLD)):
            missing = np.flatnonzero((ids < lowest) | (ids >= self.body_count))
            if len(missing):
                row = int(missing[0])
                raise LapjointError(
                    f"{title(row)}: body {side} is {ids[row]}, but there are {self.body_count} bodies"
                    + (" (only body b may be the WORLD)" if ids[row] == WORLD else "")
                )
        same = np.flatnonzero(body_a == body_b)
        if len(same):
            raise LapjointError(f"{title(int(same[0]))}: joins {self.body_title(body_a[same[0]])} to itself")

    def _check_sensor_body(self, body: int, title: str) -> None:
        if body < 0 and -1 - body not in self.motions:
            raise LapjointError(f"{title}: static body {-1 - body} is not kinematic; without `body` it stays in place")
        if body >= self.body_count:
            raise LapjointError(f"{title}: body {body} does not exist, the scene has {self.body_count} bodies")


def states_from(scene: SceneContent, first: int) -> Array:
    """Initial states of all bodies from number `first` on."""
    b = scene.bodies
    columns = (b.position, b.quaternion, b.linear_velocity, b.angular_velocity)
    return np.concatenate([column[first:] for column in columns], axis=1)


def ignored_explicitly(scene: SceneContent) -> Ids:
    """Pairs of bodies that `ignore` was called with, (n, 2), in the order of the calls."""
    return np.concatenate([np.empty((0, 2), np.int32), *scene._ignored])


def checked_ids(scene: SceneContent, body_ids: ArrayLike, what: str) -> Ids:
    """Numbers of bodies of a scene; any other raises a LapjointError that begins with `what`."""
    ids = integer_rows("body", body_ids, np.size(body_ids), what)
    for body in ids[(ids < 0) | (ids >= scene.body_count)]:
        raise LapjointError(f"{what}: body {body} does not exist, the scene has {scene.body_count} bodies")
    for body in ids[~scene.alive[ids]]:
        raise LapjointError(f"{what}: {scene.body_title(body)} was removed")
    return ids.astype(np.int32)


def add_ignored(scene: SceneContent, bodies_a: ArrayLike, bodies_b: ArrayLike) -> None:
    """Let these pairs of bodies pass through each other."""
    count = max(np.size(bodies_a), np.size(bodies_b))
    a, b = (integer_rows("body", ids, count, "ignore") for ids in (bodies_a, bodies_b))
    pairs = np.stack([a, b], axis=1)
    for a, b in pairs[(pairs < 0).any(axis=1) | (pairs >= scene.body_count).any(axis=1)]:
        raise LapjointError(f"ignore: bodies {a} and {b}: no such body, there are {scene.body_count}")
    for a in pairs[pairs[:, 0] == pairs[:, 1], 0]:
        raise LapjointError(f"ignore: {scene.body_title(a)} is paired with itself")
    scene._ignored.append(pairs.astype(np.int32))
