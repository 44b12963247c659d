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
from numpy.typing import ArrayLike, NDArray

from ..arrays.checks import is_finite
from ..arrays.columns import Columns
from ..errors import LapjointError


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not np.isnan(value)


WORLD = -1
"""In place of a body: the joint holds to the world."""

MOST_ANGLE = 1e5
"""rad, of a limit: beyond, an angle in float32 is no better than a hundredth."""
FREE = (-np.inf, np.inf)
"""Of an axis: no limit."""
LOCKED = (0.0, 0.0)
"""Of an axis: it does not move."""


class JointKind(IntEnum):
    BALL = 0
    HINGE = 1
    SLIDER = 2
    FIXED = 3
    SIX_AXIS = 4
    DISTANCE = 5
    GEAR = 6


@dataclass(frozen=True)
class Drive:
    """Drives one axis: a force [N or N m] of stiffness * (position - q) + damping * (velocity - dq/dt), of at most
    `max_force` either way, where q is the axis' position [m or rad].

    It is stable however stiff it is. `simulation.joints.set_targets` changes position and velocity while a scene runs.
    Infinite damping without stiffness is a Motor.
    """

    position: float = 0.0
    velocity: float = 0.0
    stiffness: float = 0.0
    damping: float = 0.0
    max_force: float = np.inf

    def __post_init__(self) -> None:
        for name in ("position", "velocity"):
            if not is_finite(getattr(self, name)):
                raise LapjointError(f"Drive: {name} is {getattr(self, name)!r}, expected a finite number")
        if not (is_finite(self.stiffness) and self.stiffness >= 0):
            raise LapjointError(f"Drive: stiffness is {self.stiffness!r}, expected zero or more, and finite")
        if not (_is_number(self.damping) and self.damping >= 0):
            raise LapjointError(f"Drive: damping is {self.damping!r}, expected zero or more")
        if not (_is_number(self.max_force) and self.max_force > 0):
            raise LapjointError(f"Drive: max_force is {self.max_force!r}, expected a positive number")
        if self.stiffness == 0 and self.damping == 0:
            raise LapjointError("Drive: neither stiffness nor damping is given, so it could do nothing")
        if np.isinf(self.damping) and (self.stiffness > 0 or np.isinf(self.max_force)):
            raise LapjointError("Drive: damping is infinite, as a Motor's: expected no stiffness, and a max_force")

    @property
    def motor(self) -> Motor | None:
        """The Motor that it is, if it is one."""
        return Motor(self.velocity, self.max_force) if np.isinf(self.damping) else None


@dataclass(frozen=True)
class Motor:
    """Drives one axis to `velocity` [m/s or rad/s] with at most `max_force` [N or N m]: a Drive of infinite damping."""

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
    """Holds two points together. Rotations are free, or within limits about `axis` (in the world, when the joint is
    added), which both bodies have.

    `swing` [rad] is the largest angle between the two bodies' axes: a cone. `twist` [rad] limits the angle about the
    axis, (lower, upper): what is left of the rotation without the shortest turn from one axis to the other, which is
    not defined where the axes point against each other. `friction` is a torque [N m] against any turning, at most.
    """

    breaks: Breaks | None = None
    swing: float | None = None
    twist: tuple[float, float] | None = None
    axis: tuple[float, float, float] = (1.0, 0.0, 0.0)
    friction: float = 0.0


@dataclass(frozen=True)
class Hinge:
    """Turns about `axis` (in the world, when the joint is added), between `limits` [rad], driven by `motor` or `drive`,
    against `friction` of at most so much [N m].

    Limits and targets may be beyond half a turn: the angle is counted over turns, from 0 when the joint is added.
    """

    axis: tuple[float, float, float] = (1.0, 0.0, 0.0)
    limits: tuple[float, float] = FREE
    motor: Motor | None = None
    breaks: Breaks | None = None
    drive: Drive | None = None
    friction: float = 0.0


@dataclass(frozen=True)
class Slider:
    """Slides along `axis` (in the world, when the joint is added), between `limits` [m], driven by `motor` or `drive`,
    against `friction` of at most so much [N]."""

    axis: tuple[float, float, float] = (1.0, 0.0, 0.0)
    limits: tuple[float, float] = FREE
    motor: Motor | None = None
    breaks: Breaks | None = None
    drive: Drive | None = None
    friction: float = 0.0


