"""A scene as a model of MuJoCo's: free bodies, and joints as equality constraints between them. For the engine and for
the peer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import rotation
from ..errors import LapjointError
from ..scene import WORLD, Box, Capsule, ConvexHull, Cylinder, Ellipsoid, HeightField, Part, Plane, Scene, Sphere
from ..scene.joints import JointKind
from ..scene.shapes import StaticShape
from .mapping import hinge_arm, parts_of, pieces
from .support import has_groups

Array = NDArray[np.float64]

BODY_BYTES, LEAST_BYTES = 400_000, 1 << 28
"""Memory for contacts and for the solver; it is touched only where it is used."""


def check_sides(owner: str, scene: Scene) -> None:
    """Refuse groups and masks by which one body wants a contact and the other does not: MuJoCo makes it then."""
    sides = {
        _filter_of(part, table, row)
        for table in (scene.bodies, scene.statics)
        for row in range(len(table))
        for part in parts_of(scene.shapes[table.shape_id[row]])
    }
    for group, mask in sides:
        for other_group, other_mask in sides:
            if bool(group & other_mask) != bool(other_group & mask):
                raise LapjointError(
                    f"scene {scene.name!r}: a body of group {group} wants no contact with one of group "
                    f"{other_group} that wants it, or the other way round: {owner} cannot take groups and "
                    "masks that differ from side to side"
                )


def _filter_of(part: Part | None, table: Any, row: int) -> tuple[int, int]:
    """Group and mask of a part, or of its body where it has none."""
    group = table.group[row] if part is None or part.group is None else part.group
    mask = table.mask[row] if part is None or part.mask is None else part.mask
    return int(group), int(mask)


def _origin_of(shape: StaticShape) -> Array:
    """Where MuJoCo has a shape's origin: of a height field at its lowest height."""
    return np.array([0.0, 0.0, shape.heights.min()]) if isinstance(shape, HeightField) else np.zeros(3)


