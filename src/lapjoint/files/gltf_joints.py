"""Joints of glTF: limits and drives of axes, as the joints that they make together."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import rotation
from ..errors import LapjointError
from ..scene import (
    FREE,
    LOCKED,
    Ball,
    Breaks,
    Distance,
    Drive,
    Fixed,
    Gear,
    Hinge,
    Motor,
    SixAxis,
    Slider,
    Spring,
)
from ..scene.joints import Joint
from .gltf_words import OWN
from .model import Array
from .notes import Notes

Limits = tuple[float, float]
STRAIGHT = rotation.IDENTITY
ALONG = rotation.between((1.0, 0.0, 0.0), np.eye(3))
"""From x, along which hinges and sliders are, to each axis."""


def joint_of(entry: dict[str, Any], sign: float, notes: Notes, where: str) -> tuple[Joint, Array]:
    """A joint, and how its frame is turned from that of the file: a hinge or a slider has its axis along x. `sign` is
    -1 where the bodies are exchanged."""
    own = entry.get("extras", {}).get(OWN, {})
    try:
        return _joint(entry, own, sign, notes, where)
    except LapjointError as error:
        if str(error).startswith(str(notes.path)):
            raise
        raise notes.refuse(where, str(error)) from None


def _joint(entry: dict[str, Any], own: dict[str, Any], sign: float, notes: Notes, where: str) -> tuple[Joint, Array]:
    kind = own.get("kind")
    breaks = Breaks(own.get("breakForce", np.inf), own.get("breakTorque", np.inf)) if _breaks(own) else None
    if kind == "gear":
        return Gear(float(own["gearRatio"]), breaks=breaks), STRAIGHT
    alone, together = _limits(entry, sign, notes, where)
    motors, springs, frictions = _own_axes(own)
    drives = {
        axis: drive
        for axis, drive in _drives(entry, sign, notes)
        if alone.get(axis) != LOCKED and axis not in motors and axis not in springs
    }
    notes.count("drives", len(drives))
    if ("linear", 3) in together and len(alone) == 0 and len(together) == 1 and not drives:
        low, high = together["linear", 3]
        return Distance(lower=max(low, 0.0), upper=high, breaks=breaks), STRAIGHT
    limits = [alone.get(axis, FREE) for axis in range(6)]
    turns = ("angular", 2) in together or limits[3] == FREE
    is_ball = limits[:3] == [LOCKED] * 3 and limits[4:] == [FREE] * 2 and turns and kind in (None, "ball")
    if is_ball and not drives and not motors:
        _, swing = together.pop(("angular", 2), (0.0, None))
        twist = None if limits[3] == FREE else limits[3]
        return Ball(swing=swing, twist=twist, friction=frictions.get(3, 0.0), breaks=breaks), STRAIGHT
    for (what, count), ends in together.items():
        axes = {("linear", 3): (0, 1, 2), ("linear", 2): (1, 2), ("angular", 2): (4, 5)}.get((what, count), ())
        if not axes:
            raise LapjointError(f"a limit of {count} {what} axes together, which lapjoint does not have")
        notes.approximate(where, "a limit of several axes together is one of each")
        for axis in axes:
            limits[axis] = (-ends[1], ends[1])
    return _by_axes(limits, drives, motors, springs, frictions, breaks, kind)


def _by_axes(
    limits: list[Limits],
    drives: dict[int, Drive],
    motors: dict[int, Motor],
    springs: dict[int, Spring],
    frictions: dict[int, float],
    breaks: Breaks | None,
    kind: str | None,
) -> tuple[Joint, Array]:
    free = [axis for axis in range(6) if limits[axis] != LOCKED]
    if not free and kind in (None, "fixed"):
        return Fixed(breaks=breaks), STRAIGHT
    if len(free) == 1 and not springs and kind in (None, "hinge", "slider"):
        (axis,) = free
        made = (Hinge if axis >= 3 else Slider)(
            limits=limits[axis],
            motor=motors.get(axis),
            drive=drives.get(axis),
            friction=frictions.get(axis, 0.0),
            breaks=breaks,
        )
        return made, ALONG[axis % 3]
    made_of_all = SixAxis(
        linear=tuple(limits[:3]),
        angular=tuple(limits[3:]),
        springs=springs,
        motors=motors,
        drives=drives,
        frictions=frictions,
        breaks=breaks,
    )
    return made_of_all, STRAIGHT


def _limits(
    entry: dict[str, Any], sign: float, notes: Notes, where: str
) -> tuple[dict[int, Limits], dict[tuple[str, int], Limits]]:
    """Limits of single axes, and those of several axes together, by what they limit and how many: of rotations about y
    and z, a cone; of all translations, a distance."""
    alone: dict[int, Limits] = {}
    together: dict[tuple[str, int], Limits] = {}
    for limit in entry.get("limits", []):
        low, high = float(limit.get("min", -np.inf)), float(limit.get("max", np.inf))
        if np.isfinite(limit.get("stiffness", np.inf)):
            notes.approximate(where, "its soft limits are hard")
        if low > high:
            raise LapjointError(f"a limit from {low:g} to {high:g}, expected the lower one first")
        for what, first in (("linear", 0), ("angular", 3)):
            axes = sorted({int(axis) for axis in limit.get(f"{what}Axes", [])})
            if not axes:
                continue
            if axes[0] < 0 or axes[-1] > 2:
                raise LapjointError(f"a limit of axis {axes[-1]}, expected 0 to 2")
            if len(axes) == 1 or low == high == 0 or (np.isinf(low) and np.isinf(high)):
                ends = sorted((sign * low, sign * high))
                alone |= {first + axis: LOCKED if low == high == 0 else (ends[0], ends[1]) for axis in axes}
            elif axes == [0, 1, 2] or axes == [1, 2]:
                together[what, len(axes)] = (low, high)
            else:
                raise LapjointError(f"a limit of the {what} axes {axes} together, expected [1, 2] or all")
    return {axis: ends for axis, ends in alone.items() if ends != FREE}, together


def _drives(entry: dict[str, Any], sign: float, notes: Notes) -> list[tuple[int, Drive]]:
    found = []
    for drive in entry.get("drives", []):
        if drive["type"] not in ("linear", "angular"):
            raise LapjointError(f"a drive of the type {drive['type']!r}, expected linear or angular")
        if drive["axis"] not in (0, 1, 2):
            raise LapjointError(f"a drive of axis {drive['axis']!r}, expected 0 to 2")
        if drive.get("mode") != "force":
            raise LapjointError(f"a drive in the mode {drive.get('mode')!r}, expected force")
        if not (drive.get("stiffness") or drive.get("damping")):
            continue
        made = Drive(
            position=sign * float(drive.get("positionTarget", 0.0)),
            velocity=sign * float(drive.get("velocityTarget", 0.0)),
            stiffness=float(drive.get("stiffness", 0.0)),
            damping=float(drive.get("damping", 0.0)),
            max_force=float(drive.get("maxForce", np.inf)),
        )
        found.append((int(drive["axis"]) + (3 if drive["type"] == "angular" else 0), made))
    return found


def _own_axes(own: dict[str, Any]) -> tuple[dict[int, Motor], dict[int, Spring], dict[int, float]]:
    """Motors, springs and frictions that an export has written, by axis."""
    columns = {name: np.array(own.get(name, np.zeros(6)), float).reshape(6).tolist() for name in OWN_COLUMNS}
    motors = {
        axis: Motor(columns["motorVelocity"][axis], most) for axis, most in enumerate(columns["motorMaxForce"]) if most
    }
    springs = {
        axis: Spring(stiffness, columns["springDamping"][axis], columns["springRest"][axis])
        for axis, stiffness in enumerate(columns["springStiffness"])
        if stiffness
    }
    return motors, springs, {axis: friction for axis, friction in enumerate(columns["friction"]) if friction}


OWN_COLUMNS = ("motorVelocity", "motorMaxForce", "springStiffness", "springDamping", "springRest", "friction")


def _breaks(own: dict[str, Any]) -> bool:
    return "breakForce" in own or "breakTorque" in own
