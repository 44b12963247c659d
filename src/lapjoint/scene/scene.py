"""Scene: bodies, shapes, joints and their initial states, in arrays. It knows no engine.

A body is a rigid body that moves; a static body cannot be moved and belongs to no graph. One that moves by itself, as
it is told, is kinematic. Bodies, static bodies and joints
are numbered from zero in the order they are added, each in a table of their own. Invalid input raises immediately,
naming the body by number and name, and the scene stays as it was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import rotation
from ..arrays.checks import (
    as_rows,
    flag_rows,
    inertia_rows,
    integer_rows,
    is_finite,
    positive_rows,
    table,
    unit_quaternions,
    unit_vectors,
)
from ..arrays.columns import Columns
from ..arrays.packing import pack_arrays, unpack_arrays
from ..errors import LapjointError, shortened
from ..system.files import read_file, write_file
from ..system.foreign import machine_memory
from .bonds import BOND_LAYOUT, Bonds, check_bonds
from .field_functions import FieldFunction, find_function
from .fields import FIELD_ARRAYS, AnyField, GivenField, pack_fields, unpack_fields, with_functions
from .file import TABLES, describe_shape, pack_scene, restore_shape, unpack_scene
from .filters import ALL_GROUPS, filter_rows
from .glue import Glued, check_glued, pack_glued, unpack_glued
from .height_field import HeightField
from .joints import KINDS, WORLD, Breaks, Distance, Fixed, Gear, Joint, JointKind, axes_of, frame_axes, strengths
from .materials import COMBINE_RULES, Material, surface_of
from .motions import MOTION_ARRAYS, ZERO, GivenMotion, Motion, pack_motions, surface_velocities, unpack_motions
from .part_filters import widest_filters
from .sensors import IN_WORLD, SensorTable
from .shapes import (
    STATIC_ONLY,
    MovingShape,
    StaticShape,
    TriangleMesh,
    bounding_radius,
    check_shape,
    mass_properties,
)
from .states import checked_states
from .tables import BODY_LAYOUT, JOINT_LAYOUT, MAY_BE_MISSING, STATIC_LAYOUT

Array = NDArray[np.float64]
Ids = NDArray[np.int32]
SINGULAR = {"linear_velocity": "linear_velocities", "angular_velocity": "angular_velocities", "label": "labels"}
BODY_OPTIONS = (
    *SINGULAR.values(),
    *("mass", "density", "inertia", "material", "group", "mask"),
    *("hit_impulse", "hit_speed", "touch_events"),
)

LONGEST_TIMESTEP = 1e6
"""Seconds: beyond what anybody simulates, and short enough for its square to be a number."""


class Scene:
    """One rigid-body scene. Gravity in m/s^2, timestep in seconds, the world's z axis up."""

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
        self._locks: list[str] = []

    def __getstate__(self) -> dict[str, Any]:
        """A copy is nobody's: it is not locked."""
        return {**vars(self), "_locks": []}

    # ---- what is in it -------------------------------------------------------------------------------------------

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
        states = self.states_of(0)
        states.flags.writeable = False
        return states

    def states_of(self, first: int) -> Array:
        """Initial states of all bodies from number `first` on."""
        b = self.bodies
        columns = (b.position, b.quaternion, b.linear_velocity, b.angular_velocity)
        return np.concatenate([column[first:] for column in columns], axis=1)

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which bodies are there, by number: all, but for those that a simulation has removed."""
        return np.ones(self.body_count, bool)

    @property
    def joint_alive(self) -> NDArray[np.bool_]:
        """Which joints hold, by number: all, but for those that have broken or were removed."""
        return np.ones(self.joint_count, bool)

    @property
    def ignored_explicitly(self) -> Ids:
        """Pairs of bodies that `ignore` was called with, (n, 2), in the order of the calls."""
        return np.concatenate([np.empty((0, 2), np.int32), *self._ignored])

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

    def bounding_radii(self, first: int = 0) -> Array:
        """Radius of each body's bounding sphere, from number `first` on [m]."""
        used = np.unique(self.bodies.shape_id[first:])
        by_shape = np.zeros(len(self.shapes))
        by_shape[used] = [bounding_radius(self._moving(i)) for i in used]
        return np.asarray(by_shape[self.bodies.shape_id[first:]])

    def widest_filters(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Group and mask of each body; where parts have their own, the bits that any part has."""
        return widest_filters(self.bodies, self.shapes)

    def _moving(self, shape_id: int) -> MovingShape:
        shape = self.shapes[shape_id]
        assert not isinstance(shape, STATIC_ONLY)
        return shape

    # ---- bodies --------------------------------------------------------------------------------------------------

    def add_body(
        self,
        shape: MovingShape,
        position: ArrayLike = (0.0, 0.0, 0.0),
        quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        *,
        name: str | None = None,
        **options: Any,
    ) -> int:
        """Add one body; options as for add_bodies, singular or plural. Returns its number."""
        title = self._title(name)
        given = _plural(options, BODY_OPTIONS, title)
        names = None if name is None else [name]
        place = as_rows("position", position, 1, (3,), title)
        turn = as_rows("quaternion", quaternion, 1, (4,), title)
        return self.add_bodies(shape, place, turn, names=names, **given)[0]

    def add_bodies(
        self,
        shape: MovingShape | Sequence[MovingShape],
        positions: ArrayLike,
        quaternions: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        *,
        linear_velocities: ArrayLike | None = None,
        angular_velocities: ArrayLike | None = None,
        mass: ArrayLike | None = None,
        density: ArrayLike | None = None,
        inertia: ArrayLike | None = None,
        material: Material | None = None,
        group: int = 1,
        mask: int = ALL_GROUPS,
        labels: ArrayLike | None = None,
        hit_impulse: ArrayLike = np.inf,
        hit_speed: ArrayLike = np.inf,
        touch_events: ArrayLike = False,
        names: Sequence[str] | None = None,
        **options: Any,
    ) -> range:
        """Add many bodies at once. Every argument is one value for all or one per body.

        Velocities, zero unless given, and labels may be named in the singular too. Mass in kg, or density in kg/m^3
        (1000 if neither is given). Inertia is computed for a solid of even density unless given: three principal
        moments [kg m^2], or a 3x3 tensor in the body's frame. Two bodies may touch when each one's group has a bit in
        the other's mask. Bodies of one label belong together in the first partition. A contact that does `hit_impulse`
        [N s] or more within a step is reported as a hit (docs/breaking.md); a touch that begins at `hit_speed` [m/s] or
        more, and with `touch_events` begin and end of every touch, as docs/reading.md has it. Returns the new bodies'
        numbers.
        """

        def title(row: int) -> str:
            return self._title(names[row] if names is not None and row < len(names) else None, row)

        self._require_unlocked()
        plural = {
            "linear_velocities": linear_velocities,
            "angular_velocities": angular_velocities,
            "labels": labels,
        }
        given = {name: value for name, value in plural.items() if value is not None}
        given |= _plural(options, (*BODY_OPTIONS, "names"), title(0), given)
        positions = table("position", positions, 3, title)
        count = len(positions)
        shapes, unit_volume, unit_inertia = self._moving_shapes(shape, count, title)
        if mass is not None and density is not None:
            raise LapjointError(f"{title(0)}: both mass and density are given, expected one of them")
        if mass is not None:
            masses = positive_rows("mass", mass, count, title)
        else:
            densities = positive_rows("density", 1000.0 if density is None else density, count, title)
            masses = densities * unit_volume
        if inertia is None:
            tensors = unit_inertia * (masses / unit_volume)[:, None, None]
        else:
            tensors = inertia_rows(inertia, count, title)
        if names is not None:
            self._check_names(names, count, title)
        values: dict[str, Any] = {
            "position": as_rows("position", positions, count, (3,), title),
            "quaternion": unit_quaternions(quaternions, count, title),
            "linear_velocity": as_rows(
                "linear velocity", given.get("linear_velocities", (0.0, 0.0, 0.0)), count, (3,), title
            ),
            "angular_velocity": as_rows(
                "angular velocity", given.get("angular_velocities", (0.0, 0.0, 0.0)), count, (3,), title
            ),
            "mass": masses,
            "inertia": tensors,
            **surface_of(material, title(0)).columns(),
            "group": filter_rows("group", group, count, title),
            "mask": filter_rows("mask", mask, count, title),
            "label": integer_rows("label", given.get("labels", 0), count, title),
            "hit_impulse": positive_rows("hit_impulse", hit_impulse, count, title, infinite=True),
            "hit_speed": positive_rows("hit_speed", hit_speed, count, title, infinite=True),
            "touch_events": flag_rows("touch_events", touch_events, count, title),
        }
        # Nothing is wrong: only now does the scene change.
        ids = self.bodies.append(count, {**values, "shape_id": [self._shape_id(one) for one in shapes if count]})
        if names is not None:
            self.body_names.update(zip(ids, names, strict=True))
            self._body_ids.update(zip(names, ids, strict=True))
        return ids

    def add_static(
        self,
        shape: StaticShape,
        position: ArrayLike = (0.0, 0.0, 0.0),
        quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        *,
        material: Material | None = None,
        group: int = 1,
        mask: int = ALL_GROUPS,
        surface_velocity: ArrayLike = ZERO,
    ) -> int:
        """Add one static body: any shape, planes, triangle meshes and height fields too. Returns its number.

        What touches it is carried along by `surface_velocity` as by a belt: three numbers [m/s] in the body's frame, or
        six, with an angular velocity about its position [rad/s]. What of it is not along the surface does nothing.
        """
        place = as_rows("position", position, 1, (3,), f"static body {self.static_count}")
        options: dict[str, Any] = {
            "material": material,
            "group": group,
            "mask": mask,
            "surface_velocity": surface_velocity,
        }
        return self.add_statics(shape, place, quaternion, **options)[0]

    def add_kinematic(
        self,
        shape: StaticShape,
        position: ArrayLike = (0.0, 0.0, 0.0),
        quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        *,
        motion: Motion | None = None,
        material: Material | None = None,
        group: int = 1,
        mask: int = ALL_GROUPS,
        surface_velocity: ArrayLike = ZERO,
    ) -> int:
        """Add one kinematic body: a static body that moves as `motion` says, whatever touches it. Returns its number,
        which is that of a static body.

        None: it rests until a simulation moves it. With Keyframes its pose is theirs; `position` and `quaternion` are
        those of all other motions' beginning. Any static shape can move.
        """
        title = f"kinematic body {self.static_count}"
        place = as_rows("position", position, 1, (3,), title)
        turn = unit_quaternions(quaternion, 1, lambda _: title)
        given = GivenMotion.of(motion, title, np.concatenate([place[0], turn[0]]))
        first = given.pose(0, self.timestep)
        options: dict[str, Any] = {
            "material": material,
            "group": group,
            "mask": mask,
            "surface_velocity": surface_velocity,
        }
        number = self.add_statics(shape, first[None, :3], first[3:], **options)[0]
        self.motions[number] = given
        return number

    def add_statics(
        self,
        shape: StaticShape | Sequence[StaticShape],
        positions: ArrayLike,
        quaternions: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        *,
        material: Material | None = None,
        group: int = 1,
        mask: int = ALL_GROUPS,
        surface_velocity: ArrayLike = ZERO,
    ) -> range:
        """Add many static bodies at once, of one shape or of one shape each. Returns their numbers."""

        def title(row: int) -> str:
            return f"static body {self.static_count + row}"

        self._require_unlocked()
        positions = table("position", positions, 3, title)
        count = len(positions)
        shapes = _one_or_each(shape, count, title)
        values: dict[str, Any] = {
            "position": as_rows("position", positions, count, (3,), title),
            "quaternion": unit_quaternions(quaternions, count, title),
            **surface_of(material, title(0)).surface(),
            "group": filter_rows("group", group, count, title),
            "mask": filter_rows("mask", mask, count, title),
            "surface_velocity": surface_velocities(surface_velocity, count, title),
        }
        return self.statics.append(count, {**values, "shape_id": [self._shape_id(one) for one in shapes if count]})

    # ---- sensors -------------------------------------------------------------------------------------------------

    def add_sensor(
        self,
        shape: StaticShape,
        position: ArrayLike = (0.0, 0.0, 0.0),
        quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        *,
        body: int | None = None,
        mask: int = ALL_GROUPS,
        name: str | None = None,
    ) -> int:
        """Add a volume that touches nothing and reports which bodies overlap it, of those whose group has a bit in
        `mask`. Returns its number.

        It stays where it is, or moves with a body, in whose frame its place is then: with `body`, which it does not
        sense, or with the kinematic body s if that is -1 - s. Any shape but a mesh or a height field; of a plane it
        is all that is below.
        """
        self._require_unlocked()
        number = len(self.sensors)
        title = f"sensor {number} ({name!r})" if name else f"sensor {number}"
        check_shape(shape, title)
        if isinstance(shape, TriangleMesh | HeightField):
            raise LapjointError(f"{title}: shape is a {type(shape).__name__}, expected one that has an inside")
        if name is not None and (not isinstance(name, str) or not name):
            raise LapjointError(f"{title}: name is {name!r}, expected a text")
        if name in self.sensors.names.values():
            raise LapjointError(f"{title}: the name is already taken by sensor {self.sensor_id(str(name))}")
        on = IN_WORLD
        if body is not None:
            on = int(integer_rows("body", body, 1, title)[0])
            self._check_sensor_body(on, title)
        values = {
            "position": as_rows("position", position, 1, (3,), title),
            "quaternion": unit_quaternions(quaternion, 1, lambda _: title),
            "body": on,
            "mask": integer_rows("mask", mask, 1, title, 0, ALL_GROUPS),
        }
        self.sensors.append(1, {**values, "shape_id": self._shape_id(shape)})
        if name is not None:
            self.sensors.names[number] = name
        return number

    def sensor_id(self, name: str) -> int:
        """The number of the sensor with that name."""
        for number, known in self.sensors.names.items():
            if known == name:
                return number
        raise LapjointError(f"scene {self.name!r} has no sensor named {name!r}")

    def _check_sensor_body(self, body: int, title: str) -> None:
        if body < 0 and -1 - body not in self.motions:
            raise LapjointError(f"{title}: static body {-1 - body} is not kinematic; without `body` it stays in place")
        if body >= self.body_count:
            raise LapjointError(f"{title}: body {body} does not exist, the scene has {self.body_count} bodies")

    # ---- states --------------------------------------------------------------------------------------------------

    def set_states(self, body_ids: ArrayLike, states: ArrayLike) -> None:
        """Let bodies start from other states: 13 numbers each, as in `states`, or one row for all of them.

        Joints keep the anchors that they have on their bodies.
        """
        self._require_unlocked()
        ids = self.checked_ids(body_ids, "set_states")
        rows = checked_states(self, ids, states, "set_states")
        lengths = np.linalg.norm(rows[:, 3:7], axis=1)
        turns = rows[:, 3:7].copy()
        off = np.abs(lengths - 1) > 1e-12  # what is a rotation already stays as it is, to the last bit
        turns[off] /= lengths[off, None]
        self.bodies.position[ids], self.bodies.quaternion[ids] = rows[:, :3], turns
        self.bodies.linear_velocity[ids], self.bodies.angular_velocity[ids] = rows[:, 7:10], rows[:, 10:]

    def checked_ids(self, body_ids: ArrayLike, what: str) -> Ids:
        """Numbers of bodies of this scene; any other raises a LapjointError that begins with `what`."""
        ids = integer_rows("body", body_ids, np.size(body_ids), what)
        for body in ids[(ids < 0) | (ids >= self.body_count)]:
            raise LapjointError(f"{what}: body {body} does not exist, the scene has {self.body_count} bodies")
        return ids.astype(np.int32)

    # ---- joints --------------------------------------------------------------------------------------------------

    def add_joint(
        self,
        joint: Joint,
        body_a: int,
        body_b: int,
        anchor: ArrayLike,
        *,
        anchor_b: ArrayLike | None = None,
        collide: bool = False,
    ) -> int:
        """Join body a to body b, or to the WORLD, at `anchor` (in the world, as the bodies stand now).

        Limits, drives, motors and springs speak of the motion of a relative to b. A Distance has a second anchor,
        `anchor_b` on body b; for others it is where `anchor` is. Jointed bodies do not touch each other unless
        `collide` is true. Returns the joint's number.
        """
        title = f"joint {self.joint_count}"
        place = as_rows("anchor", anchor, 1, (3,), title)
        second = None if anchor_b is None else as_rows("anchor_b", anchor_b, 1, (3,), title)
        return self.add_joints(joint, [body_a], [body_b], place, anchors_b=second, collide=collide)[0]

    def add_joints(
        self,
        joint: Joint,
        bodies_a: ArrayLike,
        bodies_b: ArrayLike,
        anchors: ArrayLike,
        *,
        anchors_b: ArrayLike | None = None,
        axes: ArrayLike | None = None,
        quaternions: ArrayLike | None = None,
        quaternions_b: ArrayLike | None = None,
        collide: bool = False,
        breaks: Breaks | Sequence[Breaks] | None = None,
        bonds: Bonds | None = None,
    ) -> range:
        """Add many joints of one kind. `axes`, one per joint, replaces the joint's own axis (those of a Gear are its
        own), and `breaks`, one for all or one per joint, what it can bear. `anchors_b` are those of a Distance on
        bodies b. Returns their numbers.

        `quaternions` are those of the joints' frames in the world, in place of an axis. With them, where the joints do
        not stand at zero as the bodies stand now, `anchors_b` and `quaternions_b` are the frames on bodies b. `bonds`
        are for Fixed joints with the frames of faces: `fracture.add_bonds` makes them.
        """

        def title(row: int) -> str:
            return f"joint {self.joint_count + row}"

        self._require_unlocked()
        anchors = table("anchor", anchors, 3, title)
        count = len(anchors)
        try:
            moves, bears = axes_of(joint), strengths(joint, breaks, count)
        except LapjointError as error:
            raise LapjointError(f"{title(0)}: {error}") from None
        body_a = integer_rows("body a", bodies_a, count, title)
        body_b = integer_rows("body b", bodies_b, count, title)
        self._check_joint_bodies(body_a, body_b, title)
        anchors = as_rows("anchor", anchors, count, (3,), title)
        if anchors_b is None and isinstance(joint, Distance):
            raise LapjointError(f"{title(0)}: a Distance needs anchor_b")
        if anchors_b is not None and quaternions is None and not isinstance(joint, Distance):
            raise LapjointError(f"{title(0)}: a {type(joint).__name__} has no anchor_b")
        anchors_b = anchors if anchors_b is None else as_rows("anchor_b", anchors_b, count, (3,), title)
        if isinstance(joint, Gear) and (body_b == WORLD).any():
            raise LapjointError(f"{title(int(np.argmax(body_b == WORLD)))}: a Gear couples two bodies, not the WORLD")
        if bonds is not None and not (isinstance(joint, Fixed) and len(bonds) == count):
            raise LapjointError(f"{title(0)}: {len(bonds)} bonds for {count} joints, expected as many Fixed joints")
        if isinstance(joint, Gear) and axes is not None:
            raise LapjointError(f"{title(0)}: axes are given, and those of a Gear are its own")
        both = frame_axes(joint) if axes is None else (axes, axes)
        turns, turns_b = (rotation.between([1.0, 0.0, 0.0], unit_vectors("axis", axis, count, title)) for axis in both)
        if quaternions is not None:
            turns = turns_b = unit_quaternions(quaternions, count, title)
        if quaternions_b is not None:
            turns_b = unit_quaternions(quaternions_b, count, title)
        values = {
            "kind": KINDS[type(joint)],
            "body_a": body_a,
            "body_b": body_b,
            "frame_a": self._in_body_frame(body_a, anchors, turns),
            "frame_b": self._in_body_frame(body_b, anchors_b, turns_b),
            **vars(moves),
            "collide": collide,
            "break_force": bears[:, 0],
            "break_torque": bears[:, 1],
            **(dict.fromkeys(BOND_LAYOUT, 0.0) if bonds is None else bonds.columns()),
        }
        return self.joints.append(count, values)

    def add_glue(self, glued: Glued) -> Glued:
        """Let a body of this scene come apart when it is hit: `fracture.add_glued` adds such a body. Returns it."""
        self._require_unlocked()
        try:
            check_glued([glued], self.body_count)
        except ValueError:
            raise LapjointError(f"glue of body {glued.body}: pieces, masses or bonds are wrong") from None
        self.glued.append(glued)
        return glued

    def ignore(self, bodies_a: ArrayLike, bodies_b: ArrayLike) -> None:
        """Let these pairs of bodies pass through each other."""
        self._require_unlocked()
        count = max(np.size(bodies_a), np.size(bodies_b))
        a, b = (integer_rows("body", ids, count, "ignore") for ids in (bodies_a, bodies_b))
        pairs = np.stack([a, b], axis=1)
        for a, b in pairs[(pairs < 0).any(axis=1) | (pairs >= self.body_count).any(axis=1)]:
            raise LapjointError(f"ignore: bodies {a} and {b}: no such body, there are {self.body_count}")
        for a in pairs[pairs[:, 0] == pairs[:, 1], 0]:
            raise LapjointError(f"ignore: {self.body_title(a)} is paired with itself")
        self._ignored.append(pairs.astype(np.int32))

    # ---- force fields ----------------------------------------------------------------------------------------------

    def add_field(self, field: AnyField, bodies: ArrayLike | None = None) -> int:
        """Let a force field act on these bodies; None: on all, those that are added later too. Returns its number."""
        self._require_unlocked()
        title = f"field {len(self.fields)}"
        ids = None if bodies is None else np.unique(self.checked_ids(bodies, title)).astype(np.int32)
        self.fields.append(GivenField.of(field, title, self.gravity, ids))
        return len(self.fields) - 1

    def give_functions(self, functions: Mapping[str, FieldFunction]) -> None:
        """Give fields their functions again, by name: a file has names alone."""
        self.fields = with_functions(self.fields, functions, f"scene {self.name!r}: give_functions")

    # ---- locks ---------------------------------------------------------------------------------------------------

    def lock(self, why: str) -> None:
        """Refuse changes until as many calls of `unlock`; the refusal gives the reason, such as "a simulation of it is
        running"."""
        self._locks.append(why)

    def unlock(self) -> None:
        """Take one lock back; without any, changes are possible again."""
        if not self._locks:
            raise LapjointError(f"scene {self.name!r} is not locked")
        self._locks.pop()

    def _require_unlocked(self) -> None:
        if self._locks:
            raise LapjointError(f"scene {self.name!r} cannot be changed now: {self._locks[-1]}")

    # ---- files ---------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write the scene to one file (a NumPy .npz without pickle). Equal scenes give equal files."""
        return write_file(path, self.to_bytes())

    @staticmethod
    def load(path: str | Path) -> Scene:
        """Read a scene that was saved."""
        return Scene.from_bytes(read_file(path, machine_memory()), str(path))

    def to_bytes(self) -> bytes:
        """The content of the file that `save` writes."""
        return pack_scene(*self.describe())

    @staticmethod
    def from_bytes(content: bytes, source: str, added: Iterable[NDArray[np.uint8]] = ()) -> Scene:
        """A scene from the content of its file; `source` is what errors call it. `added` is what was added to it since,
        piece by piece, as `since` returns it."""
        description, arrays = unpack_scene(content, source)
        try:
            _check_numbers(arrays)
            scene = Scene.restore(description, arrays)
            for piece in added:
                scene._extend_checked(piece)
            scene.check()
        except (KeyError, TypeError, IndexError, AttributeError, AssertionError) as error:
            raise LapjointError(f"{source}: damaged scene file (missing or wrong {shortened(error)})") from None
        except (ValueError, OverflowError, RecursionError) as error:
            raise LapjointError(f"{source}: damaged scene file ({shortened(error)})") from None
        return scene

    def describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Everything that the scene is, as a description for JSON and arrays by name."""
        arrays: dict[str, NDArray[Any]] = {}
        description = {
            "name": self.name,
            "timestep": self.timestep,
            "iterations": self.iterations,
            "growth_depth": self.growth_depth,
            "search_depth": self.search_depth,
            "camera": self.camera,
            "shapes": [describe_shape(shape, f"shape/{i}", arrays) for i, shape in enumerate(self.shapes)],
            "body_names": {str(body_id): name for body_id, name in self.body_names.items()},
        }
        arrays["gravity"] = self.gravity
        arrays["ignored"] = self.ignored_explicitly
        for table_name in TABLES:
            for name, column in self._table(table_name).to_arrays().items():
                arrays[f"{table_name}/{name}"] = column
        for name, value in MAY_BE_MISSING.items():
            if (arrays[name] == value).all():
                del arrays[name]
        self.sensors.describe(description, arrays)
        if self.glued:
            description["glued"] = pack_glued(self.glued, arrays)
        if self.motions:
            arrays |= {f"motions/{name}": array for name, array in pack_motions(self.motions).items()}
        if self.fields:
            arrays |= {f"fields/{name}": array for name, array in pack_fields(self.fields).items()}
            description["field_names"] = [one.field.name for one in self.fields if one.field is not None]
        return description, arrays

    @staticmethod
    def restore(description: dict[str, Any], arrays: dict[str, NDArray[Any]], trusted: bool = False) -> Scene:
        """The scene that `describe` described; its tables are these arrays, where they fit. Nothing is checked but
        the shapes, and they are not either where the description is trusted."""
        scene = Scene(
            description["name"],
            gravity=arrays["gravity"],
            timestep=description["timestep"],
            iterations=description["iterations"],
            growth_depth=description["growth_depth"],
            search_depth=description["search_depth"],
        )
        camera = description["camera"]
        scene.camera = None if camera is None else (tuple(camera[0]), tuple(camera[1]))
        scene.shapes = [restore_shape(entry, arrays, trusted) for entry in description["shapes"]]
        scene._shape_ids = {shape: i for i, shape in enumerate(scene.shapes)}
        for table_name in TABLES:
            columns = scene._table(table_name)
            given = {name: arrays.get(f"{table_name}/{name}") for name in columns}
            count = len(arrays[f"{table_name}/{next(iter(columns))}"])
            for name in (name for name, column in given.items() if column is None):
                shape, dtype = TABLES[table_name][name]
                given[name] = np.full((count, *shape), MAY_BE_MISSING[f"{table_name}/{name}"], dtype)
            columns.adopt({name: column for name, column in given.items() if column is not None})
        scene.body_names = {int(body_id): name for body_id, name in description["body_names"].items()}
        scene._body_ids = {name: body_id for body_id, name in scene.body_names.items()}
        if "motions/ids" in arrays:
            scene.motions = unpack_motions({name: arrays[f"motions/{name}"] for name in MOTION_ARRAYS})
        if "fields/kinds" in arrays:
            references = description.get("field_references") if trusted else None
            scene.fields = unpack_fields(
                {name: arrays[f"fields/{name}"] for name in FIELD_ARRAYS},
                description["field_names"],
                lambda i: None if references is None else find_function(references[i]),
            )
        scene.sensors.restore(description, arrays)
        scene.glued = unpack_glued(description.get("glued", []), arrays, trusted)
        if len(arrays["ignored"]):
            scene.ignore(arrays["ignored"][:, 0], arrays["ignored"][:, 1])
        return scene

    @property
    def extent(self) -> tuple[int, int, int]:
        """How many shapes, bodies and joints there are: numbers only grow."""
        return len(self.shapes), self.body_count, self.joint_count

    def first(self, extent: tuple[int, int, int]) -> Scene:
        """The scene as it was when it had this extent."""
        shapes, *counts = extent
        description, arrays = self.describe()
        for table_name, count in zip(("bodies", "joints"), counts, strict=True):
            arrays |= {name: array[:count] for name, array in arrays.items() if name.startswith(f"{table_name}/")}
        names = {key: name for key, name in description["body_names"].items() if int(key) < counts[0]}
        scene = Scene.restore(
            {**description, "shapes": description["shapes"][:shapes], "body_names": names}, arrays, True
        )
        scene.fields = list(self.fields)
        return scene

    def since(self, extent: tuple[int, int, int]) -> NDArray[np.uint8]:
        """What was added since the scene had this extent, as bytes for `extend`."""
        arrays: dict[str, NDArray[Any]] = {}
        shapes, bodies, joints = extent
        added = [describe_shape(self.shapes[i], f"shape/{i}", arrays) for i in range(shapes, len(self.shapes))]
        names = {str(i): self.body_names[i] for i in range(bodies, self.body_count) if i in self.body_names}
        for table_name, first in (("bodies", bodies), ("joints", joints)):
            for name, column in self._table(table_name).views().items():
                value = MAY_BE_MISSING.get(f"{table_name}/{name}")
                if value is None or (column[first:] != value).any():
                    arrays[f"{table_name}/{name}"] = column[first:]
        packed = pack_arrays(arrays, {"extent": extent, "shapes": added, "body_names": names})
        return np.frombuffer(b"".join(packed), np.uint8)

    def extend(self, added: NDArray[np.uint8]) -> None:
        """Add what another scene, which began as this one, has more; what is here already is left as it is. Nothing is
        checked."""
        self._extend(*unpack_arrays(added.copy()), trusted=True)  # a message's memory is soon another's

    def _extend_checked(self, added: NDArray[np.uint8]) -> None:
        """Add what comes next to this very scene; `check` has to follow. Errors as those of `restore`."""
        arrays, description = unpack_arrays(added)
        if description["extent"] != list(self.extent):
            raise ValueError(f"added to {description['extent']}, expected {list(self.extent)}")
        for table_name in ("bodies", "joints"):
            columns = {f"{table_name}/{name}": shape for name, (shape, _) in TABLES[table_name].items()}
            count = len(arrays[next(iter(columns))])
            for name, shape in columns.items():
                if name in MAY_BE_MISSING and name not in arrays:
                    arrays[name] = np.full((count, *shape), MAY_BE_MISSING[name])
                if arrays[name].shape != (count, *shape):
                    raise KeyError(name)
        _check_numbers(arrays)
        before = len(self.shapes)
        self._extend(arrays, description, trusted=False)
        if len(self.shapes) != before + len(description["shapes"]):
            raise ValueError("shapes that are there already")

    def _extend(self, arrays: dict[str, NDArray[Any]], description: dict[str, Any], trusted: bool) -> None:
        shapes, *firsts = description["extent"]
        for entry in description["shapes"][len(self.shapes) - shapes :]:
            self._shape_id(restore_shape(entry, arrays, trusted))
        for table_name, first in zip(("bodies", "joints"), firsts, strict=True):
            columns = self._table(table_name)
            there = len(columns) - first
            rows: dict[str, Any] = {}
            for name in columns:
                column = arrays.get(f"{table_name}/{name}")
                rows[name] = MAY_BE_MISSING[f"{table_name}/{name}"] if column is None else column[there:]
            columns.append(len(next(iter(rows.values()))), rows)
        self.body_names |= {int(body_id): name for body_id, name in description["body_names"].items()}
        self._body_ids |= {name: int(body_id) for body_id, name in description["body_names"].items()}

    def _table(self, name: str) -> Columns:
        return {"bodies": self.bodies, "statics": self.statics, "joints": self.joints}[name]

    def check(self) -> None:
        """Check again what is checked when things are added, and engines rely on: for a scene that was read."""
        for name, columns in (("body", self.bodies), ("static body", self.statics)):

            def title(row: int, name: str = name) -> str:
                return f"{name} {row}"

            count = len(columns)
            integer_rows("shape number", columns.shape_id, count, title, 0, len(self.shapes) - 1)
            as_rows("position", columns.position, count, (3,), title)
            unit_quaternions(columns.quaternion, count, title)
            surface = np.stack([columns.friction, columns.restitution, columns.rolling_friction], 1)
            as_rows("surface", surface, count, (3,))
            for rule in ("friction_combine", "restitution_combine"):
                integer_rows(rule, getattr(columns, rule), count, title, 0, len(COMBINE_RULES) - 1)
        bodies, joints = self.bodies, self.joints
        self.bounding_radii()  # every body's shape can move
        positive_rows("mass", bodies.mass, len(bodies), self.body_title)
        inertia_rows(bodies.inertia, len(bodies), self.body_title)
        for name in ("hit_impulse", "hit_speed"):
            positive_rows(name, getattr(bodies, name), len(bodies), self.body_title, infinite=True)
        as_rows("velocity", np.concatenate([bodies.linear_velocity, bodies.angular_velocity], 1), len(bodies), (6,))
        integer_rows("joint kind", joints.kind, len(joints), None, 0, len(KINDS) - 1)
        self._check_joint_bodies(joints.body_a, joints.body_b, lambda row: f"joint {row}")
        for frame in (joints.frame_a, joints.frame_b):
            as_rows("anchor", frame[:, :3], len(joints), (3,), "joint")
            unit_quaternions(frame[:, 3:], len(joints), lambda row: f"joint {row}")
        if not ((joints.break_force > 0).all() and (joints.break_torque > 0).all()):
            raise ValueError("break strengths")
        check_bonds(joints, f"scene {self.name!r}: ")
        pushes = np.stack([joints.drive_stiffness, joints.drive_damping, joints.drive_max_force, joints.friction])
        if (pushes < 0).any() or np.isinf(pushes[[0, 1, 3]]).any():
            raise ValueError("drives or friction")
        as_rows("drive", np.concatenate([joints.drive_position, joints.drive_velocity], 1), len(joints), (12,))
        as_rows("gear ratio", joints.gear_ratio[:, None], len(joints), (1,))
        if (joints.body_b[joints.kind == JointKind.GEAR] == WORLD).any():
            raise ValueError("gears")
        if not (joints.upper[joints.kind == JointKind.DISTANCE, 0] > 0).all():
            raise ValueError("distances")
        as_rows("surface velocity", self.statics.surface_velocity, self.static_count, (6,))
        for one in self.fields:
            if (
                one.bodies is not None
                and len(one.bodies)
                and not 0 <= one.bodies.min() <= one.bodies.max() < len(bodies)
            ):
                raise ValueError("bodies of a field")
        self._check_sensors()
        check_glued(self.glued, len(bodies))
        if not set(self.motions) <= set(range(self.static_count)):
            raise ValueError("kinematic bodies")
        if (joints.lower > joints.upper).any() or not set(self.body_names) <= set(range(len(bodies))):
            raise ValueError("limits or names")

    def _check_sensors(self) -> None:
        sensors, count = self.sensors, len(self.sensors)
        integer_rows("shape number", sensors.shape_id, count, sensors.title, 0, len(self.shapes) - 1)
        as_rows("position", sensors.position, count, (3,), sensors.title)
        unit_quaternions(sensors.quaternion, count, sensors.title)
        for number in range(count):
            if isinstance(self.shapes[sensors.shape_id[number]], TriangleMesh | HeightField):
                raise ValueError("a sensor that is a mesh")
            if sensors.body[number] != IN_WORLD:
                self._check_sensor_body(int(sensors.body[number]), sensors.title(number))
        if not set(sensors.names) <= set(range(count)) or len(set(sensors.names.values())) < len(sensors.names):
            raise ValueError("names of sensors")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scene) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        counts = f"{self.body_count} bodies, {self.static_count} static, {self.joint_count} joints"
        return f"Scene({self.name!r}: {counts})"

    # ---- inside --------------------------------------------------------------------------------------------------

    def _title(self, name: str | None, row: int = 0) -> str:
        number = self.body_count + row
        return f"body {number} ({name!r})" if name else f"body {number}"

    def _shape_id(self, shape: StaticShape) -> int:
        if shape not in self._shape_ids:
            self._shape_ids[shape] = len(self.shapes)
            self.shapes.append(shape)
        return self._shape_ids[shape]

    def _moving_shapes(
        self, shape: MovingShape | Sequence[MovingShape], count: int, title: Any
    ) -> tuple[list[MovingShape], Array, Array]:
        """Shapes, volumes and inertias per unit density, one per new body or one for all."""
        shapes: list[MovingShape] = _one_or_each(shape, count, title)
        for row, one in enumerate(shapes):
            if isinstance(one, STATIC_ONLY):
                raise LapjointError(f"{title(row)}: a {type(one).__name__} can only be static, use add_static")
            if one not in self._mass_properties:
                self._mass_properties[one] = mass_properties(one)
        volume, inertia = zip(*(self._mass_properties[one] for one in shapes), strict=True)
        return shapes, np.array(volume), np.array(inertia)

    def _check_names(self, names: Sequence[str], count: int, title: Any) -> None:
        if len(names) != count:
            raise LapjointError(f"{title(0)}: {len(names)} names for {count} bodies")
        taken = dict(self._body_ids)
        for row, name in enumerate(names):
            if not isinstance(name, str) or not name:
                raise LapjointError(f"{title(row)}: name is {name!r}, expected a text")
            if name in taken:
                raise LapjointError(f"{title(row)}: the name is already taken by body {taken[name]}")
            taken[name] = self.body_count + row

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

    def _in_body_frame(self, body: NDArray[np.int64], anchors: Array, turns: Array) -> Array:
        world = body == WORLD
        positions, quaternions = self._poses(body)
        position = np.where(world[:, None], 0.0, positions)
        back = rotation.conjugate(np.where(world[:, None], rotation.IDENTITY, quaternions))
        return np.concatenate([rotation.rotate(back, anchors - position), rotation.multiply(back, turns)], axis=1)

    def _poses(self, body_ids: NDArray[np.int64]) -> tuple[Array, Array]:
        """Where bodies stand now."""
        return self.bodies.position[body_ids], self.bodies.quaternion[body_ids]


def _check_numbers(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse tables, with a KeyError, that have what is not a number."""
    for name in (name for name in arrays if name.partition("/")[0] in TABLES):
        if arrays[name].dtype.kind == "f" and np.isnan(arrays[name]).any():
            raise KeyError(name)


def _one_or_each(shape: Any, count: int, title: Any) -> list[Any]:
    """One shape for all bodies or one per body, as a list of what are shapes."""
    shapes = [shape] if isinstance(shape, str) or not isinstance(shape, Sequence) else list(shape)
    if not shapes or len(shapes) not in (1, count):
        raise LapjointError(f"{title(0)}: {len(shapes)} shapes for {count} bodies, expected one or {count}")
    for row, one in enumerate(shapes):
        check_shape(one, title(row))
    return shapes


def _plural(options: dict[str, Any], known: Sequence[str], title: str, given: Collection[str] = ()) -> dict[str, Any]:
    """Options by their plural names. One that is not known, or is given twice, raises a LapjointError."""
    plural: dict[str, Any] = {}
    for option, value in options.items():
        name = SINGULAR.get(option, option)
        if name not in known:
            raise LapjointError(f"{title}: no option named {option!r}; known options: {', '.join(known)}")
        if name in plural or name in given:
            raise LapjointError(f"{title}: an option is given both in the singular and in the plural")
        plural[name] = value
    return plural
