"""Where joints stand on their six axes, and how fast they move: of body a relative to body b, in the joint's frame.

Along axes 0 to 2 it is how far anchor a is from anchor b, in the joint's frame on body b. Angles 3 to 5 are those by
which frame a is turned in frame b: about z after y after x. They are the same formulas as the solver's, so that limits,
motors and springs mean the same numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays import rotation
from ..errors import LapjointError
from .joints import WORLD, counted_angles
from .scene import Scene

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

AXES = 6
FREE_AXIS = "free"
"""In place of an axis: the one that a joint leaves free, as a hinge or a slider does."""
STEEP = 0.1
"""Cosine of the middle angle, at least: beyond, the outer two cannot be told apart, and their rates have no bounds."""


class JointMotion:
    """Some joints of a scene, for states of the bodies that they join."""

    def __init__(self, scene: Scene, states: Array, joint_ids: Ids) -> None:
        """`states` has a row for every body of the scene; only those of these joints are read."""
        joints = scene.joints
        self._a = _Frame(states, joints.body_a[joint_ids], joints.frame_a[joint_ids])
        self._b = _Frame(states, joints.body_b[joint_ids], joints.frame_b[joint_ids])
        cross = np.cross(self._b.axes[:, 2], self._a.axes[:, 0])
        length = np.linalg.norm(cross, axis=1)
        is_flat = length <= 1e-6
        self._middle = np.where(is_flat[:, None], self._b.axes[:, 1], cross / np.where(is_flat, 1.0, length)[:, None])
        self._steep = 1 / np.maximum(length, STEEP)

    def positions(self) -> Array:
        """(n, 6) [m, rad]; angles from -pi to pi, the middle one from -pi/2 to pi/2."""
        x, y = self._a.axes, self._b.axes
        along = _dot(y, (self._a.anchor - self._b.anchor)[:, None])
        about = [
            np.arctan2(_dot(y[:, 2], x[:, 1]), _dot(y[:, 2], x[:, 2])),
            np.arcsin(np.clip(-_dot(y[:, 2], x[:, 0]), -1.0, 1.0)),
            np.arctan2(_dot(y[:, 1], x[:, 0]), _dot(y[:, 0], x[:, 0])),
        ]
        return np.column_stack([along, *about])

    def velocities(self) -> Array:
        """(n, 6) [m/s, rad/s]: rates of the positions."""
        x, y = self._a.axes, self._b.axes
        # Of b, the point that is where a's anchor is: its axes turn with it.
        apart = self._a.anchor - self._b.anchor
        linear = self._a.velocity - self._b.velocity - np.cross(self._b.spin, apart)
        spin = self._a.spin - self._b.spin
        about = [
            self._steep * _dot(np.cross(self._middle, y[:, 2]), spin),
            _dot(self._middle, spin),
            self._steep * _dot(np.cross(x[:, 0], self._middle), spin),
        ]
        return np.column_stack([_dot(y, linear[:, None]), *about])


class _Frame:
    """A joint's frame on one of its bodies, or in the world: a row for each joint."""

    def __init__(self, states: Array, bodies: Ids, frames: Array) -> None:
        in_world = bodies == WORLD
        rows = np.where(in_world[:, None], _AT_REST, states[bodies])
        rows[~rows[:, 3:7].any(axis=1)] = np.nan  # of a body that was removed
        arm = rotation.rotate(rows[:, 3:7], frames[:, :3])
        self.spin = rows[:, 10:]
        self.anchor = rows[:, :3] + arm
        self.velocity = rows[:, 7:10] + np.cross(self.spin, arm)
        turn = rotation.multiply(rows[:, 3:7], frames[:, 3:])
        self.axes = np.swapaxes(rotation.to_matrix(turn), 1, 2)  # its rows are axes, in the world


_AT_REST = np.array([0.0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])


def _dot(a: Array, b: Array) -> Array:
    return np.asarray((a * b).sum(axis=-1))


def of_axis(scene: Scene, values: Array, joint_ids: Ids, axis: int | str | None, what: str) -> Array:
    """Of values on all axes, (n, 6), those that `axis` names: all for None; (n,) for a number, or for "free"."""
    if axis is None:
        return values
    rows = np.arange(len(joint_ids))
    if axis == FREE_AXIS:
        is_free = scene.joints.lower[joint_ids] < scene.joints.upper[joint_ids]
        for row in np.flatnonzero(is_free.sum(axis=1) != 1):
            raise LapjointError(
                f"{what}: joint {joint_ids[row]} has {is_free[row].sum()} free axes, expected one: name an axis from 0 "
                "to 5, or None for all"
            )
        return np.asarray(values[rows, np.argmax(is_free, axis=1)])
    if not (isinstance(axis, int | np.integer) and not isinstance(axis, bool) and 0 <= axis < AXES):
        raise LapjointError(f"{what}: axis is {axis!r}, expected 0 to 5, {FREE_AXIS!r} or None")
    return np.asarray(values[:, axis])


def with_turns(scene: Scene, positions: Array, joint_ids: Ids, half_turns: Ids) -> Array:
    """Positions (n, 6) of joints, whose counted angle is that which is next to so many half turns: the only one that
    the joint leaves free, about x or z."""
    rows = np.flatnonzero(half_turns)
    about_x = (scene.joints.lower[joint_ids[rows], 3] != 0) | (scene.joints.upper[joint_ids[rows], 3] != 0)
    axis = np.where(about_x, 3, 5)
    positions[rows, axis] = counted_angles(positions[rows, axis], half_turns[rows])
    return positions
