"""Motions of kinematic bodies: where one is at any time, whatever touches it.

A motion counts its time from when it is given, and begins where the body is then: its base, position and quaternion.
Only keyframes are poses in the world. native/bullet/motions.cpp is the twin of `pose_at` that engines use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import rotation
from ..arrays.checks import as_rows, table, unit_quaternions, unit_vectors
from ..errors import LapjointError

Array = NDArray[np.float64]

ZERO = (0.0, 0.0, 0.0)
NEARLY_EQUAL = 1 - 1e-9
"""Cosine between quaternions from which slerp is a straight line."""
POSE_SIZE = 7
"""Position, quaternion w x y z."""


@dataclass(frozen=True)
class ConstantVelocity:
    """Straight on, turning about its own position."""

    linear: ArrayLike = ZERO
    """m/s"""
    angular: ArrayLike = ZERO
    """rad/s"""


@dataclass(frozen=True)
class Rotation:
    """Turning about an axis through a point."""

    axis: ArrayLike
    rate: float
    """rad/s"""
    about: ArrayLike | None = None
    """A point of the axis, in the world [m]; None: the body's position."""


@dataclass(frozen=True)
class Oscillation:
    """To and fro: amplitude (sin(2 pi frequency t + phase) - sin(phase)) from where it begins."""

    amplitude: ArrayLike = ZERO
    """m"""
    frequency: float = 1.0
    """Hz"""
    phase: float = 0.0
    """rad"""
    angular_amplitude: ArrayLike = ZERO
    """A rotation vector [rad]."""


@dataclass(frozen=True)
class Keyframes:
    """From pose to pose in the world, in straight lines and even turns. Before the first and after the last it is held
    there; with `repeat` it begins again, and the last pose has to be the first."""

    times: ArrayLike
    """s, ascending"""
    positions: ArrayLike
    quaternions: ArrayLike = (1.0, 0.0, 0.0, 0.0)
    """One each, or one for all."""
    repeat: bool = False


Motion = ConstantVelocity | Rotation | Oscillation | Keyframes


def surface_velocities(value: ArrayLike, count: int, title: Callable[[int], str]) -> Array:
    """Velocities of surfaces as rows of six numbers: linear and angular, or linear alone."""
    size = np.shape(value)[-1:]
    linear = as_rows("surface velocity", value, count, (6,) if size == (6,) else (3,), title)
    return linear if size == (6,) else np.concatenate([linear, np.zeros((count, 3))], axis=1)


# ---- as numbers, for files, messages and compiled code ---------------------------------------------------------------


def _constant_velocity(motion: ConstantVelocity, title: str) -> Array:
    return np.concatenate(
        [as_rows(f"{name} velocity", getattr(motion, name), 1, (3,), title)[0] for name in ("linear", "angular")]
    )


def _rotation(motion: Rotation, title: str) -> Array:
    axis = unit_vectors("axis", motion.axis, 1, lambda _: title)[0]
    rate = as_rows("rate", motion.rate, 1, (), title)
    about = () if motion.about is None else as_rows("about", motion.about, 1, (3,), title)[0]
    return np.concatenate([axis, rate, about])


def _oscillation(motion: Oscillation, title: str) -> Array:
    given = {"amplitude": motion.amplitude, "angular amplitude": motion.angular_amplitude}
    rows = [as_rows(name, value, 1, (3,), title)[0] for name, value in given.items()]
    frequency, phase = (as_rows(name, getattr(motion, name), 1, (), title) for name in ("frequency", "phase"))
    return np.concatenate([*rows, frequency, phase])


def _keyframes(motion: Keyframes, title: str) -> Array:
    positions = table("keyframe position", motion.positions, 3, title)
    count = len(positions)
    if not count:
        raise LapjointError(f"{title}: it has no keyframes, expected one or more")
    times = as_rows("keyframe times", motion.times, 1, np.shape(motion.times) or (1,), title)[0]
    if times.shape != (count,):
        raise LapjointError(f"{title}: {times.size} keyframe times for {count} positions, expected one each")
    for late in np.flatnonzero(np.diff(times) <= 0):
        raise LapjointError(f"{title}: keyframe {late + 1} is at {times[late + 1]:g} s, expected later than the last")
    places = as_rows("keyframe position", positions, count, (3,), title)
    turns = unit_quaternions(motion.quaternions, count, lambda row: f"{title}: keyframe {row}")
    ends = np.concatenate([places[-1] - places[0], [1 - abs(turns[0] @ turns[-1])]])
    if motion.repeat and (count < 2 or np.abs(ends).max() > 1e-9):
        raise LapjointError(f"{title}: keyframes repeat and end elsewhere than they begin, expected the same pose")
    return np.concatenate([[float(motion.repeat)], np.column_stack([times, places, turns]).ravel()])


