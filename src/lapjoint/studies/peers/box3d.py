"""Box3D: substeps with soft contacts, in float32, by the library that the package robox3d brings."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ...arrays import rotation
from ...engines.mapping import damping_rate
from ...errors import LapjointError
from ...params import Params
from ...scene import STATE_SIZE, WORLD, Cone, Cylinder, Ellipsoid, Plane, Scene
from ...scene.joints import JointKind
from .base import Array, Setting, left_out_notes, missing_shape, refuse_joints, refuse_shapes, refuse_surfaces
from .box3d_shapes import CYLINDER_SIDES, MOST_CORNERS, Box3DShapes, as_quat, as_transform, many_corners, used_pieces

LADDER = (
    (4, False, False),
    *((n, True, fresh) for fresh in (False, True) for n in (1, 2, 4, 8)),
)
"""Substeps; whether contacts and joints are as stiff as it lets them be; and whether contacts are found again in every
step, where by default it recycles those of bodies that have moved by less than 5 cm. With four substeps, fresh ones
leave a tenth of the penetration in the bowl at the same cost; the pyramid takes a third longer and is no better for
it."""
STIFFEST = 1e6
"""Hz: Box3D takes less, an eighth of its substeps' rate for contacts (a quarter with static bodies), a quarter for
joints. Damping ratios are left at their defaults, 10 and 2: from 1 to 10 none is better on all scenes."""
PUSH_SPEED = 1e3
"""m/s: how fast stiff contacts may push bodies apart; the default is 3."""
FAR = 1e5
"""m: where a slider without a limit ends."""
AXIS_TURN = rotation.from_matrix(np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
"""Turns z to x: its hinges have the z axis of their frames, lapjoint's the x axis."""