@dataclass(frozen=True)
class Fixed:
    """Holds two bodies as if they were one."""

    breaks: Breaks | None = None


@dataclass(frozen=True)
class SixAxis:
    """Six axes of motion, each locked (the default), limited or free, each with a spring, drive, motor or friction if
    wanted.

    `linear` and `angular` hold three (lower, upper) pairs each: LOCKED is (0, 0), FREE is (-inf, inf). `springs`,
    `motors`, `drives` and `frictions` map an axis number (0 to 5) to a Spring, a Motor, a Drive, or the largest force
    of friction [N or N m]. `axis` is the frame's x axis in the world. The angle of a joint that turns about one axis
    alone, axis 3 or 5, is counted over turns if it is driven or its limits are beyond half a turn.
    """

    linear: tuple[tuple[float, float], ...] = (LOCKED, LOCKED, LOCKED)
    angular: tuple[tuple[float, float], ...] = (LOCKED, LOCKED, LOCKED)
    springs: tuple[tuple[int, Spring], ...] | dict[int, Spring] = ()
    motors: tuple[tuple[int, Motor], ...] | dict[int, Motor] = ()
    axis: tuple[float, float, float] = (1.0, 0.0, 0.0)
    breaks: Breaks | None = None
    drives: tuple[tuple[int, Drive], ...] | dict[int, Drive] = ()
    frictions: tuple[tuple[int, float], ...] | dict[int, float] = ()


@dataclass(frozen=True)
class Distance:
    """Keeps two points, `anchor` of body a and `anchor_b` of body b, at a distance [m]: at `length`, as a rod does, or
    from `lower` to `upper`. A rope has an upper one alone."""

    length: float | None = None
    lower: float = 0.0
    upper: float = np.inf
    breaks: Breaks | None = None

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest distance, checked; minus infinity for no smallest."""
        if self.length is not None:
            if self.lower != 0.0 or self.upper != np.inf:
                raise LapjointError("Distance: both length and lower or upper are given, expected one of them")
            if not (is_finite(self.length) and self.length > 0):
                raise LapjointError(f"Distance: length is {self.length!r}, expected a positive number of metres")
            return float(self.length), float(self.length)
        valid = _is_number(self.lower) and _is_number(self.upper) and 0 <= self.lower <= self.upper
        if not valid or self.upper == 0 or np.isinf(self.lower):
            raise LapjointError(
                f"Distance: lower is {self.lower!r} and upper is {self.upper!r}, expected 0 <= lower <= upper, and 0 < "
                "upper"
            )
        if self.lower == 0 and np.isinf(self.upper):
            raise LapjointError("Distance: neither length, lower nor upper is given, so it could do nothing")
        return (float(self.lower) if self.lower > 0 else -np.inf), float(self.upper)


@dataclass(frozen=True)
class Gear:
    """Couples how two bodies turn: body a about `axis_a`, `ratio` times as fast as body b about `axis_b`, in the world.

    Each axis is its body's own, given in the world as it is when the joint is added. The bodies' other joints have to
    hold them on these axes, and what holds them, the housing, is taken not to turn. Two gears that mesh turn against
    each other: a negative ratio.
    """

    ratio: float = -1.0
    axis_a: tuple[float, float, float] = (1.0, 0.0, 0.0)
    axis_b: tuple[float, float, float] = (1.0, 0.0, 0.0)
    breaks: Breaks | None = None


Joint = Ball | Hinge | Slider | Fixed | SixAxis | Distance | Gear

KINDS: dict[type, JointKind] = {
    Ball: JointKind.BALL,
    Hinge: JointKind.HINGE,
    Slider: JointKind.SLIDER,
    Fixed: JointKind.FIXED,
    SixAxis: JointKind.SIX_AXIS,
    Distance: JointKind.DISTANCE,
    Gear: JointKind.GEAR,
}


@dataclass(frozen=True)
class Axes:
    """What a joint does on its six axes, as arrays: columns of a scene's table.

    A ball joint has its twist's limits on axis 3 and the angle of its cone as the upper limit of the other two, and its
    friction on all three; a distance is on axis 0.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    motor_velocity: NDArray[np.float64]
    motor_max_force: NDArray[np.float64]  # 0: no motor
    spring_stiffness: NDArray[np.float64]  # 0: no spring
    spring_damping: NDArray[np.float64]
    spring_rest: NDArray[np.float64]
    drive_position: NDArray[np.float64]
    drive_velocity: NDArray[np.float64]
    drive_stiffness: NDArray[np.float64]
    drive_damping: NDArray[np.float64]
    drive_max_force: NDArray[np.float64]  # 0: no drive
    friction: NDArray[np.float64]
    gear_ratio: float