_KINDS: dict[type[Any], tuple[int, Callable[[Any, str], Array]]] = {
    type(None): (0, lambda motion, title: np.empty(0)),
    ConstantVelocity: (1, _constant_velocity),
    Rotation: (2, _rotation),
    Oscillation: (3, _oscillation),
    Keyframes: (4, _keyframes),
}
"""The number of each kind, and what makes its values; None is a body that rests."""


@dataclass(frozen=True, eq=False)
class GivenMotion:
    """A motion as numbers, since when it is that of a body, and from where."""

    kind: int
    values: Array
    start: int
    """The step from which it counts its time."""
    base: Array
    """(7,) where the body is then: position, quaternion."""

    @staticmethod
    def of(motion: Motion | None, title: str, base: ArrayLike, start: int = 0) -> GivenMotion:
        """Checked: what is no motion raises a LapjointError that begins with `title`."""
        if type(motion) not in _KINDS:
            known = ", ".join(kind.__name__ for kind in _KINDS if kind is not type(None))
            raise LapjointError(f"{title}: motion is {motion!r}, expected one of {known}")
        kind, values_of = _KINDS[type(motion)]
        return GivenMotion(kind, values_of(motion, title), start, np.array(base, float))

    @staticmethod
    def at_rest(pose: ArrayLike, start: int = 0) -> GivenMotion:
        return GivenMotion(0, np.empty(0), start, np.array(pose, float))

    def pose(self, step: int, timestep: float) -> Array:
        """Where the body is when so many steps have been taken, (7,)."""
        return pose_at(self.kind, self.values, self.base, (step - self.start) * timestep)

    def state(self, step: int, timestep: float) -> Array:
        """The same, and the velocity that it has in the step that comes: 13 numbers, as those of bodies."""
        now, then = self.pose(step, timestep), self.pose(step + 1, timestep)
        return np.concatenate([now, velocity_between(now, then, timestep)])


# ---- where a body is -------------------------------------------------------------------------------------------------


def pose_at(kind: int, values: Array, base: Array, time: float) -> Array:
    """Position and quaternion after some time of a motion."""
    place, turn = base[:3], base[3:]
    if kind == 0:
        return base.copy()
    if kind == 1:
        return _pose(place + values[:3] * time, rotation.multiply(_turn_by(values[3:] * time), turn))
    if kind == 2:
        by = _turn_by(values[:3] * (values[3] * time))
        about = values[4:] if len(values) > 4 else place
        return _pose(about + rotation.rotate(by, place - about), rotation.multiply(by, turn))
    if kind == 3:
        share = np.sin(2 * np.pi * values[6] * time + values[7]) - np.sin(values[7])
        return _pose(place + values[:3] * share, rotation.multiply(_turn_by(values[3:6] * share), turn))
    return _between_keyframes(bool(values[0]), values[1:].reshape(-1, 1 + POSE_SIZE), time)


def velocity_between(before: Array, after: Array, duration: float) -> Array:
    """The constant velocity, linear and angular, that leads from one pose to another."""
    by = rotation.multiply(after[3:], rotation.conjugate(before[3:]))
    by = -by if by[0] < 0 else by
    sine = float(np.linalg.norm(by[1:]))
    turn = by[1:] / sine * 2 * np.arctan2(sine, by[0]) if sine > 0 else np.zeros(3)
    return np.concatenate([(after[:3] - before[:3]) / duration, turn / duration])


def _pose(position: Array, quaternion: Array) -> Array:
    return np.concatenate([position, quaternion])


