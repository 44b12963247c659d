"""The six axes of a joint, as files have them one by one, and the joint that they make together."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..scene import FREE, LOCKED, Breaks, Drive, Hinge, Motor, SixAxis, Slider, Spring

Limits = tuple[float, float]
OWN_COLUMNS = {
    "motor_velocity": "motorVelocity",
    "motor_max_force": "motorMaxForce",
    "spring_stiffness": "springStiffness",
    "spring_damping": "springDamping",
    "spring_rest": "springRest",
    "friction": "friction",
}
"""Columns of a scene's joints that exports write besides, six numbers each, and what they are called there."""
DRIVEN = "driven"
"""Axes that have both a spring and a drive: on all others with a spring, the drive in the file is that spring."""


@dataclass
class Axes:
    """By axis: translations along x, y and z, then rotations about them."""

    limits: dict[int, Limits] = field(default_factory=dict)
    """Of those that are not free."""
    drives: dict[int, Drive] = field(default_factory=dict)
    motors: dict[int, Motor] = field(default_factory=dict)
    springs: dict[int, Spring] = field(default_factory=dict)
    frictions: dict[int, float] = field(default_factory=dict)
    driven: Container[int] = ()

    @classmethod
    def of_export(cls, own: Mapping[str, Any]) -> Axes:
        """What an export has written of a joint besides. Of files of other programs there is nothing."""
        if not any(name in own for name in OWN_COLUMNS.values()):
            return cls()
        rows = {column: np.array(own.get(name, np.zeros(6)), float).reshape(6) for column, name in OWN_COLUMNS.items()}
        motor, spring = ("motor_velocity", "motor_max_force"), ("spring_stiffness", "spring_damping", "spring_rest")
        return cls(
            motors={k: Motor(*(float(rows[name][k]) for name in motor)) for k in range(6) if rows[motor[1]][k]},
            springs={k: Spring(*(float(rows[name][k]) for name in spring)) for k in range(6) if rows[spring[0]][k]},
            frictions={k: float(value) for k, value in enumerate(rows["friction"]) if value},
            driven={int(k) for k in own.get(DRIVEN, ())},
        )

    def add_drive(self, axis: int, drive: Drive | None) -> None:
        """The drive that a file has of an axis, unless it stands for a motor or a spring, or the axis is locked."""
        stands_for = axis in self.motors or (axis in self.springs and axis not in self.driven)
        if drive is not None and not stands_for and self.limits.get(axis) != LOCKED:
            self.drives[axis] = drive

    def hinge_or_slider(self, axis: int, breaks: Breaks | None = None) -> Hinge | Slider:
        """The joint of one free axis, along x."""
        return (Hinge if axis >= 3 else Slider)(
            limits=self.limits.get(axis, FREE),
            motor=self.motors.get(axis),
            drive=self.drives.get(axis),
            friction=self.frictions.get(axis, 0.0),
            breaks=breaks,
        )

    def six_axis(self, breaks: Breaks | None = None) -> SixAxis:
        limits = [self.limits.get(axis, FREE) for axis in range(6)]
        return SixAxis(
            linear=tuple(limits[:3]),
            angular=tuple(limits[3:]),
            springs=self.springs,
            motors=self.motors,
            drives=self.drives,
            frictions=self.frictions,
            breaks=breaks,
        )
