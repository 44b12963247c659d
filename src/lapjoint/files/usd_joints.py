"""Joints of USD: limits, drives, strengths, and what an export has written besides."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import LapjointError
from ..scene import FREE, LOCKED, Ball, Breaks, Distance, Drive, Fixed, Gear, SixAxis
from ..scene.joints import Joint
from . import usd_words as words
from .axes import Axes
from .notes import Notes
from .usd_values import DEGREE, UNLIMITED, given, own_values

KINDS = ("FixedJoint", "RevoluteJoint", "PrismaticJoint", "SphericalJoint", "DistanceJoint", "D6Joint")
OTHERS = ("CustomJoint",)
WITH_AXIS = ("RevoluteJoint", "PrismaticJoint", "SphericalJoint")
WITHOUT_DRIVES = ("FixedJoint", "SphericalJoint", "DistanceJoint")
AXIS_NAMES = ("TransX", "TransY", "TransZ", "RotX", "RotY", "RotZ")


class Joints:
    """Joints in metres, kilograms and radians; units are the stage's."""

    def __init__(self, stage: Any, unit: float, mass_unit: float, notes: Notes) -> None:
        self._stage, self._unit, self._mass_unit, self._notes = stage, unit, mass_unit, notes

    def joint(self, kind: str, desc: Any, sign: float) -> Joint:
        """The joint of a description. `sign` is -1 where the bodies are exchanged."""
        where = str(desc.primPath)
        try:
            return self._joint(kind, desc, where, sign)
        except LapjointError as error:
            if str(error).startswith(str(self._notes.path)):
                raise
            raise self._notes.refuse(where, str(error)) from None

    def _joint(self, kind: str, desc: Any, where: str, sign: float) -> Joint:
        prim = self._stage.GetPrimAtPath(desc.primPath)
        _check_numbers(prim)
        breaks, own = self._breaks(desc), Axes.of_export(own_values(prim))
        if kind in WITHOUT_DRIVES and any(name.startswith("PhysicsDriveAPI") for name in prim.GetAppliedSchemas()):
            raise LapjointError("a drive of a joint that UsdPhysics has none for, expected a PhysicsJoint of six axes")
        if kind == "FixedJoint":
            return Fixed(breaks=breaks)
        if kind == "SphericalJoint":
            return self._ball(desc, prim, where, breaks, own)
        if kind == "DistanceJoint":
            low = float(desc.limit.lower) * self._unit if desc.minEnabled else 0.0
            high = float(desc.limit.upper) * self._unit if desc.maxEnabled else np.inf
            return Distance(lower=low, upper=high, breaks=breaks)
        if kind == "D6Joint":
            if given(prim, words.KIND) == "gear":
                return Gear(float(given(prim, words.GEAR_RATIO)), breaks=breaks)
            return self._six_axis(desc, sign, breaks, own)
        if kind not in WITH_AXIS:
            raise LapjointError("a joint of a kind that is not in the standard")
        axis = 3 if kind == "RevoluteJoint" else 0
        own.limits[axis] = self._limits(desc.limit, axis == 3, sign)
        own.add_drive(axis, self._drive(desc.drive, axis == 3, sign))
        self._notes.count("drives", len(own.drives))
        return own.hinge_or_slider(axis, breaks)

    def _ball(self, desc: Any, prim: Any, where: str, breaks: Breaks | None, own: Axes) -> Ball:
        swing, twist = None, given(prim, words.TWIST)
        if desc.limit.enabled:
            low, high = (float(one) * DEGREE for one in (desc.limit.lower, desc.limit.upper))
            if low != high:
                self._notes.approximate(where, "its cone is round: by the smaller of its two angles")
            swing = min(low, high)
        ends = None if twist is None else (float(twist[0]), float(twist[1]))
        return Ball(swing=swing, twist=ends, friction=own.frictions.get(3, 0.0), breaks=breaks)

    def _six_axis(self, desc: Any, sign: float, breaks: Breaks | None, own: Axes) -> SixAxis:
        for pair in desc.jointLimits:
            if pair.first.name not in AXIS_NAMES:
                raise LapjointError("a limit of a distance in a joint of six axes")
            axis = AXIS_NAMES.index(pair.first.name)
            own.limits[axis] = self._limits(pair.second, axis >= 3, sign)
        for pair in desc.jointDrives:
            if pair.first.name in AXIS_NAMES:
                axis = AXIS_NAMES.index(pair.first.name)
                own.add_drive(axis, self._drive(pair.second, axis >= 3, sign))
        self._notes.count("drives", len(own.drives))
        return own.six_axis(breaks)

    def _limits(self, limit: Any, angular: bool, sign: float) -> tuple[float, float]:
        if not limit.enabled:
            return FREE
        scale = DEGREE if angular else self._unit
        low, high = float(limit.lower), float(limit.upper)
        if low > high:
            return LOCKED
        ends = [one * scale if not abs(one) >= UNLIMITED else np.copysign(np.inf, one) for one in (low, high)]
        first, second = sorted(sign * end for end in ends)
        return first, second

    def _drive(self, drive: Any, angular: bool, sign: float) -> Drive | None:
        if not drive.enabled or not (drive.stiffness or drive.damping):
            return None
        if drive.acceleration:
            raise LapjointError("a drive of the type acceleration, expected force")
        unit = self._mass_unit * (self._unit**2 if angular else 1.0)
        scale = DEGREE if angular else self._unit
        force = unit if angular else self._mass_unit * self._unit
        limit = float(drive.forceLimit) * force if drive.forceLimit < UNLIMITED else np.inf
        # Angular stiffness is per degree.
        per = unit / DEGREE if angular else unit
        return Drive(
            position=sign * float(drive.targetPosition) * scale,
            velocity=sign * float(drive.targetVelocity) * scale,
            stiffness=float(drive.stiffness) * per,
            damping=float(drive.damping) * per,
            max_force=limit,
        )

    def _breaks(self, desc: Any) -> Breaks | None:
        force, torque = (float(one) if not one >= UNLIMITED else np.inf for one in (desc.breakForce, desc.breakTorque))
        if np.isinf(force) and np.isinf(torque):
            return None
        unit = self._mass_unit * self._unit
        return Breaks(force * unit, torque * unit * self._unit)


def _check_numbers(prim: Any) -> None:
    """Refuse numbers that are none, which usd-core takes for no limit."""
    for attribute in prim.GetAuthoredAttributes():
        value = attribute.Get()
        if isinstance(value, float) and np.isnan(value):
            raise LapjointError(f"{attribute.GetName()} is not a number")