class Box3DPeer:
    """Rigid bodies, contacts and joints of one world."""

    name = "box3d"
    package = "robox3d"
    precision = "float32"
    most_threads = 32

    @staticmethod
    def check(scene: Scene) -> None:
        kinds = (JointKind.BALL, JointKind.HINGE, JointKind.SLIDER, JointKind.FIXED)
        refuse_shapes("box3d", scene, lambda shape: missing_shape(shape, Ellipsoid, Cone))
        refuse_surfaces("box3d", scene)
        refuse_joints("box3d", scene, kinds, limits=True)

    @staticmethod
    def ladder(scene: Scene, params: Params) -> list[Setting]:
        """Substeps, and the stiffness of contacts and joints."""
        return [
            Setting(
                f"{n} {('stiff, fresh' if fresh else 'stiff') if stiff else 'substeps'}",
                4 + 4 * n,
                {"substeps": n, "stiff": stiff, "fresh": fresh},
            )
            for n, stiff, fresh in LADDER
        ]

    @staticmethod
    def unfair(scene: Scene) -> list[str]:
        notes = [
            "its contacts and joints are springs: at the defaults of 30 and 60 Hz bodies sink in and joints stretch",
            "float32; four points at most and one friction constraint a contact, where sequential has two a point",
            "contacts of bodies that have moved by less than 5 cm are recycled, unless they are fresh",
            "fast bodies are kept from passing through static ones, not through each other",
            "no bounce below 1 m/s",
        ]
        kinds = {type(shape) for shape in used_pieces(scene)}
        if Plane in kinds:
            notes.append("a plane is a wide box")
        if Cylinder in kinds:
            notes.append(f"a cylinder is a prism of {CYLINDER_SIDES} sides")
        if count := many_corners(scene):
            notes.append(f"{count} hulls of more than {MOST_CORNERS} corners are simplified to so many")
        if len({*scene.bodies.restitution, *scene.statics.restitution}) > 1:
            notes.append("a contact takes the larger restitution of its two bodies, not the geometric mean")
        return [*notes, *left_out_notes(scene)]

    def __init__(self, scene: Scene, states: Array, params: Params, setting: Setting) -> None:
        self._ffi, self._lib, self._shim = _load()
        params = params.resolved(scene)
        assert params.timestep is not None
        self._scene, self._timestep, self._substeps = scene, params.timestep, setting.values["substeps"]
        self._stiff: bool = setting.values["stiff"]
        self._world: Any = self._create_world(setting.threads)
        if setting.values["fresh"]:
            self._lib.b3World_SetContactRecycleDistance(self._world, 0.0)
        self._shapes = Box3DShapes(self._ffi, self._lib, scene, states)
        for s in range(scene.static_count):
            self._add_static(s)
        self._ids = self._ffi.new("b3BodyId[]", scene.body_count)
        for b in range(scene.body_count):
            self._ids[b] = self._add_body(b, states[b])
        self._add_joints()

    def _create_world(self, threads: int) -> Any:
        definition = self._lib.b3DefaultWorldDef()
        definition.gravity = self._scene.gravity.tolist()
        definition.enableSleep = False
        definition.workerCount = threads
        if self._stiff:
            definition.contactHertz, definition.contactSpeed = STIFFEST, PUSH_SPEED
        return self._lib.b3CreateWorld(self._ffi.addressof(definition))

    # ---- bodies --------------------------------------------------------------------------------------------------

    def _add_static(self, s: int) -> None:
        statics, definition = self._scene.statics, self._lib.b3DefaultBodyDef()
        definition.position, definition.rotation = statics.position[s].tolist(), as_quat(statics.quaternion[s])
        body = self._lib.b3CreateBody(self._world, self._ffi.addressof(definition))
        self._shapes.add(body, statics, s)

    def _add_body(self, b: int, state: Array) -> Any:
        table, definition = self._scene.bodies, self._lib.b3DefaultBodyDef()
        definition.type = self._lib.b3_dynamicBody
        definition.position, definition.rotation = state[:3].tolist(), as_quat(state[3:7])
        definition.linearVelocity, definition.angularVelocity = state[7:10].tolist(), state[10:13].tolist()
        damping = damping_rate(np.array([table.linear_damping[b], table.angular_damping[b]]))
        definition.linearDamping, definition.angularDamping = damping.tolist()
        definition.enableSleep = False
        body = self._lib.b3CreateBody(self._world, self._ffi.addressof(definition))
        self._shapes.add(body, table, b)
        self._lib.b3Body_SetMassData(body, (table.mass[b], (0.0, 0.0, 0.0), table.inertia[b].T.tolist()))
        # Only this makes it compute the inertia in the world; without it nothing turns in the first step.
        self._lib.b3Body_SetTransform(body, state[:3].tolist(), as_quat(state[3:7]))
        return body

    # ---- joints --------------------------------------------------------------------------------------------------

    def _add_joints(self) -> None:
        """Joints from body b (first) to body a (second), for limits speak of the motion of a relative to b."""
        scene, lib, joints = self._scene, self._lib, self._scene.joints
        if scene.joint_count:
            ground = lib.b3CreateBody(self._world, self._ffi.addressof(lib.b3DefaultBodyDef()))
        quiet = {(int(a), int(b)) for a, b in scene.ignored_pairs}
        for j in range(scene.joint_count):
            a, b = int(joints.body_a[j]), int(joints.body_b[j])
            pair = min(a, b), max(a, b)
            self._add_joint(j, ground if b == WORLD else self._ids[b], self._ids[a], b == WORLD or pair not in quiet)
        ends = np.sort(np.stack([joints.body_a, joints.body_b], axis=1), axis=1).tolist()
        for a, b in sorted(quiet - {(a, b) for a, b in ends}):
            definition = lib.b3DefaultFilterJointDef()
            definition.base.bodyIdA, definition.base.bodyIdB = self._ids[a], self._ids[b]
            lib.b3CreateFilterJoint(self._world, self._ffi.addressof(definition))

    def _add_joint(self, j: int, first: Any, second: Any, collide: bool) -> None:
        lib, joints = self._lib, self._scene.joints
        kind = JointKind(joints.kind[j])
        frames = joints.frame_b[j].copy(), joints.frame_a[j].copy()
        if kind is JointKind.BALL:
            definition, create = lib.b3DefaultSphericalJointDef(), lib.b3CreateSphericalJoint
        elif kind is JointKind.FIXED:
            definition, create = lib.b3DefaultWeldJointDef(), lib.b3CreateWeldJoint
        elif kind is JointKind.HINGE:
            definition, create = lib.b3DefaultRevoluteJointDef(), lib.b3CreateRevoluteJoint
            for frame in frames:
                frame[3:] = rotation.multiply(frame[3:], AXIS_TURN)
            low, high = np.clip([joints.lower[j, 3], joints.upper[j, 3]], -np.pi, np.pi).tolist()
            definition.enableLimit = high - low < 2 * np.pi
            definition.lowerAngle, definition.upperAngle = low, high
        else:
            definition, create = lib.b3DefaultPrismaticJointDef(), lib.b3CreatePrismaticJoint
            low, high = np.clip([joints.lower[j, 0], joints.upper[j, 0]], -FAR, FAR).tolist()
            definition.enableLimit = high - low < 2 * FAR
            definition.lowerTranslation, definition.upperTranslation = low, high
        base = definition.base
        base.bodyIdA, base.bodyIdB, base.collideConnected = first, second, collide
        base.localFrameA, base.localFrameB = map(as_transform, frames)
        if self._stiff:
            base.constraintHertz = STIFFEST
        create(self._world, self._ffi.addressof(definition))

    # ---- time ----------------------------------------------------------------------------------------------------

    def step(self, count: int = 1) -> None:
        step, world, timestep, substeps = self._lib.b3World_Step, self._world, self._timestep, self._substeps
        for _ in range(count):
            step(world, timestep, substeps)

    def states(self) -> Array:
        count, ffi = self._scene.body_count, self._ffi
        places, speeds = np.empty((count, 7), np.float32), np.empty((count, 6), np.float32)
        self._shim.rxBodyGetPoses(self._ids, count, ffi.from_buffer("float[]", places))
        self._shim.rxBodyGetVelocities(self._ids, count, ffi.from_buffer("float[]", speeds))
        rows = np.empty((count, STATE_SIZE))
        rows[:, :3], rows[:, 3], rows[:, 4:7], rows[:, 7:] = places[:, :3], places[:, 6], places[:, 3:6], speeds
        return rows

    def penetration(self) -> float:
        lib, deepest = self._lib, 0.0
        for body in self._ids:
            capacity = lib.b3Body_GetContactCapacity(body)
            contacts = self._ffi.new("b3ContactData[]", max(1, capacity))
            for contact in contacts[0 : lib.b3Body_GetContactData(body, contacts, capacity)]:
                for manifold in contact.manifolds[0 : contact.manifoldCount]:
                    for point in manifold.points[0 : manifold.pointCount]:
                        deepest = max(deepest, -point.separation)
        return deepest

    def close(self) -> None:
        if self._world is not None:
            self._lib.b3DestroyWorld(self._world)
            self._world = None
            self._shapes.close()


def _load() -> tuple[Any, Any, Any]:
    """The interface of the library: its declarations, its functions, and those of robox3d that read many bodies."""
    try:
        module: Any = import_module("robox3d._ffi")
    except (ImportError, OSError) as error:
        raise LapjointError(f"peer box3d: the package robox3d has no library that can be loaded: {error}") from error
    return module.ffi, module.lib, module.shim
