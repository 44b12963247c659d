"""Joints: permanent constraints between two bodies, or between a body and the world.

Every joint has a frame: its origin is the anchor, its x axis is the joint's axis. Along and about x, y, z a joint has
six axes of motion: 0 to 2 are translations [m], 3 to 5 rotations [rad]. A hinge moves on axis 3, a slider on axis 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.checks import is_finite
from ..errors import LapjointError

WORLD = -1
"""In place of a body: the joint holds to the world."""

FREE = (-np.inf, np.inf)
LOCKED = (0.0, 0.0)


class JointKind(IntEnum):
    BALL = 0
    HINGE = 1
    SLIDER = 2
    FIXED = 3
    SIX_AXIS = 4


@dataclass(frozen=True)
class Motor:
    """Drives one axis to `velocity` [m/s or rad/s] with at most `max_force` [N or N m]."""

    velocity: float
    max_force: float

    def __post_init__(self) -> None:
        if not is_finite(self.velocity):
            raise LapjointError(f"Motor: velocity is {self.velocity}, expected a finite number")
        if not (is_finite(self.max_force) and self.max_force > 0):
            raise LapjointError(f"Motor: max_force is {self.max_force}, expected a positive number")


@dataclass(frozen=True)
class Spring:
    """Pulls one axis of a six-axis joint to `rest` with `stiffness` [N/m or N m/rad] and `damping` [N s/m or N m s]."""

    stiffness: float
    damping: float = 0.0
    rest: float = 0.0

    def __post_init__(self) -> None:
        if not (is_finite(self.stiffness) and self.stiffness > 0):
            raise LapjointError(f"Spring: stiffness is {self.stiffness}, expected a positive number")
        if not (is_finite(self.damping) and self.damping >= 0):
            raise LapjointError(f"Spring: damping is {self.damping}, expected zero or more")
        if not is_finite(self.rest):
            raise LapjointError(f"Spring: rest is {self.rest}, expected a finite number")


@dataclass(frozen=True)
class Breaks:
    """What a joint can bear: it breaks after a step in which, in the mean, it did more than `force` [N] or `torque`
    [N m], by its anchor. Then it holds nothing any more, and its bodies may touch."""

    force: float = np.inf
    torque: float = np.inf

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (isinstance(value, int | float | np.number) and value > 0):
                raise LapjointError(f"Breaks: {name} is {value!r}, expected a positive number")
        if np.isinf(self.force) and np.isinf(self.torque):
            raise LapjointError("Breaks: neither force nor torque is given, expected at least one of them")


@dataclass(frozen=True)
class Ball:
    """Holds two points together; all rotations are free."""

    breaks: Breaks | None = None


@dataclass(frozen=True)
class Hinge:
    """Turns about `axis` (in the world, when the joint is added), between `limits` [rad], driven by `motor`."""

    axis: tuple[float, float, float] = (1.0, 0.0, 0.0)
    limits: tuple[float, float] = FREE
    motor: Motor | None = None
    breaks: Breaks | None = None


@dataclass(frozen=True)
class Slider:
    """Slides along `axis` (in the world, when the joint is added), between `limits` [m], driven by `motor`."""

    axis: tuple[float, float, float] = (1.0, 0.0, 0.0)
    limits: tuple[float, float] = FREE
    motor: Motor | None = None
    breaks: Breaks | None = None


@dataclass(frozen=True)
class Fixed:
    """Holds two bodies as if they were one."""

    breaks: Breaks | None = None


@dataclass(frozen=True)
class SixAxis:
    """Six axes of motion, each locked (the default), limited or free, each with a spring or a motor if wanted.

    `linear` and `angular` hold three (lower, upper) pairs each: LOCKED is (0, 0), FREE is (-inf, inf). `springs` and
    `motors` map an axis number (0 to 5) to a Spring or a Motor. `axis` is the frame's x axis in the world.
    """

    linear: tuple[tuple[float, float], ...] = (LOCKED, LOCKED, LOCKED)
    angular: tuple[tuple[float, float], ...] = (LOCKED, LOCKED, LOCKED)
    springs: tuple[tuple[int, Spring], ...] | dict[int, Spring] = ()
    motors: tuple[tuple[int, Motor], ...] | dict[int, Motor] = ()
    axis: tuple[float, float, float] = (1.0, 0.0, 0.0)
    breaks: Breaks | None = None


Joint = Ball | Hinge | Slider | Fixed | SixAxis

KINDS: dict[type, JointKind] = {
    Ball: JointKind.BALL,
    Hinge: JointKind.HINGE,
    Slider: JointKind.SLIDER,
    Fixed: JointKind.FIXED,
    SixAxis: JointKind.SIX_AXIS,
}


@dataclass(frozen=True)
class Axes:
    """What a joint does on its six axes, as arrays."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    motor_velocity: NDArray[np.float64]
    motor_max_force: NDArray[np.float64]  # 0: no motor
    spring_stiffness: NDArray[np.float64]  # 0: no spring
    spring_damping: NDArray[np.float64]
    spring_rest: NDArray[np.float64]


