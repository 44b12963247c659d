"""What is checked when things are added to a scene, and engines rely on, once more: for a scene that was read."""

from __future__ import annotations

import numpy as np

from ..arrays.checks import as_rows, inertia_rows, integer_rows, positive_rows, unit_quaternions
from .bonds import check_bonds
from .content import SceneContent
from .glue import check_glued
from .height_field import HeightField
from .joints import KINDS, WORLD, JointKind
from .materials import COMBINE_RULES
from .sensors import IN_WORLD
from .shapes import TriangleMesh


def check_scene(scene: SceneContent) -> None:
    """Check again what is checked when things are added, and engines rely on: for a scene that was read."""
    for name, columns in (("body", scene.bodies), ("static body", scene.statics)):

        def title(row: int, name: str = name) -> str:
            return f"{name} {row}"

        count = len(columns)
        integer_rows("shape number", columns.shape_id, count, title, 0, len(scene.shapes) - 1)
        as_rows("position", columns.position, count, (3,), title)
        unit_quaternions(columns.quaternion, count, title)
        surface = np.stack([columns.friction, columns.restitution, columns.rolling_friction], 1)
        as_rows("surface", surface, count, (3,))
        for rule in ("friction_combine", "restitution_combine"):
            integer_rows(rule, getattr(columns, rule), count, title, 0, len(COMBINE_RULES) - 1)
    bodies, joints = scene.bodies, scene.joints
    scene.bounding_radii()  # every body's shape can move
    positive_rows("mass", bodies.mass, len(bodies), scene.body_title)
    inertia_rows(bodies.inertia, len(bodies), scene.body_title)
    for name in ("hit_impulse", "hit_speed"):
        positive_rows(name, getattr(bodies, name), len(bodies), scene.body_title, infinite=True)
    as_rows("velocity", np.concatenate([bodies.linear_velocity, bodies.angular_velocity], 1), len(bodies), (6,))
    integer_rows("joint kind", joints.kind, len(joints), None, 0, len(KINDS) - 1)
    scene._check_joint_bodies(joints.body_a, joints.body_b, lambda row: f"joint {row}")
    for frame in (joints.frame_a, joints.frame_b):
        as_rows("anchor", frame[:, :3], len(joints), (3,), "joint")
        unit_quaternions(frame[:, 3:], len(joints), lambda row: f"joint {row}")
    if not ((joints.break_force > 0).all() and (joints.break_torque > 0).all()):
        raise ValueError("break strengths")
    check_bonds(joints, f"scene {scene.name!r}: ")
    pushes = np.stack([joints.drive_stiffness, joints.drive_damping, joints.drive_max_force, joints.friction])
    if (pushes < 0).any() or np.isinf(pushes[[0, 1, 3]]).any():
        raise ValueError("drives or friction")
    as_rows("drive", np.concatenate([joints.drive_position, joints.drive_velocity], 1), len(joints), (12,))
    as_rows("gear ratio", joints.gear_ratio[:, None], len(joints), (1,))
    if (joints.body_b[joints.kind == JointKind.GEAR] == WORLD).any():
        raise ValueError("gears")
    if not (joints.upper[joints.kind == JointKind.DISTANCE, 0] > 0).all():
        raise ValueError("distances")
    as_rows("surface velocity", scene.statics.surface_velocity, scene.static_count, (6,))
    for one in scene.fields:
        if one.bodies is not None and len(one.bodies) and not 0 <= one.bodies.min() <= one.bodies.max() < len(bodies):
            raise ValueError("bodies of a field")
    _check_sensors(scene)
    check_glued(scene.glued, len(bodies))
    if not set(scene.motions) <= set(range(scene.static_count)):
        raise ValueError("kinematic bodies")
    if (joints.lower > joints.upper).any() or not set(scene.body_names) <= set(range(len(bodies))):
        raise ValueError("limits or names")


def _check_sensors(scene: SceneContent) -> None:
    sensors, count = scene.sensors, len(scene.sensors)
    integer_rows("shape number", sensors.shape_id, count, sensors.title, 0, len(scene.shapes) - 1)
    as_rows("position", sensors.position, count, (3,), sensors.title)
    unit_quaternions(sensors.quaternion, count, sensors.title)
    for number in range(count):
        if isinstance(scene.shapes[sensors.shape_id[number]], TriangleMesh | HeightField):
            raise ValueError("a sensor that is a mesh")
        if sensors.body[number] != IN_WORLD:
            scene._check_sensor_body(int(sensors.body[number]), sensors.title(number))
    if not set(sensors.names) <= set(range(count)) or len(set(sensors.names.values())) < len(sensors.names):
        raise ValueError("names of sensors")
