"""The columns of a scene's tables: bodies, static bodies, joints. Also the columns of a scene file."""

from __future__ import annotations

from typing import Any

import numpy as np

_SURFACE = {"friction": ((), float), "restitution": ((), float), "rolling_friction": ((), float)}
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
}
STATIC_LAYOUT: dict[str, tuple[tuple[int, ...], Any]] = {
    **_PLACE,
    **_SURFACE,
    **_FILTER,
    "surface_velocity": ((6,), float),  # relative to the body, in its frame: linear [m/s], angular [rad/s]
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
    "collide": ((), bool),
    "break_force": ((), float),  # N; infinite: does not break
    "break_torque": ((), float),  # N m
}
MAY_BE_MISSING = {
    "joints/break_force": np.inf,
    "joints/break_torque": np.inf,
    "bodies/hit_impulse": np.inf,
    "bodies/hit_speed": np.inf,
    "bodies/touch_events": False,
    "statics/surface_velocity": 0.0,
}
"""Columns that are left out of a file where all rows have this value, as in files of before there were such columns."""
