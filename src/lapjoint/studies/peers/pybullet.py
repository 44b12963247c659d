"""PyBullet: Bullet as the registry has it, with its own Python interface."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ...arrays import rotation
from ...engines.mapping import damping_rate, hinge_arm, pieces, principal_axes
from ...engines.support import has_groups
from ...params import Params
from ...scene import (
    STATE_SIZE,
    WORLD,
    Box,
    Capsule,
    Compound,
    Cone,
    ConvexHull,
    Cylinder,
    Ellipsoid,
    HeightField,
    Plane,
    Scene,
    Sphere,
    TriangleMesh,
)
from ...scene.joints import JointKind
from ...scene.shapes import StaticShape, hull_faces
from .base import (
    Array,
    Setting,
    hinge_note,
    left_out_notes,
    missing_shape,
    refuse_joints,
    refuse_shapes,
    refuse_surfaces,
)

LADDER = (10, 50, 100, 200)
MOST_PARTS = 16
"""Of a compound: a limit of PyBullet's messages."""
MAX_FORCE = 1e12
"""N; a joint of PyBullet gives way at a default of 500."""


class PyBulletPeer:
    """Rigid bodies where there are no joints; else multibodies of no links, for only these have all kinds of joint."""

    name = "pybullet"
    package = "pybullet"
    precision = "float64"
    most_threads = 1

    @staticmethod
    def check(scene: Scene) -> None:
        def reason(shape: StaticShape) -> str | None:
            if isinstance(shape, Compound) and len(shape.parts) > MOST_PARTS:
                return f"{len(shape.parts)} parts, it takes {MOST_PARTS}"
            return missing_shape(shape, Ellipsoid, Cone, HeightField)

        kinds = (JointKind.BALL, JointKind.HINGE, JointKind.SLIDER, JointKind.FIXED)
        refuse_shapes("pybullet", scene, reason)
        refuse_surfaces("pybullet", scene)
        refuse_joints("pybullet", scene, kinds)

    @staticmethod
    def ladder(scene: Scene, params: Params) -> list[Setting]:
        """Sweeps of the solver. As many as lapjoint has are among them: it is the same solver."""
        assert params.iterations is not None
        return [Setting(f"{n} iterations", 2 * n, {"iterations": n}) for n in sorted({*LADDER, params.iterations})]

    @staticmethod
    def unfair(scene: Scene) -> list[str]:
        notes = [
            "the same solver as lapjoint's, with its ERP, warm start and split impulse, but in float64",
            "one friction direction a contact point, lapjoint has two by default: about a third less work",
            "its thresholds (contacts break at 2 cm, hulls are 1 mm thicker) do not follow the size of the bodies",
            "reading states takes two calls a body",
            "one thread is all it has",
        ]
        if scene.joint_count:
            notes.append(
                "joints need multibodies, which are slower than rigid bodies; its own joints in a tree are not used"
            )
        return [*notes, *hinge_note(scene), *left_out_notes(scene)]

    def __init__(self, scene: Scene, states: Array, params: Params, setting: Setting) -> None:
        pybullet = _import()
        params = params.resolved(scene)
        self._p, self._client = pybullet, pybullet.connect(pybullet.DIRECT)
        self._at = {"physicsClientId": self._client}
        self._scene = scene
        self._shapes: dict[tuple[int, bytes], int] = {}
        pybullet.setGravity(*scene.gravity, **self._at)
        pybullet.setPhysicsEngineParameter(
            fixedTimeStep=params.timestep,
            numSubSteps=0,
            numSolverIterations=setting.values["iterations"],
            solverResidualThreshold=params.residual_threshold**2,
            erp=params.joint_erp,
            contactERP=params.contact_erp,
            warmStartingFactor=params.warm_start,
            useSplitImpulse=int(params.split_impulse),
            collisionFilterMode=0,  # both bodies have to want the contact
            **self._at,
        )
        axes = [principal_axes(inertia) for inertia in scene.bodies.inertia]
        self._moments = np.array([moments for moments, _ in axes]).reshape(-1, 3)
        self._turns = rotation.from_matrix(np.array([turn for _, turn in axes]).reshape(-1, 3, 3))
        with TemporaryDirectory(prefix="lapjoint-") as folder:
            self._folder = Path(folder)
            self._add_statics()
            self._ids = [self._add_body(body, states[body]) for body in range(scene.body_count)]
        for joint in range(scene.joint_count):
            self._add_joint(joint)
        for a, b in scene.ignored_pairs:
            pybullet.setCollisionFilterPair(self._ids[a], self._ids[b], -1, -1, 0, **self._at)

    # ---- bodies --------------------------------------------------------------------------------------------------

    def _add_statics(self) -> None:
        p, table = self._p, self._scene.statics
        for s in range(self._scene.static_count):
            shape = self._shape(int(table.shape_id[s]), rotation.IDENTITY)
            place = table.position[s].tolist(), _xyzw(table.quaternion[s])
            # Rigid, not multibody: between two multibodies of which one is fixed, contacts take a slower way.
            one = p.createMultiBody(0, shape, -1, *place, useMaximalCoordinates=1, **self._at)
            surface = {"lateralFriction": table.friction[s] ** 0.5, "restitution": table.restitution[s] ** 0.5}
            p.changeDynamics(one, -1, **surface, **self._at)
            self._set_groups(one, table, s)

    def _add_body(self, body: int, state: Array) -> int:
        p, table, turn = self._p, self._scene.bodies, self._turns[body]
        rigid = self._scene.joint_count == 0
        shape = self._shape(int(table.shape_id[body]), turn)
        place = state[:3].tolist(), _xyzw(rotation.multiply(state[3:7], turn))
        one: int = p.createMultiBody(table.mass[body], shape, -1, *place, useMaximalCoordinates=int(rigid), **self._at)
        damping = np.array([table.linear_damping[body], table.angular_damping[body]])
        linear, angular = damping if rigid else damping_rate(damping)
        # Bullet multiplies the coefficients of two bodies; their roots make that the geometric mean.
        p.changeDynamics(
            one,
            -1,
            mass=table.mass[body],
            localInertiaDiagonal=self._moments[body].tolist(),
            lateralFriction=table.friction[body] ** 0.5,
            restitution=table.restitution[body] ** 0.5,
            linearDamping=linear,
            angularDamping=angular,
            activationState=p.ACTIVATION_STATE_DISABLE_SLEEPING,
            **self._at,
        )
        p.resetBaseVelocity(one, state[7:10].tolist(), state[10:13].tolist(), **self._at)
        self._set_groups(one, table, body)
        return one

    def _set_groups(self, one: int, table: Any, row: int) -> None:
        if has_groups(self._scene):
            group, mask = (int(np.array(table[row], np.uint32).view(np.int32)) for table in (table.group, table.mask))
            self._p.setCollisionFilterGroupMask(one, -1, group, mask, **self._at)

    # ---- shapes --------------------------------------------------------------------------------------------------

    def _shape(self, shape_id: int, turn: Array) -> int:
        """A shape in the frame of the principal axes, `turn` away from the scene's."""
        key = shape_id, turn.tobytes()
        if key not in self._shapes:
            self._shapes[key] = self._make_shape(self._scene.shapes[shape_id], turn)
        return self._shapes[key]

    def _make_shape(self, shape: StaticShape, turn: Array) -> int:
        p, back = self._p, rotation.conjugate(turn)
        if isinstance(shape, Plane):
            return int(p.createCollisionShape(p.GEOM_PLANE, planeNormal=[0, 0, 1], **self._at))
        if isinstance(shape, TriangleMesh):
            triangles = {"vertices": shape.vertices.tolist(), "indices": shape.triangles.ravel().tolist()}
            return int(p.createCollisionShape(p.GEOM_MESH, **triangles, **self._at))
        parts = pieces(shape)
        columns = [self._columns(part) for part, _, _ in parts]
        frames = {}
        if isinstance(shape, Compound) or not np.allclose(turn, rotation.IDENTITY, atol=1e-12):
            frames = {
                "collisionFramePositions": [rotation.rotate(back, place).tolist() for _, place, _ in parts],
                "collisionFrameOrientations": [_xyzw(rotation.multiply(back, own)) for _, _, own in parts],
            }
        lists = {name: [column[name] for column in columns] for name in columns[0]}
        return int(p.createCollisionShapeArray(**lists, **frames, **self._at))

    def _columns(self, shape: StaticShape) -> dict[str, Any]:
        """One convex shape as createCollisionShapeArray takes it."""
        p = self._p
        values = {"shapeTypes": p.GEOM_SPHERE, "radii": 0.0, "halfExtents": [0.0] * 3, "lengths": 0.0, "fileNames": ""}
        if isinstance(shape, Sphere):
            values["radii"] = shape.radius
        elif isinstance(shape, Box):
            values |= {"shapeTypes": p.GEOM_BOX, "halfExtents": [edge / 2 for edge in shape.size]}
        elif isinstance(shape, (Capsule, Cylinder)):
            kind = p.GEOM_CAPSULE if isinstance(shape, Capsule) else p.GEOM_CYLINDER
            values |= {"shapeTypes": kind, "radii": shape.radius, "lengths": shape.length}
        else:
            assert isinstance(shape, ConvexHull)
            values |= {"shapeTypes": p.GEOM_MESH, "fileNames": self._write_hull(shape)}
        return values

    def _write_hull(self, hull: ConvexHull) -> str:
        """A hull that is part of a compound comes from a file only."""
        path = self._folder / f"{len(list(self._folder.iterdir()))}.obj"
        corners, faces = hull_faces(hull.points)
        lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in corners.tolist()]
        lines += [f"f {a} {b} {c}" for a, b, c in (faces + 1).tolist()]
        path.write_text("\n".join(lines) + "\n")
        return str(path)

    # ---- joints --------------------------------------------------------------------------------------------------

    def _add_joint(self, joint: int) -> None:
        p, table = self._p, self._scene.joints
        a, b = int(table.body_a[joint]), int(table.body_b[joint])
        frame_a, frame_b = self._frame(a, table.frame_a[joint]), self._frame(b, table.frame_b[joint])
        kind = JointKind(table.kind[joint])
        type_, shifts = p.JOINT_POINT2POINT, [0.0]
        if kind is JointKind.HINGE:
            arm = hinge_arm(self._scene, joint)
            shifts = [-arm, arm]
        elif kind is not JointKind.BALL:
            type_ = p.JOINT_FIXED if kind is JointKind.FIXED else p.JOINT_PRISMATIC
        for shift in shifts:
            (place_a, turn_a), (place_b, turn_b) = (_shifted(frame, shift) for frame in (frame_a, frame_b))
            made = p.createConstraint(
                self._ids[a],
                -1,
                self._ids[b] if b != WORLD else -1,
                -1,
                type_,
                [1.0, 0.0, 0.0],
                place_a,
                place_b,
                turn_a,
                turn_b,
                **self._at,
            )
            p.changeConstraint(made, maxForce=MAX_FORCE, **self._at)

    def _frame(self, body: int, frame: Array) -> Array:
        """A joint's frame in the frame of the principal axes."""
        if body == WORLD:
            return frame
        back = rotation.conjugate(self._turns[body])
        return np.concatenate([rotation.rotate(back, frame[:3]), rotation.multiply(back, frame[3:])])

    # ---- time ----------------------------------------------------------------------------------------------------

    def step(self, count: int = 1) -> None:
        step, client = self._p.stepSimulation, self._client
        for _ in range(count):
            step(physicsClientId=client)

    def states(self) -> Array:
        places, velocities = self._p.getBasePositionAndOrientation, self._p.getBaseVelocity
        rows = np.empty((self._scene.body_count, STATE_SIZE))
        for row, one in zip(rows, self._ids, strict=True):
            row[:3], (row[4], row[5], row[6], row[3]) = places(one, physicsClientId=self._client)
            row[7:10], row[10:13] = velocities(one, physicsClientId=self._client)
        rows[:, 3:7] = rotation.multiply(rows[:, 3:7], rotation.conjugate(self._turns))
        return rows

    def penetration(self) -> float:
        points = self._p.getContactPoints(**self._at) or ()
        return max(0.0, *(-float(point[8]) for point in points), 0.0)

    def close(self) -> None:
        if self._p.isConnected(self._client):
            self._p.disconnect(self._client)


def _import() -> Any:
    """The package, without the line that it prints when it is imported."""
    sys.stderr.flush()
    screen = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            return import_module("pybullet")
        finally:
            os.dup2(screen, 2)
            os.close(screen)


def _xyzw(quaternion: Array) -> list[float]:
    w, x, y, z = quaternion
    return [float(x), float(y), float(z), float(w)]


def _shifted(frame: Array, along: float) -> tuple[list[float], list[float]]:
    """Place and quaternion of a joint's frame, moved along its axis."""
    place = frame[:3] + rotation.rotate(frame[3:], [along, 0.0, 0.0])
    return place.tolist(), _xyzw(frame[3:])