def _limits(owner: str, limits: Any, angular: bool) -> tuple[float, float]:
    try:
        lower, upper = (float(limit) for limit in limits)
    except (TypeError, ValueError):
        lower, upper = np.nan, np.nan
    if not (lower <= upper and lower < np.inf and upper > -np.inf):
        raise LapjointError(f"{owner}: limits are {limits}, expected (lower, upper) with lower <= upper")
    if angular and any(np.isfinite(limit) and abs(limit) > np.pi for limit in (lower, upper)):
        raise LapjointError(f"{owner}: limits are {limits}, expected angles from -pi to pi [rad] or FREE")
    return lower, upper


def strengths(joint: Joint, breaks: Any, count: int) -> NDArray[np.float64]:
    """What each of `count` joints can bear, force [N] and torque [N m], infinite where it does not break. `breaks`, one
    for all or one for each, or None, is in place of the joint's own."""
    given = joint.breaks if breaks is None else breaks
    rows = list(given) if isinstance(given, Sequence) else [given]
    if len(rows) not in (1, count):
        raise LapjointError(f"{len(rows)} breaks for {count} joints, expected one or {count}")
    for one in rows:
        if not (one is None or isinstance(one, Breaks)):
            raise LapjointError(f"breaks is {one!r}, expected a Breaks")
    found = np.array([(np.inf, np.inf) if one is None else (one.force, one.torque) for one in rows], float)
    return np.broadcast_to(found, (count, 2))


def axes_of(joint: Joint) -> Axes:
    """The six axes of a joint, checked."""
    owner = type(joint).__name__
    if type(joint) not in KINDS:
        known = ", ".join(kind.__name__ for kind in KINDS)
        raise LapjointError(f"{joint!r} is not a joint, expected one of {known}")
    lower, upper = np.zeros(6), np.zeros(6)
    motor = np.zeros((2, 6))
    spring = np.zeros((3, 6))
    motors: dict[int, Motor] = {}
    springs: dict[int, Spring] = {}
    if isinstance(joint, Ball):
        lower[3:], upper[3:] = FREE
    elif isinstance(joint, (Hinge, Slider)):
        moving = 3 if isinstance(joint, Hinge) else 0
        lower[moving], upper[moving] = _limits(owner, joint.limits, angular=moving >= 3)
        if joint.motor is not None:
            motors[moving] = joint.motor
    elif isinstance(joint, SixAxis):
        if len(joint.linear) != 3 or len(joint.angular) != 3:
            raise LapjointError("SixAxis: linear and angular need three (lower, upper) pairs each")
        for axis, pair in enumerate((*joint.linear, *joint.angular)):
            lower[axis], upper[axis] = _limits(f"SixAxis: axis {axis}", pair, angular=axis >= 3)
        motors, springs = dict(joint.motors), dict(joint.springs)
    for axis in (*motors, *springs):
        if axis not in range(6):
            raise LapjointError(f"{owner}: axis {axis} does not exist, expected 0 to 5")
    for wanted, given in ((Motor, motors), (Spring, springs)):
        for axis, one in given.items():
            if not isinstance(one, wanted):
                raise LapjointError(f"{owner}: axis {axis} has {one!r}, expected a {wanted.__name__}")
            if lower[axis] == upper[axis]:
                raise LapjointError(f"{owner}: axis {axis} is locked, so its {wanted.__name__} could do nothing")
    for axis, drive in motors.items():
        motor[:, axis] = drive.velocity, drive.max_force
    for axis, pull in springs.items():
        spring[:, axis] = pull.stiffness, pull.damping, pull.rest
    return Axes(lower, upper, motor[0], motor[1], spring[0], spring[1], spring[2])
