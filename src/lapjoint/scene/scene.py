"""Scene: bodies, shapes, joints and their initial states, in arrays. It knows no engine.

A body is a rigid body that moves; a static body never moves and belongs to no graph. Bodies, static bodies and joints
are numbered from zero in the order they are added, each in a table of their own. Everything is checked when it is
added; what is wrong is refused with the body's number and name, and the scene stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import rotation
from ..arrays.checks import (
    as_rows,
    inertia_rows,
    integer_rows,
    is_finite,
    positive_rows,
    table,
    unit_quaternions,
    unit_vectors,
)
from ..arrays.columns import Columns
from ..errors import LapjointError
from .joints import KINDS, WORLD, Ball, Fixed, Joint, axes_of
from .materials import Material, surface_of
from .shapes import STATIC_ONLY, MovingShape, StaticShape, bounding_radius, check_shape, mass_properties
from .tables import BODY_LAYOUT, JOINT_LAYOUT, STATIC_LAYOUT

Array = NDArray[np.float64]
STATE_SIZE = 13  # position 3, quaternion w x y z, linear velocity 3, angular velocity 3
ALL_GROUPS = 0xFFFFFFFF
SINGULAR = {"linear_velocity": "linear_velocities", "angular_velocity": "angular_velocities", "label": "labels"}
BODY_OPTIONS = (*SINGULAR.values(), "mass", "density", "inertia", "material", "group", "mask")


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
        self._ignored: list[NDArray[np.int32]] = []
        self.body_names: dict[int, str] = {}
        self._body_ids: dict[str, int] = {}

    # ---- what is in it -------------------------------------------------------------------------------------------

    @property
    def body_count(self) -> int:
        return len(self.bodies)

    @property
    def static_count(self) -> int:
        return len(self.statics)

    @property
    def joint_count(self) -> int:
        return len(self.joints)

    @property
    def states(self) -> Array:
        """Initial states, (body_count, 13): position, quaternion w x y z, linear velocity, angular velocity."""
        b = self.bodies
        return np.concatenate([b.position, b.quaternion, b.linear_velocity, b.angular_velocity], axis=1)

    @property
    def ignored_pairs(self) -> NDArray[np.int32]:
        """Pairs of bodies that never touch, (n, 2), lower number first: those asked for, and jointed neighbours."""
        joints = self.joints
        quiet = ~joints.collide & (joints.body_b != WORLD)
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

    def bounding_radii(self) -> Array:
        """Radius of each body's bounding sphere [m]."""
        used = np.unique(self.bodies.shape_id)
        by_shape = np.zeros(len(self.shapes))
        by_shape[used] = [bounding_radius(self._moving(i)) for i in used]
        return np.asarray(by_shape[self.bodies.shape_id])

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
        given = {SINGULAR.get(option, option): value for option, value in options.items()}
        for option in given:
            if option not in BODY_OPTIONS:
                raise LapjointError(f"{title}: no option named {option!r}; known options: {', '.join(BODY_OPTIONS)}")
        if len(given) < len(options):
            raise LapjointError(f"{title}: an option is given both in the singular and in the plural")
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
        linear_velocities: ArrayLike = (0.0, 0.0, 0.0),
        angular_velocities: ArrayLike = (0.0, 0.0, 0.0),
        mass: ArrayLike | None = None,
        density: ArrayLike | None = None,
        inertia: ArrayLike | None = None,
        material: Material | None = None,
        group: int = 1,
        mask: int = ALL_GROUPS,
        labels: ArrayLike = 0,
        names: Sequence[str] | None = None,
    ) -> range:
        """Add many bodies at once. Every argument is one value for all or one per body.

        Mass in kg, or density in kg/m^3 (1000 if neither is given). Inertia is computed for a solid of even density
        unless given: three principal moments [kg m^2], or a 3x3 tensor in the body's frame. Two bodies may touch when
        each one's group has a bit in the other's mask. A label says which bodies belong together for the first
        partition. Returns the new bodies' numbers.
        """

        def title(row: int) -> str:
            return self._title(names[row] if names is not None and row < len(names) else None, row)

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
            "linear_velocity": as_rows("linear velocity", linear_velocities, count, (3,), title),
            "angular_velocity": as_rows("angular velocity", angular_velocities, count, (3,), title),
            "mass": masses,
            "inertia": tensors,
            **vars(surface_of(material, title(0))),
            "group": integer_rows("group", group, count, title, 0, ALL_GROUPS),
            "mask": integer_rows("mask", mask, count, title, 0, ALL_GROUPS),
            "label": integer_rows("label", labels, count, title),
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
    ) -> int:
        """Add one static body: any shape, planes and triangle meshes too. Returns its number."""
        place = as_rows("position", position, 1, (3,), f"static body {self.static_count}")
        return self.add_statics(shape, place, quaternion, material=material, group=group, mask=mask)[0]

    def add_statics(
        self,
        shape: StaticShape,
        positions: ArrayLike,
        quaternions: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        *,
        material: Material | None = None,
        group: int = 1,
        mask: int = ALL_GROUPS,
    ) -> range:
        """Add many static bodies of one shape. Returns their numbers."""

        def title(row: int) -> str:
            return f"static body {self.static_count + row}"

        positions = table("position", positions, 3, title)
        count = len(positions)
        check_shape(shape, title(0))
        surface = surface_of(material, title(0))
        values: dict[str, Any] = {
            "position": as_rows("position", positions, count, (3,), title),
            "quaternion": unit_quaternions(quaternions, count, title),
            "friction": surface.friction,
            "restitution": surface.restitution,
            "rolling_friction": surface.rolling_friction,
            "group": integer_rows("group", group, count, title, 0, ALL_GROUPS),
            "mask": integer_rows("mask", mask, count, title, 0, ALL_GROUPS),
        }
        return self.statics.append(count, {**values, "shape_id": [self._shape_id(shape) for _ in range(count)]})

    # ---- joints --------------------------------------------------------------------------------------------------

    def add_joint(self, joint: Joint, body_a: int, body_b: int, anchor: ArrayLike, *, collide: bool = False) -> int:
        """Join body a to body b, or to the WORLD, at `anchor` (in the world, as the bodies stand now).

        Limits, motors and springs speak of the motion of a relative to b. Jointed bodies do not touch each other
        unless `collide` is true. Returns the joint's number.
        """
        place = as_rows("anchor", anchor, 1, (3,), f"joint {self.joint_count}")
        return self.add_joints(joint, [body_a], [body_b], place, collide=collide)[0]

    def add_joints(
        self,
        joint: Joint,
        bodies_a: ArrayLike,
        bodies_b: ArrayLike,
        anchors: ArrayLike,
        *,
        axes: ArrayLike | None = None,
        collide: bool = False,
    ) -> range:
        """Add many joints of one kind. `axes`, one per joint, replaces the joint's own axis. Returns their numbers."""

        def title(row: int) -> str:
            return f"joint {self.joint_count + row}"

        anchors = table("anchor", anchors, 3, title)
        count = len(anchors)
        try:
            moves = axes_of(joint)
        except LapjointError as error:
            raise LapjointError(f"{title(0)}: {error}") from None
        body_a = integer_rows("body a", bodies_a, count, title)
        body_b = integer_rows("body b", bodies_b, count, title)
        self.check_joint_bodies(body_a, body_b, title)
        anchors = as_rows("anchor", anchors, count, (3,), title)
        if axes is None:
            axes = (1.0, 0.0, 0.0) if isinstance(joint, (Ball, Fixed)) else joint.axis
        turns = rotation.between([1.0, 0.0, 0.0], unit_vectors("axis", axes, count, title))
        values = {
            "kind": KINDS[type(joint)],
            "body_a": body_a,
            "body_b": body_b,
            "frame_a": self._in_body_frame(body_a, anchors, turns),
            "frame_b": self._in_body_frame(body_b, anchors, turns),
            **vars(moves),
            "collide": collide,
        }
        return self.joints.append(count, values)

    def ignore(self, bodies_a: ArrayLike, bodies_b: ArrayLike) -> None:
        """Let these pairs of bodies pass through each other."""
        count = max(np.size(bodies_a), np.size(bodies_b))
        a, b = (integer_rows("body", ids, count, "ignore") for ids in (bodies_a, bodies_b))
        pairs = np.stack([a, b], axis=1)
        for a, b in pairs[(pairs < 0).any(axis=1) | (pairs >= self.body_count).any(axis=1)]:
            raise LapjointError(f"ignore: bodies {a} and {b}: no such body, there are {self.body_count}")
        for a in pairs[pairs[:, 0] == pairs[:, 1], 0]:
            raise LapjointError(f"ignore: {self.body_title(a)} is paired with itself")
        self._ignored.append(pairs.astype(np.int32))

    # ---- files ---------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write the scene to one file (a NumPy .npz without pickle). Equal scenes give equal files."""
        from .file import save_scene

        return save_scene(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> Scene:
        """Read a scene that was saved."""
        from .file import load_scene

        return load_scene(Path(path))

    def __eq__(self, other: object) -> bool:
        from .file import scene_bytes

        return isinstance(other, Scene) and scene_bytes(self) == scene_bytes(other)

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
        shapes: list[MovingShape] = (
            [shape] if isinstance(shape, str) or not isinstance(shape, Sequence) else list(shape)
        )
        if not shapes or len(shapes) not in (1, count):
            raise LapjointError(f"{title(0)}: {len(shapes)} shapes for {count} bodies, expected one or {count}")
        for row, one in enumerate(shapes):
            check_shape(one, title(row))
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

    def check_joint_bodies(self, body_a: NDArray[Any], body_b: NDArray[Any], title: Any) -> None:
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
        position = np.where(world[:, None], 0.0, self.bodies.position[body])
        back = rotation.conjugate(np.where(world[:, None], rotation.IDENTITY, self.bodies.quaternion[body]))
        return np.concatenate([rotation.rotate(back, anchors - position), rotation.multiply(back, turns)], axis=1)
