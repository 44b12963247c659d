"""Joints as prims: body 1 of a joint is the scene's body a, which moves relative to body 0, the scene's b."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....files import usd_words as words
from ....scene import Scene
from ....scene.bonds import with_breaks
from ....scene.joints import WORLD, JointKind
from ..tables import axis_drive, driven_axes
from .layer import Prim, Types, add_apis, add_prim, doubles, numbered, put, quatf, relate, vec3f, whole

KINDS = {
    JointKind.BALL: "PhysicsSphericalJoint",
    JointKind.HINGE: "PhysicsRevoluteJoint",
    JointKind.SLIDER: "PhysicsPrismaticJoint",
    JointKind.FIXED: "PhysicsFixedJoint",
    JointKind.SIX_AXIS: "PhysicsJoint",
    JointKind.DISTANCE: "PhysicsDistanceJoint",
    JointKind.GEAR: "PhysicsJoint",
}
AXES = ("transX", "transY", "transZ", "rotX", "rotY", "rotZ")
DEGREE = np.pi / 180


def add_joints(parent: Prim, scene: Scene, bodies: Sequence[Any], count: int) -> None:
    """The first `count` joints; bodies are paths by their numbers."""
    for i in range(count):
        row = with_breaks({name: column[i] for name, column in scene.joints.views().items()})
        kind = JointKind(int(row["kind"]))
        prim = add_prim(parent, numbered("joint", i, count), KINDS[kind])
        if row["body_b"] != WORLD:
            relate(prim, "physics:body0", [bodies[row["body_b"]]])
        relate(prim, "physics:body1", [bodies[row["body_a"]]])
        for side, frame in ((0, row["frame_b"]), (1, row["frame_a"])):
            put(prim, f"physics:localPos{side}", Types.Point3f, vec3f(frame[:3]))
            put(prim, f"physics:localRot{side}", Types.Quatf, quatf(frame[3:]))
        for name in ("force", "torque"):
            if np.isfinite(row[f"break_{name}"]):
                put(prim, f"physics:break{name.capitalize()}", Types.Float, float(row[f"break_{name}"]))
        if row["collide"]:
            put(prim, "physics:collisionEnabled", Types.Bool, True)
        _WRITERS[kind](prim, row)
        for column, name in words.OF_AXES.items():
            if np.any(row[column]):
                put(prim, name, Types.DoubleArray, doubles(row[column]), uniform=True)
        if driven_axes(row):
            put(prim, words.DRIVEN, Types.IntArray, whole(np.array(driven_axes(row))), uniform=True)


def _ball(prim: Prim, row: dict[str, Any]) -> None:
    put(prim, "physics:axis", Types.Token, "X", uniform=True)
    if np.isfinite(row["upper"][4]):
        for axis in (0, 1):
            put(prim, f"physics:coneAngle{axis}Limit", Types.Float, float(row["upper"][4] / DEGREE))
    if np.isfinite([row["lower"][3], row["upper"][3]]).any():
        put(prim, words.TWIST, Types.DoubleArray, doubles([row["lower"][3], row["upper"][3]]), uniform=True)


def _one_axis(prim: Prim, row: dict[str, Any]) -> None:
    axis = 3 if row["kind"] == JointKind.HINGE else 0
    unit = DEGREE if axis else 1.0
    put(prim, "physics:axis", Types.Token, "X", uniform=True)
    put(prim, "physics:lowerLimit", Types.Float, float(row["lower"][axis] / unit))
    put(prim, "physics:upperLimit", Types.Float, float(row["upper"][axis] / unit))
    _drive(prim, row, axis, "angular" if axis else "linear")


def _fixed(prim: Prim, row: dict[str, Any]) -> None:
    """There is nothing more to it."""


def _six_axis(prim: Prim, row: dict[str, Any]) -> None:
    for axis, name in enumerate(AXES):
        lower, upper = float(row["lower"][axis]), float(row["upper"][axis])
        unit = DEGREE if axis >= 3 else 1.0
        if np.isfinite([lower, upper]).any():
            if lower == upper == 0:  # locked: the standard has a lower limit above the upper one for it
                lower, upper = unit, -unit
            add_apis(prim, [f"PhysicsLimitAPI:{name}"])
            put(prim, f"limit:{name}:physics:low", Types.Float, lower / unit)
            put(prim, f"limit:{name}:physics:high", Types.Float, upper / unit)
        _drive(prim, row, axis, name)


def _distance(prim: Prim, row: dict[str, Any]) -> None:
    lower, upper = float(row["lower"][0]), float(row["upper"][0])
    put(prim, "physics:minDistance", Types.Float, lower if np.isfinite(lower) else -1.0)
    put(prim, "physics:maxDistance", Types.Float, upper if np.isfinite(upper) else -1.0)


def _gear(prim: Prim, row: dict[str, Any]) -> None:
    """A joint that leaves all axes free, but for us."""
    put(prim, words.KIND, Types.Token, "gear", uniform=True)
    put(prim, words.GEAR_RATIO, Types.Double, float(row["gear_ratio"]), uniform=True)


_WRITERS = {
    JointKind.BALL: _ball,
    JointKind.HINGE: _one_axis,
    JointKind.SLIDER: _one_axis,
    JointKind.FIXED: _fixed,
    JointKind.SIX_AXIS: _six_axis,
    JointKind.DISTANCE: _distance,
    JointKind.GEAR: _gear,
}


def _drive(prim: Prim, row: dict[str, Any], axis: int, name: str) -> None:
    drive = axis_drive(row, axis)
    if drive is None:
        return
    unit = DEGREE if axis >= 3 else 1.0
    add_apis(prim, [f"PhysicsDriveAPI:{name}"])
    put(prim, f"drive:{name}:physics:type", Types.Token, "force", uniform=True)
    for what, value in (
        ("targetPosition", drive.position / unit),
        ("targetVelocity", drive.velocity / unit),
        ("stiffness", drive.stiffness * unit),
        ("damping", drive.damping * unit),
        ("maxForce", drive.max_force),
    ):
        put(prim, f"drive:{name}:physics:{what}", Types.Float, value)