def _limits(owner: str, limits: Any, angular: bool, counted: bool = False) -> tuple[float, float]:
    try:
        lower, upper = (float(limit) for limit in limits)
    except (TypeError, ValueError):
        lower, upper = np.nan, np.nan
    if not (lower <= upper and lower < np.inf and upper > -np.inf):
        raise LapjointError(f"{owner}: limits are {limits}, expected (lower, upper) with lower <= upper")
    if angular and not counted and any(np.isfinite(limit) and abs(limit) > np.pi for limit in (lower, upper)):
        raise LapjointError(f"{owner}: limits are {limits}, expected angles from -pi to pi [rad] or FREE")
    if counted and any(np.isfinite(limit) and abs(limit) > MOST_ANGLE for limit in (lower, upper)):
        raise LapjointError(f"{owner}: limits are {limits}, expected at most {MOST_ANGLE:g} rad either way")
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
    motor, spring, drive = np.zeros((2, 6)), np.zeros((3, 6)), np.zeros((5, 6))
    friction, ratio = np.zeros(6), 0.0
    motors: dict[int, Motor] = {}
    springs: dict[int, Spring] = {}
    drives: dict[int, Drive] = {}
    frictions: dict[int, float] = {}
    if isinstance(joint, Ball):
        lower[3:], upper[3:] = FREE
        _limit_ball(joint, lower, upper)
        friction[3:] = _friction(owner, joint.friction)
    elif isinstance(joint, (Hinge, Slider)):
        moving = 3 if isinstance(joint, Hinge) else 0
        lower[moving], upper[moving] = _limits(owner, joint.limits, moving >= 3, counted=moving >= 3)
        if joint.motor is not None:
            motors[moving] = joint.motor
        if joint.drive is not None:
            drives[moving] = joint.drive
        if joint.friction:
            frictions[moving] = joint.friction
    elif isinstance(joint, SixAxis):
        if len(joint.linear) != 3 or len(joint.angular) != 3:
            raise LapjointError("SixAxis: linear and angular need three (lower, upper) pairs each")
        turning = [axis for axis in (3, 4, 5) if tuple(joint.angular[axis - 3]) != LOCKED]
        for axis, pair in enumerate((*joint.linear, *joint.angular)):
            counted = turning == [axis] and axis != 4
            lower[axis], upper[axis] = _limits(f"SixAxis: axis {axis}", pair, axis >= 3, counted)
        motors, springs = dict(joint.motors), dict(joint.springs)
        drives, frictions = dict(joint.drives), dict(joint.frictions)
    elif isinstance(joint, Distance):
        lower[:], upper[:] = FREE
        lower[0], upper[0] = joint.limits
    elif isinstance(joint, Gear):
        lower[:], upper[:] = FREE
        ratio = joint.ratio
        if not (is_finite(ratio) and ratio != 0):
            raise LapjointError(f"Gear: ratio is {ratio!r}, expected a number that is not zero")
    for axis in (*motors, *springs, *drives, *frictions):
        if axis not in range(6):
            raise LapjointError(f"{owner}: axis {axis} does not exist, expected 0 to 5")
    for axis, force in frictions.items():
        friction[axis] = _friction(f"{owner}: axis {axis}", force)
    wanted: tuple[tuple[type, Any], ...] = ((Motor, motors), (Spring, springs), (Drive, drives))
    for kind, given in wanted:
        for axis, one in given.items():
            if not isinstance(one, kind):
                raise LapjointError(f"{owner}: axis {axis} has {one!r}, expected a {kind.__name__}")
            if lower[axis] == upper[axis]:
                raise LapjointError(f"{owner}: axis {axis} is locked, so its {kind.__name__} could do nothing")
    for axis in frictions:
        if lower[axis] == upper[axis]:
            raise LapjointError(f"{owner}: axis {axis} is locked, so its friction could do nothing")
    for axis, pd in drives.items():
        if axis in motors:
            raise LapjointError(f"{owner}: axis {axis} has both a motor and a drive, expected one of them")
        if pd.motor is not None:
            motors[axis] = pd.motor
        else:
            drive[:, axis] = pd.position, pd.velocity, pd.stiffness, pd.damping, pd.max_force
    for axis, turns in motors.items():
        motor[:, axis] = turns.velocity, turns.max_force
    for axis, pull in springs.items():
        spring[:, axis] = pull.stiffness, pull.damping, pull.rest
    columns: dict[str, NDArray[np.float64]] = {"lower": lower, "upper": upper, "friction": friction}
    for prefix, names, rows in (
        ("motor", ("velocity", "max_force"), motor),
        ("spring", ("stiffness", "damping", "rest"), spring),
        ("drive", ("position", "velocity", "stiffness", "damping", "max_force"), drive),
    ):
        columns |= {f"{prefix}_{name}": row for name, row in zip(names, rows, strict=True)}
    return Axes(**columns, gear_ratio=ratio)


