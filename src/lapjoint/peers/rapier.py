"""Rapier: substeps with soft contacts, in float32."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from .. import rotation
from ..errors import LapjointError
from ..joints import WORLD, JointKind
from ..params import Params, typical_length
from ..scene import STATE_SIZE, Scene
from ..shapes import Box, Capsule, ConvexHull, Cylinder, Plane, Sphere, StaticShape, TriangleMesh
from .base import Array, Setting, damping_rate, pieces, principal_axes, refuse_joints, rolling_note

LADDER = ((4, False), (8, False), (4, True), (8, True), (16, True))
"""Iterations (substeps), and whether contacts are stiff: springs of 1 / timestep, where the default is 30 Hz, from
contacts found anew in every step."""
UPRIGHT = rotation.from_axis_angle([1.0, 0.0, 0.0], np.array(np.pi / 2))
"""Turns its cylinders, which stand along y."""


class RapierPeer:
    """Rigid bodies and impulse joints."""

    name = "rapier"
    package = "rapier3d"
    precision = "float32"

    @staticmethod
    def check(scene: Scene) -> None:
        refuse_joints("rapier", scene, tuple(JointKind), limits=True)
        joints = scene.joints
        lower, upper = joints.lower[:, 3:], joints.upper[:, 3:]
        limited = (lower < upper) & (np.isfinite(lower) | np.isfinite(upper))
        for joint in np.flatnonzero(limited.any(axis=1) & ((lower < upper).sum(axis=1) > 1)):
            raise LapjointError(
                f"scene {scene.name!r}: joint {joint} is a SixAxis with limits on one of several free rotations, which "
                "the peer rapier does not map"
            )

    @staticmethod
    def ladder(scene: Scene, params: Params) -> list[Setting]:
        """Substeps of the solver, and the stiffness of contacts."""
        return [
            Setting(f"{n} {'stiff' if stiff else 'iterations'}", 5 * n, {"iterations": n, "stiff": stiff})
            for n, stiff in LADDER
        ]

    @staticmethod
    def unfair(scene: Scene) -> list[str]:
        notes = [
            "its iterations are substeps: fewer of them do more",
            "its contacts are springs: at the default of 30 Hz bodies sink in; it is not tuned for stiff ones",
            "float32; one friction constraint for all points of a contact, where lapjoint has two a point",
            "its Python interface reads states body by body",
            "more threads would make it faster; it gets one",
        ]
        return [*notes, *rolling_note(scene)]

    def __init__(self, scene: Scene, states: Array, params: Params, setting: Setting) -> None:
        rapier3d: Any = import_module(self.package)
        params = params.resolved(scene)
        assert params.timestep is not None
        self._rapier, self._scene = rapier3d, scene
        self._world = world = rapier3d.PhysicsWorld(gravity=tuple(scene.gravity))
        world.set_num_threads(1)
        options = world.integration_parameters
        options.dt, options.length_unit = params.timestep, typical_length(scene)
        options.num_solver_iterations = setting.values["iterations"]
        if setting.values["stiff"]:
            for name, factor in (("contact_softness", 1.0), ("static_contact_softness", 2.0)):
                ratio = getattr(options, name).damping_ratio
                setattr(options, name, rapier3d.SpringCoefficients(factor / params.timestep, ratio))
            options.contact_recycling = False
        self._shapes: dict[int, Any] = {}
        statics = scene.statics
        for s in range(scene.static_count):
            place = statics.position[s], statics.quaternion[s]
            world.add_collider(self._collider(statics, s).position(_isometry(*place)))
        self._handles = [self._add_body(b, states[b]) for b in range(scene.body_count)]
        self._add_joints()
        self._bodies = [world.rigid_bodies[handle] for handle in self._handles]

    # ---- bodies --------------------------------------------------------------------------------------------------

    def _add_body(self, b: int, state: Array) -> Any:
        rapier, table = self._rapier, self._scene.bodies
        moments, axes = principal_axes(table.inertia[b])
        mass = rapier.MassProperties(
            (0.0, 0.0, 0.0), float(table.mass[b]), tuple(moments), _rotation(rotation.from_matrix(axes))
        )
        linear, angular = damping_rate(np.array([table.linear_damping[b], table.angular_damping[b]]))
        body = (
            rapier.RigidBody.dynamic()
            .position(_isometry(state[:3], state[3:7]))
            .linvel(tuple(state[7:10]))
            .angvel(tuple(state[10:13]))
            .linear_damping(float(linear))
            .angular_damping(float(angular))
            .gyroscopic_forces(True)
            .can_sleep(False)
            .additional_mass_properties(mass)
        )
        return self._world.add_body(body, [self._collider(table, b).density(0.0)])

    def _collider(self, table: Any, row: int) -> Any:
        """A shape with the surface and the filter of a row of a table."""
        rapier, shape_id = self._rapier, int(table.shape_id[row])
        if shape_id not in self._shapes:
            self._shapes[shape_id] = self._shape(self._scene.shapes[shape_id])
        mean = rapier.CoefficientCombineRule.GEOMETRIC_MEAN
        groups = rapier.InteractionGroups(
            rapier.Group(int(table.group[row])), rapier.Group(int(table.mask[row])), rapier.InteractionTestMode.AND
        )
        return (
            rapier.Collider.new(self._shapes[shape_id])
            .friction(float(table.friction[row]))
            .restitution(float(table.restitution[row]))
            .friction_combine_rule(mean)
            .restitution_combine_rule(mean)
            .collision_groups(groups)
        )

    def _shape(self, shape: StaticShape) -> Any:
        shapes = self._rapier.SharedShape
        if isinstance(shape, Sphere):
            return shapes.ball(shape.radius)
        if isinstance(shape, Box):
            return shapes.cuboid(*(edge / 2 for edge in shape.size))
        if isinstance(shape, Capsule):
            return shapes.capsule_z(shape.length / 2, shape.radius)
        if isinstance(shape, ConvexHull):
            return shapes.convex_hull(shape.points)
        if isinstance(shape, Plane):
            return shapes.halfspace((0.0, 0.0, 1.0))
        if isinstance(shape, TriangleMesh):
            return shapes.trimesh(shape.vertices, shape.triangles)
        return shapes.compound([self._part(*piece) for piece in pieces(shape)])

    def _part(self, shape: StaticShape, place: Array, turn: Array) -> tuple[Any, Any]:
        if isinstance(shape, Cylinder):
            upright = self._rapier.SharedShape.cylinder(shape.length / 2, shape.radius)
            return _isometry(place, rotation.multiply(turn, UPRIGHT)), upright
        return _isometry(place, turn), self._shape(shape)

    # ---- joints --------------------------------------------------------------------------------------------------

    def _add_joints(self) -> None:
        rapier, scene, joints = self._rapier, self._scene, self._scene.joints
        axes = rapier.JointAxis
        names = (axes.LIN_X, axes.LIN_Y, axes.LIN_Z, axes.ANG_X, axes.ANG_Y, axes.ANG_Z)
        quiet = {(int(a), int(b)) for a, b in scene.ignored_pairs}
        jointed: set[tuple[int, int]] = set()
        world = self._world.rigid_bodies.insert(rapier.RigidBody.fixed())
        for j in range(scene.joint_count):
            a, b = int(joints.body_a[j]), int(joints.body_b[j])
            lower, upper = joints.lower[j], joints.upper[j]
            locked = sum(1 << axis for axis in range(6) if lower[axis] == upper[axis])
            pair = (min(a, b), max(a, b))
            # Limits speak of the motion of a relative to b, and Rapier's of its second body relative to the first.
            joint = (
                rapier.GenericJoint.builder(rapier.JointAxesMask(locked))
                .local_frame1(_isometry(joints.frame_b[j, :3], joints.frame_b[j, 3:]))
                .local_frame2(_isometry(joints.frame_a[j, :3], joints.frame_a[j, 3:]))
                .contacts_enabled(pair not in quiet)
            )
            for axis, name in enumerate(names):
                low, high = lower[axis], upper[axis]
                if low < high and (np.isfinite(low) or np.isfinite(high)):
                    joint = joint.limits(name, max(float(low), -1e9), min(float(high), 1e9))
            first = world if b == WORLD else self._handles[b]
            self._world.impulse_joints.insert(first, self._handles[a], joint.build())
            jointed.add(pair)
        # Pairs that pass through each other without a joint get one that holds nothing.
        for a, b in sorted(quiet - jointed):
            nothing = rapier.GenericJoint.builder(rapier.JointAxesMask(0)).contacts_enabled(False).build()
            self._world.impulse_joints.insert(self._handles[a], self._handles[b], nothing)

    # ---- time ----------------------------------------------------------------------------------------------------

    def step(self, count: int = 1) -> None:
        step = self._world.step
        for _ in range(count):
            step()

    def states(self) -> Array:
        rows = np.empty((self._scene.body_count, STATE_SIZE))
        for row, body in zip(rows, self._bodies, strict=True):
            turn = body.rotation
            row[:3], row[3:7] = body.translation.to_tuple(), (turn.w, turn.i, turn.j, turn.k)
            row[7:10], row[10:13] = body.linvel.to_tuple(), body.angvel.to_tuple()
        return rows

    def penetration(self) -> float:
        deepest = (pair.find_deepest_contact() for pair in self._world.narrow_phase.contact_pairs())
        return max(0.0, *(-float(contact.dist) for contact in deepest if contact is not None), 0.0)

    def close(self) -> None:
        self._bodies.clear()
        self._world.clear()


def _rotation(quaternion: Any) -> tuple[float, float, float, float]:
    w, x, y, z = quaternion
    return float(x), float(y), float(z), float(w)


def _isometry(position: Any, quaternion: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(float(x) for x in position), _rotation(quaternion)
