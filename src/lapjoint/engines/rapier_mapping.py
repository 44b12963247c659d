"""A scene's shapes, bodies and joints as Rapier's: for the engine and for the peer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import rotation
from ..errors import LapjointError
from ..scene import WORLD, Box, Capsule, Cone, ConvexHull, Cylinder, HeightField, Plane, Scene, Sphere, TriangleMesh
from ..scene.shapes import StaticShape
from .mapping import damping_rate, pieces, principal_axes
from .support import joint_title

Array = NDArray[np.float64]

UPRIGHT = rotation.from_axis_angle([1.0, 0.0, 0.0], np.array(np.pi / 2))
"""Turns its cylinders, cones and height fields, which stand along y."""
SUBSTEPS = 10
"""In which a constraint closes its share each (`Sequential.joint_erp`, `contact_erp`), as Bullet does once a step: 50
iterations, the default of a scene, are as many."""
DAMPING_RATIO = 1000.0
"""Of constraints that are rigid, but for rounding in float32."""
STIFF = 1e6
"""1/s: the rate at which a motor takes away what is missing of its velocity, as far as its largest force allows."""


def check_rotations(owner: str, scene: Scene) -> None:
    """Refuse what Rapier measures otherwise: limits, motors or springs on one of several free rotations, and both a
    motor and a spring on one axis."""
    joints = scene.joints
    lower, upper = joints.lower, joints.upper
    motor, spring = joints.motor_max_force > 0, joints.spring_stiffness > 0
    limited = (lower < upper) & (np.isfinite(lower) | np.isfinite(upper))
    several = (lower < upper)[:, 3:].sum(axis=1) > 1
    for what, table in (("limits", limited), ("a motor", motor), ("a spring", spring)):
        for joint in np.flatnonzero(table[:, 3:].any(axis=1) & several):
            raise LapjointError(
                f"{joint_title(scene, int(joint))} with {what} on one of several free rotations, which {owner} does "
                "not map"
            )
    for joint in np.flatnonzero((motor & spring).any(axis=1)):
        raise LapjointError(
            f"{joint_title(scene, int(joint))} with a motor and a spring on one axis, which {owner} does not map"
        )


def spring_of(rapier: Any, share: float, timestep: float) -> Any:
    """The spring of a constraint that closes a share of its gap in a substep of the default ten, however many there
    are, and gives way to no load.

    A spring with angular frequency w and damping ratio z closes it at the rate w / 2z, in substeps of h by
    h w / (2z + h w), and is the stiffer the larger z is: softer than rigid by 1 in h w (2z + h w).
    """
    rate = -np.log1p(-min(max(share, 1e-3), 0.999)) * SUBSTEPS / timestep
    return rapier.SpringCoefficients(2 * DAMPING_RATIO * rate / (2 * np.pi), DAMPING_RATIO)


class RapierMapping:
    """Makes Rapier's objects of a scene's rows; `rapier` is the module."""

    def __init__(self, rapier: Any, scene: Scene, softness: Any = None) -> None:
        """`softness`: of joints, as `spring_of` makes it; Rapier's own if not given."""
        self._rapier, self._scene, self._softness = rapier, scene, softness
        self._shapes: dict[int, Any] = {}
        # Bodies alike share what is made of them.
        self._masses: dict[tuple[float, bytes], Any] = {}
        self._colliders: dict[tuple[float, ...], Any] = {}
        table = scene.bodies
        self._damping = damping_rate(np.stack([table.linear_damping, table.angular_damping], axis=1)).tolist()
        axes = rapier.JointAxis
        self._axes = (axes.LIN_X, axes.LIN_Y, axes.LIN_Z, axes.ANG_X, axes.ANG_Y, axes.ANG_Z)
        self.quiet = {(int(a), int(b)) for a, b in scene.ignored_pairs}
        """Pairs of bodies that never touch. Jointed ones don't by their joint, others by one that holds nothing."""
        ends = np.sort(np.stack([scene.joints.body_a, scene.joints.body_b], axis=1), axis=1)
        self.loose_quiet = sorted(self.quiet - {(int(a), int(b)) for a, b in ends})

    # ---- bodies --------------------------------------------------------------------------------------------------

    def body(self, b: int, state: Array) -> Any:
        """A body without its collider."""
        x, y, z, w, i, j, k, *speed = state.tolist()
        linear, angular = self._damping[b]
        return (
            self._rapier.RigidBody.dynamic()
            .position(((x, y, z), (i, j, k, w)))
            .linvel(speed[:3])
            .angvel(speed[3:])
            .linear_damping(linear)
            .angular_damping(angular)
            .gyroscopic_forces(True)
            .can_sleep(False)
            .additional_mass_properties(self._mass(b))
        )

    def _mass(self, b: int) -> Any:
        mass, inertia = float(self._scene.bodies.mass[b]), self._scene.bodies.inertia[b]
        key = mass, inertia.tobytes()
        if key not in self._masses:
            moments, axes = principal_axes(inertia)
            turn = as_rotation(rotation.from_matrix(axes))
            self._masses[key] = self._rapier.MassProperties((0.0, 0.0, 0.0), mass, tuple(moments), turn)
        return self._masses[key]

    def body_collider(self, b: int) -> Any:
        """Without mass: the body has it."""
        table = self._scene.bodies
        columns = (table.shape_id, table.friction, table.restitution, table.group, table.mask)
        key = tuple(column[b].item() for column in columns)
        if key not in self._colliders:
            self._colliders[key] = self._collider(table, b).density(0.0)
        return self._colliders[key]

    def static_collider(self, s: int) -> Any:
        """Where the static body is."""
        statics = self._scene.statics
        turn = statics.quaternion[s]
        if isinstance(self._scene.shapes[statics.shape_id[s]], HeightField):
            turn = rotation.multiply(turn, UPRIGHT)  # it cannot be a part of a compound
        return self._collider(statics, s).position(as_isometry(statics.position[s], turn))

    def _collider(self, table: Any, row: int) -> Any:
        """A shape with the surface and the filter of a row of a table."""
        rapier = self._rapier
        mean = rapier.CoefficientCombineRule.GEOMETRIC_MEAN
        groups = rapier.InteractionGroups(
            rapier.Group(int(table.group[row])), rapier.Group(int(table.mask[row])), rapier.InteractionTestMode.AND
        )
        return (
            rapier.Collider.new(self.shape(int(table.shape_id[row])))
            .friction(float(table.friction[row]))
            .restitution(float(table.restitution[row]))
            .friction_combine_rule(mean)
            .restitution_combine_rule(mean)
            .collision_groups(groups)
        )

    def shape(self, shape_id: int) -> Any:
        """A shape of the scene, made once."""
        if shape_id not in self._shapes:
            self._shapes[shape_id] = self._shape(self._scene.shapes[shape_id])
        return self._shapes[shape_id]

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
        if isinstance(shape, HeightField):  # its rows go along z, which is -y once it is upright
            (rows, columns), (x, y) = shape.heights.shape, shape.spacing
            return shapes.heightfield(shape.heights[::-1], ((columns - 1) * x, 1.0, (rows - 1) * y))
        return shapes.compound([self._part(*piece) for piece in pieces(shape)])

    def _part(self, shape: StaticShape, place: Array, turn: Array) -> tuple[Any, Any]:
        if isinstance(shape, Cylinder):
            upright = self._rapier.SharedShape.cylinder(shape.length / 2, shape.radius)
            return as_isometry(place, rotation.multiply(turn, UPRIGHT)), upright
        if isinstance(shape, Cone):  # its middle is half way up
            middle = place + rotation.rotate(turn, [0.0, 0.0, shape.length / 4])
            upright = self._rapier.SharedShape.cone(shape.length / 2, shape.radius)
            return as_isometry(middle, rotation.multiply(turn, UPRIGHT)), upright
        return as_isometry(place, turn), self._shape(shape)

    # ---- joints --------------------------------------------------------------------------------------------------

    def joint(self, j: int) -> Any:
        """A joint from body b (first) to body a (second): the scene's limits, motors and springs speak of the motion of
        a relative to b, and Rapier's of its second body relative to the first."""
        rapier, joints = self._rapier, self._scene.joints
        a, b = int(joints.body_a[j]), int(joints.body_b[j])
        lower, upper = joints.lower[j], joints.upper[j]
        locked = sum(1 << axis for axis in range(6) if lower[axis] == upper[axis])
        made = (
            rapier.GenericJoint.builder(rapier.JointAxesMask(locked))
            .local_frame1(as_isometry(joints.frame_b[j, :3], joints.frame_b[j, 3:]))
            .local_frame2(as_isometry(joints.frame_a[j, :3], joints.frame_a[j, 3:]))
            .contacts_enabled(b == WORLD or (min(a, b), max(a, b)) not in self.quiet)
        )
        if self._softness is not None:
            made = made.softness(self._softness)
        for axis, name in enumerate(self._axes):
            low, high = lower[axis], upper[axis]
            if low < high and (np.isfinite(low) or np.isfinite(high)):
                made = made.limits(name, max(float(low), -1e9), min(float(high), 1e9))
            if joints.spring_stiffness[j, axis] > 0:
                spring = (joints.spring_stiffness[j, axis], joints.spring_damping[j, axis])
                made = made.motor_model(name, rapier.MotorModel.FORCE_BASED).motor(
                    name, float(joints.spring_rest[j, axis]), 0.0, *map(float, spring)
                )
            elif joints.motor_max_force[j, axis] > 0:
                made = (
                    made.motor_model(name, rapier.MotorModel.ACCELERATION_BASED)
                    .motor_velocity(name, float(joints.motor_velocity[j, axis]), STIFF)
                    .motor_max_force(name, float(joints.motor_max_force[j, axis]))
                )
        return made.build()

    def nothing(self) -> Any:
        """A joint that holds nothing, between bodies that pass through each other."""
        return self._rapier.GenericJoint.builder(self._rapier.JointAxesMask(0)).contacts_enabled(False).build()


def as_rotation(quaternion: Any) -> tuple[float, float, float, float]:
    w, x, y, z = quaternion
    return float(x), float(y), float(z), float(w)


def as_isometry(position: Any, quaternion: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(float(x) for x in position), as_rotation(quaternion)