def _limit_ball(joint: Ball, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> None:
    """Put the limits of a ball joint on its axes."""
    if joint.twist is not None:
        lower[3], upper[3] = _limits("Ball: twist", joint.twist, angular=True)
    if joint.swing is not None:
        if not (is_finite(joint.swing) and 0 < joint.swing < np.pi):
            raise LapjointError(f"Ball: swing is {joint.swing!r}, expected an angle between 0 and pi [rad]")
        lower[4:], upper[4:] = -joint.swing, joint.swing
    if lower[3] == upper[3]:
        raise LapjointError(f"Ball: twist is {joint.twist}, expected limits apart from each other")


def _friction(owner: str, friction: Any) -> float:
    if not (is_finite(friction) and friction >= 0):
        raise LapjointError(f"{owner}: friction is {friction!r}, expected zero or more")
    return float(friction)


def frame_axes(joint: Joint) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """The x axes of the two frames of a joint, in the world."""
    if isinstance(joint, Gear):
        return joint.axis_a, joint.axis_b
    axis = (1.0, 0.0, 0.0) if isinstance(joint, (Fixed, Distance)) else joint.axis
    return axis, axis


def counts_turns(joints: Columns, first: int = 0) -> NDArray[np.bool_]:
    """Of which joints of a table, from number `first` on, the angle is counted over turns; see Hinge and SixAxis.
    Native code has it too."""
    found = np.isin(joints.kind[first:], (JointKind.HINGE, JointKind.SIX_AXIS))
    rows = np.flatnonzero(found)  # there may be none among very many
    lower, upper, force = (table[first + rows] for table in (joints.lower, joints.upper, joints.drive_max_force))
    locked = (lower == 0) & (upper == 0)
    counted = np.zeros(len(rows), bool)
    for axis, others in ((3, (4, 5)), (5, (3, 4))):
        limits = np.stack([lower[:, axis], upper[:, axis]])
        far = (np.isfinite(limits) & (np.abs(limits) > np.pi)).any(axis=0)
        alone = locked[:, others[0]] & locked[:, others[1]] & ~locked[:, axis]
        counted |= alone & (far | (force[:, axis] > 0))
    found[rows] = counted
    return found


def counted_angles(angles: ArrayLike, half_turns: ArrayLike) -> NDArray[np.float64]:
    """Angles that are known up to whole turns [rad], as those nearest to so many half turns each."""
    middle = np.pi * np.asarray(half_turns, float)
    rest = np.asarray(angles, float) - middle
    return np.asarray(middle + rest - 2 * np.pi * np.round(rest / (2 * np.pi)))
