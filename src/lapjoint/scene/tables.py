"""The columns of a scene's tables: bodies, static bodies, joints. Also the columns of a scene file."""

from __future__ import annotations

from typing import Any

import numpy as np

from .bonds import BOND_LAYOUT, NO_BOND

_SURFACE = {"friction": ((), float), "restitution": ((), float), "rolling_friction": ((), float)}
_COMBINE = {"friction_combine": ((), np.uint8), "restitution_combine": ((), np.uint8)}  # in materials.COMBINE_RULES
_FILTER = {"group": ((), np.uint32), "mask": ((), np.uint32)}
_PLACE = {"shape_id": ((), np.int32), "position": ((3,), float), "quaternion": ((4,), float)}
BODY_LAYOUT: dict[str, tuple[tuple[int, ...], Any]] = {
    **_PLACE,
    "linear_velocity": ((3,), float),
    "angular_velocity": ((3,), float),
    "mass": ((), float),
    "inertia": ((3, 3), float),
    **_SURFACE,
    "linear_damping": ((), float),
    "angular_damping": ((), float),
    **_FILTER,
    "label": ((), np.int32),
    "hit_impulse": ((), float),  # N s; infinite: no contact of it is reported
    "hit_speed": ((), float),  # m/s; infinite: the same
    "touch_events": ((), bool),  # whether begin and end of its touches are reported
    **_COMBINE,
}
STATIC_LAYOUT: dict[str, tuple[tuple[int, ...], Any]] = {
    **_PLACE,
    **_SURFACE,
    **_FILTER,
    "surface_velocity": ((6,), float),  # relative to the body, in its frame: linear [m/s], angular [rad/s]
    **_COMBINE,
}
SENSOR_LAYOUT: dict[str, tuple[tuple[int, ...], Any]] = {
    **_PLACE,  # in the world, or in the frame of the body
    "body": ((), np.int32),  # that it is on: -1 - s for the static body s, sensors.IN_WORLD for none
    "mask": ((), np.uint32),  # groups that it senses
}
JOINT_LAYOUT: dict[str, tuple[tuple[int, ...], Any]] = {
    "kind": ((), np.int32),
    "body_a": ((), np.int32),
    "body_b": ((), np.int32),
    "frame_a": ((7,), float),  # anchor and quaternion in body a's frame
    "frame_b": ((7,), float),  # the same in body b's frame, or in the world
    "lower": ((6,), float),
    "upper": ((6,), float),
    "motor_velocity": ((6,), float),
    "motor_max_force": ((6,), float),
    "spring_stiffness": ((6,), float),
    "spring_damping": ((6,), float),
    "spring_rest": ((6,), float),
    "drive_position": ((6,), float),
    "drive_velocity": ((6,), float),
    "drive_stiffness": ((6,), float),
    "drive_damping": ((6,), float),
    "drive_max_force": ((6,), float),  # 0: no drive; infinite: without a limit
    "friction": ((6,), float),  # N or N m, at most
    "gear_ratio": ((), float),
    "collide": ((), bool),
    "break_force": ((), float),  # N; infinite: does not break
    "break_torque": ((), float),  # N m
    **BOND_LAYOUT,
}
MAY_BE_MISSING = {
    "joints/drive_position": 0.0,
    "joints/drive_velocity": 0.0,
    "joints/drive_stiffness": 0.0,
    "joints/drive_damping": 0.0,
    "joints/drive_max_force": 0.0,
    "joints/friction": 0.0,
    "joints/gear_ratio": 0.0,
    "joints/break_force": np.inf,
    "joints/break_torque": np.inf,
    **NO_BOND,
    "bodies/hit_impulse": np.inf,
    "bodies/hit_speed": np.inf,
    "bodies/touch_events": False,
    "bodies/friction_combine": 0,
    "bodies/restitution_combine": 0,
    "statics/surface_velocity": 0.0,
    "statics/friction_combine": 0,
    "statics/restitution_combine": 0,
}
"""Columns that are left out of a file where all rows have this value."""