class MujocoMapping:
    """Makes a model of a scene; `mujoco` is the module. Body b of the scene is body b + 1 of the model."""

    def __init__(self, mujoco: Any, scene: Scene, margin: float = 0.0) -> None:
        """`margin`: contacts are listed from that distance on, though they act only where bodies touch [m]."""
        self._mujoco, self._scene, self._margin = mujoco, scene, margin
        self._meshes: dict[tuple[int, int], str] = {}
        self.geom_owner: list[int] = []
        """Body, or static body (-1 - s), of each geom."""
        self.constraint_joint: list[int] = []
        """Joint of each equality constraint."""

    def compile(self, timestep: float, solver: str, iterations: int, stiff: bool) -> Any:
        """The model. `stiff`: constraints have a time constant of two timesteps, the shortest that MuJoCo takes for
        stable, else the default of 20 ms."""
        mujoco, scene = self._mujoco, self._scene
        # Else warnings are written to a file in the working directory.
        mujoco.set_mju_user_warning(lambda _: None)
        spec = mujoco.MjSpec()
        spec.memory = max(LEAST_BYTES, BODY_BYTES * scene.body_count)
        option = spec.option
        option.timestep, option.gravity = timestep, scene.gravity
        option.solver = getattr(mujoco.mjtSolver, f"mjSOL_{solver.upper()}")
        option.iterations = iterations
        option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET  # a state that is not finite shall stay so
        # Several points a pair of hulls; newer versions do it by default.
        option.enableflags |= getattr(mujoco.mjtEnableBit, "mjENBL_MULTICCD", 0)
        self._add_bodies(spec)
        self._add_constraints(spec)
        model = spec.compile()
        # The frames as the scene has them; MuJoCo takes some of them from where the bodies stand.
        for row, data in zip(model.eq_data, self._joint_data, strict=True):
            row[: len(data)] = data
        if stiff:
            model.geom_solref[:, 0] = model.eq_solref[:, 0] = 2 * timestep
        return model

    def _add_bodies(self, spec: Any) -> None:
        scene = self._scene
        statics, bodies = scene.statics, scene.bodies
        for s in range(scene.static_count):
            place = statics.position[s], statics.quaternion[s]
            self._add_geoms(spec, spec.worldbody, statics, s, *place, owner=-1 - s)
        for b in range(scene.body_count):
            inertia = bodies.inertia[b]
            body = spec.worldbody.add_body(
                name=f"b{b}",
                pos=bodies.position[b],
                quat=bodies.quaternion[b],
                mass=bodies.mass[b],
                ipos=[0.0, 0.0, 0.0],
                fullinertia=[*np.diag(inertia), inertia[0, 1], inertia[0, 2], inertia[1, 2]],
                explicitinertial=True,
            )
            body.add_freejoint()
            self._add_geoms(spec, body, bodies, b, np.zeros(3), rotation.IDENTITY, owner=b)

    def _add_geoms(
        self, spec: Any, body: Any, table: Any, row: int, position: Array, quaternion: Array, owner: int
    ) -> None:
        """The convex pieces of a shape, with the surface and the filter of a row of a table."""
        shape_id = int(table.shape_id[row])
        shape = self._scene.shapes[shape_id]
        has_filters = has_groups(self._scene)
        for number, ((part, place, turn), own) in enumerate(zip(pieces(shape), parts_of(shape), strict=True)):
            self.geom_owner.append(owner)
            filters = {"contype": 1, "conaffinity": 1}
            if has_filters:
                group, mask = (int(np.uint32(bits).view(np.int32)) for bits in _filter_of(own, table, row))
                filters = {"contype": group, "conaffinity": mask}
            material = None if own is None else own.material
            body.add_geom(
                pos=rotation.rotate(quaternion, place + _origin_of(part)) + position,
                quat=rotation.multiply(quaternion, turn),
                mass=0.0,
                condim=3,
                gap=self._margin / 2,  # those of two geoms add up
                friction=[table.friction[row] if material is None else material.friction, 0.0, 0.0],
                **filters,
                **self._geometry(spec, part, (shape_id, number)),
            )

    def _geometry(self, spec: Any, shape: StaticShape, key: tuple[int, int]) -> dict[str, Any]:
        geom = self._mujoco.mjtGeom
        if isinstance(shape, Plane):
            return {"type": geom.mjGEOM_PLANE, "size": [0.0, 0.0, 1.0]}
        if isinstance(shape, Sphere):
            return {"type": geom.mjGEOM_SPHERE, "size": [shape.radius, 0.0, 0.0]}
        if isinstance(shape, Box):
            return {"type": geom.mjGEOM_BOX, "size": [edge / 2 for edge in shape.size]}
        if isinstance(shape, (Capsule, Cylinder)):
            kind = geom.mjGEOM_CAPSULE if isinstance(shape, Capsule) else geom.mjGEOM_CYLINDER
            return {"type": kind, "size": [shape.radius, shape.length / 2, 0.0]}
        if isinstance(shape, Ellipsoid):
            return {"type": geom.mjGEOM_ELLIPSOID, "size": list(shape.radii)}
        if isinstance(shape, HeightField):
            return self._height_field(spec, shape, key)
        assert isinstance(shape, ConvexHull)
        if key not in self._meshes:
            self._meshes[key] = f"m{key[0]}-{key[1]}"
            spec.add_mesh(name=self._meshes[key], uservert=shape.points.ravel().tolist())
        return {"type": geom.mjGEOM_MESH, "meshname": self._meshes[key]}

    def _height_field(self, spec: Any, shape: HeightField, key: tuple[int, int]) -> dict[str, Any]:
        """Solid down to its size below its lowest point. Heights are shares of what is above that point."""
        kind = self._mujoco.mjtGeom.mjGEOM_HFIELD
        (rows, columns), (x, y) = shape.heights.shape, shape.spacing
        half = (columns - 1) * x / 2, (rows - 1) * y / 2
        low = float(shape.heights.min())
        rise = max(float(shape.heights.max()) - low, 1e-6 * max(half))
        if key not in self._meshes:
            self._meshes[key] = f"h{key[0]}-{key[1]}"
            shares = ((shape.heights - low) / rise).ravel().tolist()
            size = [*half, rise, max(half)]
            spec.add_hfield(name=self._meshes[key], nrow=rows, ncol=columns, size=size, userdata=shares)
        return {"type": kind, "hfieldname": self._meshes[key]}

    def _add_constraints(self, spec: Any) -> None:
        scene, kinds = self._scene, self._mujoco.mjtEq
        for a, b in scene.ignored_pairs:
            spec.add_exclude(bodyname1=f"b{a}", bodyname2=f"b{b}")
        self._joint_data: list[list[float]] = []
        for joint in range(scene.joint_count):
            a, b = int(scene.joints.body_a[joint]), int(scene.joints.body_b[joint])
            names = {"name1": f"b{a}", "name2": "world" if b == WORLD else f"b{b}"}
            is_fixed = scene.joints.kind[joint] == JointKind.FIXED
            for data in self._joint_rows(joint):
                self._joint_data.append(data)
                self.constraint_joint.append(joint)
                spec.add_equality(
                    type=kinds.mjEQ_WELD if is_fixed else kinds.mjEQ_CONNECT,
                    objtype=self._mujoco.mjtObj.mjOBJ_BODY,
                    **names,
                )

    def _joint_rows(self, joint: int) -> list[list[float]]:
        """A joint as data of equality constraints: one weld, or one or two connected points."""
        joints = self._scene.joints
        frame_a, frame_b, kind = joints.frame_a[joint], joints.frame_b[joint], JointKind(joints.kind[joint])
        if kind is JointKind.FIXED:
            turn = rotation.multiply(frame_a[3:], rotation.conjugate(frame_b[3:]))
            return [[*frame_b[:3], *frame_a[:3], *turn]]
        arm = hinge_arm(self._scene, joint)
        rows = []
        for shift in (-arm, arm) if kind is JointKind.HINGE else (0.0,):
            ends = [frame[:3] + rotation.rotate(frame[3:], [shift, 0.0, 0.0]) for frame in (frame_a, frame_b)]
            rows.append([*ends[0], *ends[1]])
        return rows
