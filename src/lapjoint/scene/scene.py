"""Scene: bodies, shapes, joints and their initial states, in arrays. It knows no engine.

A body is a rigid body that moves; a static body cannot be moved and belongs to no graph. One that moves by itself, as
it is told, is kinematic. Bodies, static bodies and joints
are numbered from zero in the order they are added, each in a table of their own. Invalid input raises immediately,
naming the body by number and name, and the scene stays as it was.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
    positive_rows,
    table,
    unit_quaternions,
    unit_vectors,
)
from ..errors import LapjointError
from ..system.files import read_file, write_file
from ..system.foreign import machine_memory
from .bonds import BOND_LAYOUT, Bonds
from .content import SceneContent, add_ignored, checked_ids
from .field_functions import FieldFunction
from .fields import AnyField, GivenField, with_functions
from .filters import ALL_GROUPS, filter_rows
from .glue import Glued, check_glued
from .height_field import HeightField
from .joints import KINDS, WORLD, Breaks, Distance, Fixed, Gear, Joint, axes_of, frame_axes, strengths
from .materials import Material, surface_of
from .motions import ZERO, GivenMotion, Motion, surface_velocities
from .sensors import IN_WORLD
from .serialize import scene_from_bytes, scene_to_bytes
from .shapes import (
    STATIC_ONLY,
    MovingShape,
    StaticShape,
    TriangleMesh,
    check_shape,
    mass_properties,
)
from .states import checked_states

Array = NDArray[np.float64]
Ids = NDArray[np.int32]
SINGULAR = {"linear_velocity": "linear_velocities", "angular_velocity": "angular_velocities", "label": "labels"}
BODY_OPTIONS = (
    *SINGULAR.values(),
    *("mass", "density", "inertia", "material", "group", "mask"),
    *("hit_impulse", "hit_speed", "touch_events"),
)


class Scene(SceneContent):
    """One rigid-body scene. Gravity in m/s^2, timestep in seconds, the world's z axis up."""

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

    # ---- states --------------------------------------------------------------------------------------------------

    def set_states(self, body_ids: ArrayLike, states: ArrayLike) -> None:
        """Let bodies start from other states: 13 numbers each, as in `states`, or one row for all of them.

        Joints keep the anchors that they have on their bodies.
        """
        self._require_unlocked()
        ids = checked_ids(self, body_ids, "set_states")
        rows = checked_states(self, ids, states, "set_states")
        lengths = np.linalg.norm(rows[:, 3:7], axis=1)
        turns = rows[:, 3:7].copy()
        off = np.abs(lengths - 1) > 1e-12  # what is a rotation already stays as it is, to the last bit
        turns[off] /= lengths[off, None]
        self.bodies.position[ids], self.bodies.quaternion[ids] = rows[:, :3], turns
        self.bodies.linear_velocity[ids], self.bodies.angular_velocity[ids] = rows[:, 7:10], rows[:, 10:]

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

    def _add_glue(self, glued: Glued) -> Glued:
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
        add_ignored(self, bodies_a, bodies_b)

    # ---- force fields ----------------------------------------------------------------------------------------------

    def add_field(self, field: AnyField, bodies: ArrayLike | None = None) -> int:
        """Let a force field act on these bodies; None: on all, those that are added later too. Returns its number."""
        self._require_unlocked()
        title = f"field {len(self.fields)}"
        ids = None if bodies is None else np.unique(checked_ids(self, bodies, title)).astype(np.int32)
        self.fields.append(GivenField.of(field, title, self.gravity, ids))
        return len(self.fields) - 1

    def give_functions(self, functions: Mapping[str, FieldFunction]) -> None:
        """Give fields their functions again, by name: a file has names alone."""
        self.fields = with_functions(self.fields, functions, f"scene {self.name!r}: give_functions")

    def _require_unlocked(self) -> None:
        self.locks.check(self.name)

    # ---- files ---------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write the scene to one file (a NumPy .npz without pickle). Equal scenes give equal files."""
        return write_file(path, scene_to_bytes(self))

    @staticmethod
    def load(path: str | Path) -> Scene:
        """Read a scene that was saved."""
        return scene_from_bytes(Scene, read_file(path, machine_memory()), str(path))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scene) and scene_to_bytes(self) == scene_to_bytes(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        counts = f"{self.body_count} bodies, {self.static_count} static, {self.joint_count} joints"
        return f"Scene({self.name!r}: {counts})"

    # ---- inside --------------------------------------------------------------------------------------------------

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

    def _in_body_frame(self, body: NDArray[np.int64], anchors: Array, turns: Array) -> Array:
        world = body == WORLD
        positions, quaternions = self._poses(body)
        position = np.where(world[:, None], 0.0, positions)
        back = rotation.conjugate(np.where(world[:, None], rotation.IDENTITY, quaternions))
        return np.concatenate([rotation.rotate(back, anchors - position), rotation.multiply(back, turns)], axis=1)

    def _poses(self, body_ids: NDArray[np.int64]) -> tuple[Array, Array]:
        """Where bodies stand now."""
        return self.bodies.position[body_ids], self.bodies.quaternion[body_ids]


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
