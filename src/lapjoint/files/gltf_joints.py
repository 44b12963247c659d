"""Joints of glTF: limits and drives of axes, as the joints that they make together."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import rotation
from ..errors import LapjointError
from ..scene import FREE, LOCKED, Ball, Breaks, Distance, Drive, Fixed, Gear
from ..scene.joints import Joint
from .axes import Axes, Limits
from .gltf_words import OWN
from .model import Array
from .notes import Notes

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
    axes = Axes.of_export(own)
    axes.limits = alone
    for axis, drive in _drives(entry, sign, notes):
        axes.add_drive(axis, drive)
    notes.count("drives", len(axes.drives))
    if ("linear", 3) in together and len(alone) == 0 and len(together) == 1 and not axes.drives:
        low, high = together["linear", 3]
        return Distance(lower=max(low, 0.0), upper=high, breaks=breaks), STRAIGHT
    held, turning = all(alone.get(axis) == LOCKED for axis in range(3)), not {4, 5} & alone.keys()
    round_cone = ("angular", 2) in together or 3 not in alone
    if held and turning and round_cone and kind in (None, "ball") and not axes.drives and not axes.motors:
        _, swing = together.pop(("angular", 2), (0.0, None))
        friction = axes.frictions.get(3, 0.0)
        return Ball(swing=swing, twist=alone.get(3), friction=friction, breaks=breaks), STRAIGHT
    for (what, count), ends in together.items():
        several = {("linear", 3): (0, 1, 2), ("linear", 2): (1, 2), ("angular", 2): (4, 5)}.get((what, count), ())
        if not several:
            raise LapjointError(f"a limit of {count} {what} axes together, which lapjoint does not have")
        notes.approximate(where, "a limit of several axes together is one of each")
        axes.limits |= dict.fromkeys(several, (-ends[1], ends[1]))
    free = [axis for axis in range(6) if axes.limits.get(axis) != LOCKED]
    if not free and kind in (None, "fixed"):
        return Fixed(breaks=breaks), STRAIGHT
    if len(free) == 1 and not axes.springs and kind in (None, "hinge", "slider"):
        return axes.hinge_or_slider(free[0], breaks), ALONG[free[0] % 3]
    return axes.six_axis(breaks), STRAIGHT


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


def _breaks(own: dict[str, Any]) -> bool:
    return "breakForce" in own or "breakTorque" in own
