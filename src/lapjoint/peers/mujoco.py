"""MuJoCo: soft constraints, solved all at once."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from .. import rotation
from ..errors import LapjointError
from ..joints import WORLD, JointKind
from ..params import Params
from ..scene import STATE_SIZE, Scene
from ..shapes import Box, Capsule, ConvexHull, Cylinder, Plane, Sphere, StaticShape, TriangleMesh
from .base import Array, Setting, has_groups, hinge_arm, hinge_note, pieces, refuse_joints, refuse_shapes, rolling_note

LADDER = (("CG", 10, False), ("CG", 10, True), ("CG", 30, True), ("CG", 100, True))
"""Solver, iterations at most, and whether constraints are stiff: their time constant is then two timesteps, the
shortest that MuJoCo takes for stable, else the default of 20 ms."""
NEWTON = ("Newton", 100, True)
NEWTON_BODIES = 300
"""Newton, the default solver, only for so many: on a pile of 1,000 balls it takes 270 to 650 ms a step, CG 5 to 20."""
BODY_BYTES, LEAST_BYTES = 400_000, 1 << 28
"""Memory for contacts and for the solver; it is touched only where it is used."""


class MujocoPeer:
    """Free bodies, with joints as equality constraints between them."""

    name = "mujoco"
    package = "mujoco"
    precision = "float64"

    @staticmethod
    def check(scene: Scene) -> None:
        def reason(shape: StaticShape) -> str | None:
            return "it would take the convex hull instead" if isinstance(shape, TriangleMesh) else None

        refuse_shapes("mujoco", scene, reason)
        refuse_joints("mujoco", scene, (JointKind.BALL, JointKind.HINGE, JointKind.FIXED))
        sides = {(int(g), int(m)) for t in (scene.bodies, scene.statics) for g, m in zip(t.group, t.mask, strict=True)}
        for group, mask in sides:
            for other_group, other_mask in sides:
                if bool(group & other_mask) != bool(other_group & mask):
                    raise LapjointError(
                        f"scene {scene.name!r}: a body of group {group} wants no contact with one of group "
                        f"{other_group} that wants it, or the other way round: the peer mujoco cannot take groups and "
                        "masks that differ from side to side"
                    )

    @staticmethod
    def ladder(scene: Scene, params: Params) -> list[Setting]:
        """Solver, iterations and stiffness: penetration comes from the stiffness."""
        return [
            Setting(
                f"{solver} {iterations}" + " stiff" * stiff,
                20 * iterations,
                {"solver": solver, "iterations": iterations, "stiff": stiff},
            )
            for solver, iterations, stiff in (*LADDER, *[NEWTON][: scene.body_count <= NEWTON_BODIES])
        ]

    @staticmethod
    def unfair(scene: Scene) -> list[str]:
        notes = [
            "its constraints are soft by design: penetration and gaps follow their stiffness, not the iterations, and "
            "stiff ones shake more",
            "it is made for few bodies with many joints: all contacts of a pile are one problem for its solver",
            "float64; friction is a pyramid with slip, lapjoint's has none",
            "one thread is all a scene gets; more are for many scenes side by side",
        ]
        if scene.body_count > NEWTON_BODIES:
            notes.append(
                f"Newton, its default solver, is left out above {NEWTON_BODIES} bodies: piles take it too long"
            )
        if scene.joint_count:
            notes.append(
                "joints are equality constraints here; its own joints in a tree, which have no gap, are not used"
            )
        bouncy = int((scene.bodies.restitution > 0).sum())
        if bouncy:
            notes.append(f"restitution of {bouncy} bodies is left out: its contacts have none")
        if len({*scene.bodies.friction, *scene.statics.friction}) > 1:
            notes.append("a contact takes the larger friction of its two bodies, not the geometric mean")
        return [*notes, *hinge_note(scene), *rolling_note(scene)]

    def __init__(self, scene: Scene, states: Array, params: Params, setting: Setting) -> None:
        mujoco: Any = import_module(self.package)
        params = params.resolved(scene)
        assert params.timestep is not None
        self._mujoco, self._scene = mujoco, scene
        # Else warnings go to a file in the working directory; `step` looks at those that count.
        mujoco.set_mju_user_warning(lambda _: None)
        spec = mujoco.MjSpec()
        spec.memory = max(LEAST_BYTES, BODY_BYTES * scene.body_count)
        option = spec.option
        option.timestep, option.gravity = params.timestep, scene.gravity
        option.solver = getattr(mujoco.mjtSolver, f"mjSOL_{setting.values['solver'].upper()}")
        option.iterations = setting.values["iterations"]
        option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET  # a state that is not finite shall stay so
        # Several points a pair of hulls; newer versions do it unless told otherwise.
        option.enableflags |= getattr(mujoco.mjtEnableBit, "mjENBL_MULTICCD", 0)
        self._meshes: dict[tuple[int, int], str] = {}
        self._add_bodies(spec)
        self._add_constraints(spec)
        self._model = model = spec.compile()
        self._set_joint_frames()
        if setting.values["stiff"]:
            model.geom_solref[:, 0] = model.eq_solref[:, 0] = 2 * params.timestep
        bodies = scene.bodies
        kept = 1 - np.stack([bodies.linear_damping, bodies.angular_damping], axis=1)
        self._kept = np.repeat(kept**params.timestep, 3, axis=1).ravel()
        self._is_damped = bool((self._kept < 1).any())
        self._data = mujoco.MjData(model)
        self._data.qpos[:] = states[:, :7].ravel()
        self._data.qvel[:] = np.concatenate(
            [states[:, 7:10], rotation.rotate(rotation.conjugate(states[:, 3:7]), states[:, 10:13])], axis=1
        ).ravel()

    # ---- the model -----------------------------------------------------------------------------------------------

    def _add_bodies(self, spec: Any) -> None:
        scene = self._scene
        statics, bodies = scene.statics, scene.bodies
        for s in range(scene.static_count):
            self._add_geoms(spec, spec.worldbody, statics, s, statics.position[s], statics.quaternion[s])
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
            self._add_geoms(spec, body, bodies, b, np.zeros(3), rotation.IDENTITY)

    def _add_geoms(self, spec: Any, body: Any, table: Any, row: int, position: Array, quaternion: Array) -> None:
        """The convex pieces of a shape, with the surface and the filter of a row of a table."""
        shape_id = int(table.shape_id[row])
        shape = self._scene.shapes[shape_id]
        filters = {"contype": 1, "conaffinity": 1}
        if has_groups(self._scene):
            group, mask = (int(column[row].view(np.int32)) for column in (table.group, table.mask))
            filters = {"contype": group, "conaffinity": mask}
        for number, (part, place, turn) in enumerate(pieces(shape)):
            body.add_geom(
                pos=rotation.rotate(quaternion, place) + position,
                quat=rotation.multiply(quaternion, turn),
                mass=0.0,
                condim=3,
                friction=[table.friction[row], 0.0, 0.0],
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
        assert isinstance(shape, ConvexHull)
        if key not in self._meshes:
            self._meshes[key] = f"m{key[0]}-{key[1]}"
            spec.add_mesh(name=self._meshes[key], uservert=shape.points.ravel().tolist())
        return {"type": geom.mjGEOM_MESH, "meshname": self._meshes[key]}

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

    def _set_joint_frames(self) -> None:
        """The frames as the scene has them; MuJoCo takes some of them from where the bodies stand."""
        for row, data in zip(self._model.eq_data, self._joint_data, strict=True):
            row[: len(data)] = data

    # ---- time ----------------------------------------------------------------------------------------------------

    def step(self, count: int = 1) -> None:
        step, model, data, warning = self._mujoco.mj_step, self._model, self._data, self._mujoco.mjtWarning
        for _ in range(count):
            if self._is_damped:
                data.qvel *= self._kept
            step(model, data)
        for full in (warning.mjWARN_CONTACTFULL, warning.mjWARN_CNSTRFULL):
            if data.warning[full].number:
                raise LapjointError(f"peer mujoco: no memory for all contacts of scene {self._scene.name!r}")

    def states(self) -> Array:
        places, speeds = self._data.qpos.reshape(-1, 7), self._data.qvel.reshape(-1, 6)
        rows = np.empty((self._scene.body_count, STATE_SIZE))
        rows[:, :7], rows[:, 7:10] = places, speeds[:, :3]
        rows[:, 3:7] /= np.linalg.norm(rows[:, 3:7], axis=1, keepdims=True)
        rows[:, 10:13] = rotation.rotate(rows[:, 3:7], speeds[:, 3:])
        return rows

    def penetration(self) -> float:
        return float(max(0.0, -self._data.contact.dist.min(initial=0.0)))

    def close(self) -> None:
        del self._data, self._model