def _turn_by(vector: Array) -> Array:
    """The rotation by a vector."""
    angle = float(np.linalg.norm(vector))
    return rotation.from_axis_angle(vector, angle) if angle > 0 else rotation.IDENTITY


def _between_keyframes(repeat: bool, rows: Array, time: float) -> Array:
    times = rows[:, 0]
    if repeat:
        time = times[0] + (time - times[0]) % (times[-1] - times[0])
    after = int(np.searchsorted(times, time, side="right"))
    before, after = max(after - 1, 0), min(after, len(rows) - 1)
    span = times[after] - times[before]
    share = (time - times[before]) / span if span > 0 else 0.0
    first, second = rows[before, 1:], rows[after, 1:]
    return _pose(first[:3] + share * (second[:3] - first[:3]), _slerp(first[3:], second[3:], share))


def _slerp(a: Array, b: Array, share: float) -> Array:
    cosine = float(a @ b)
    b, cosine = (-b, -cosine) if cosine < 0 else (b, cosine)
    shares = 1 - share, share
    if cosine < NEARLY_EQUAL:
        angle = np.arccos(cosine)
        shares = np.sin((1 - share) * angle) / np.sin(angle), np.sin(share * angle) / np.sin(angle)
    mixed = shares[0] * a + shares[1] * b
    return np.asarray(mixed / np.linalg.norm(mixed))


# ---- many of them ----------------------------------------------------------------------------------------------------

MOTION_ARRAYS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "ids": (np.int32, ()),
    "kinds": (np.int32, ()),
    "starts": (np.int64, ()),
    "bases": (np.float64, (POSE_SIZE,)),
    "counts": (np.int32, ()),
    "values": (np.float64, ()),
}
"""Type and shape of a row of each array; all but `values` have a row for each motion, and `counts` has how many of the
values are a motion's."""


def pack_motions(motions: Mapping[int, GivenMotion]) -> dict[str, NDArray[Any]]:
    """Motions of static bodies as arrays, in ascending order of the bodies."""
    ids = sorted(motions)
    rows = [motions[s] for s in ids]
    return {
        "ids": np.array(ids, np.int32),
        "kinds": np.array([row.kind for row in rows], np.int32),
        "starts": np.array([row.start for row in rows], np.int64),
        "bases": np.array([row.base for row in rows]).reshape(-1, POSE_SIZE),
        "counts": np.array([len(row.values) for row in rows], np.int32),
        "values": np.concatenate([np.empty(0), *(row.values for row in rows)]),
    }


def unpack_motions(arrays: Mapping[str, NDArray[Any]]) -> dict[int, GivenMotion]:
    """The motions that were packed. A ValueError where they can be none."""
    count = len(arrays["ids"])
    if any(len(arrays[name]) != count for name in ("kinds", "starts", "bases", "counts")):
        raise ValueError("motions of kinematic bodies have different numbers of rows")
    if int(arrays["counts"].sum()) != len(arrays["values"]) or (arrays["counts"] < 0).any():
        raise ValueError("motions of kinematic bodies have other values than they say")
    parts = np.split(arrays["values"], np.cumsum(arrays["counts"])[:-1]) if count else []
    motions = {}
    for i, values in enumerate(parts):
        kind = int(arrays["kinds"][i])
        _check_values(kind, values)
        base = np.array(arrays["bases"][i], float)
        if not np.isfinite(base).all():
            raise ValueError("a kinematic body begins nowhere")
        motions[int(arrays["ids"][i])] = GivenMotion(kind, np.array(values, float), int(arrays["starts"][i]), base)
    return motions


def _check_values(kind: int, values: Array) -> None:
    """Raise a ValueError unless a motion of this kind can have these values."""
    count = len(values)
    sizes: dict[int, bool] = {
        0: count == 0,
        1: count == 6,
        2: count in (4, 7),
        3: count == 8,
        4: count > POSE_SIZE and count % (1 + POSE_SIZE) == 1,
    }
    if not sizes.get(kind, False) or not np.isfinite(values).all():
        raise ValueError(f"a kinematic body has a motion of kind {kind} with {count} values")
    if kind == 4 and (np.diff(values[1 :: 1 + POSE_SIZE]) <= 0).any():
        raise ValueError("keyframes of a kinematic body are not in the order of their times")
