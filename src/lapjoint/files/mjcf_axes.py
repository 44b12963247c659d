"""Hinges and slides of MJCF files: one of them as a joint, several of a body as one joint of six axes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arrays import rotation
from ..scene import LOCKED, Drive, Hinge, SixAxis, Slider, Spring
from .axes import Axes
from .model import Array

TOGETHER = 1e-6
"""Anchors meet, and axes are at right angles, up to this [m and cosine]."""


@dataclass
class Axis:
    """A hinge or slide joint of the file."""

    is_hinge: bool
    anchor: Array
    axis: Array
    limits: tuple[float, float]
    spring: Spring | None
    drive: Drive | None
    friction: float


def one_axis(axis: Axis) -> Hinge | Slider | SixAxis:
    """A hinge or a slider; with a spring, a six-axis joint with one free axis, which is x."""
    if axis.spring is None:
        kind = Hinge if axis.is_hinge else Slider
        return kind(direction(axis.axis), axis.limits, drive=axis.drive, friction=axis.friction)
    return _six_axis_of({3 if axis.is_hinge else 0: axis})


def direction(axis: Array) -> tuple[float, float, float]:
    x, y, z = (float(one) for one in axis)
    return x, y, z


def _six_axis_of(axes: dict[int, Axis]) -> SixAxis:
    return Axes(
        limits={k: axes[k].limits if k in axes else LOCKED for k in range(6)},
        springs={k: one.spring for k, one in axes.items() if one.spring is not None},
        drives={k: one.drive for k, one in axes.items() if one.drive is not None},
        frictions={k: one.friction for k, one in axes.items() if one.friction},
    ).six_axis()


def six_axis(axes: list[Axis]) -> tuple[SixAxis, Array] | None:
    """One joint in place of several, and its frame, where slides come before hinges, hinges have one anchor, and all
    axes are along three directions at right angles. A six-axis joint turns about z, then y, then x: the first hinge of
    the file is z."""
    slides = [one for one in axes if not one.is_hinge]
    hinges = [one for one in axes if one.is_hinge]
    if axes != slides + hinges or len(slides) > 3 or len(hinges) > 3:
        return None
    if any(np.abs(one.anchor - hinges[0].anchor).max() > TOGETHER for one in hinges):
        return None
    frame: dict[int, Array] = {}  # directions by axis: x 0, y 1, z 2
    taken: dict[int, Axis] = {}
    for place, one in zip((2, 1, 0), hinges, strict=False):
        frame[place], taken[3 + place] = one.axis, one
    for one in slides:
        along = [k for k, axis in frame.items() if abs(abs(axis @ one.axis) - 1) < TOGETHER]
        place = along[0] if along else next((k for k in (0, 1, 2) if k not in frame), -1)
        if place < 0 or place in taken:
            return None
        if along and frame[place] @ one.axis < 0:
            one = _turned(one)
        frame.setdefault(place, one.axis)
        taken[place] = one
    directions = list(frame.items())
    for i, (_, a) in enumerate(directions):
        if any(abs(a @ b) > TOGETHER for _, b in directions[i + 1 :]):
            return None
    if len(frame) == 2:
        (missing,) = {0, 1, 2} - frame.keys()
        frame[missing] = np.cross(frame[(missing + 1) % 3], frame[(missing + 2) % 3])
    elif len(frame) == 1:
        turn = rotation.to_matrix(rotation.between([1.0, 0.0, 0.0], next(iter(frame.values()))))
        (only,) = frame
        frame = {(only + k) % 3: turn[:, k] for k in range(3)}
    x, y, z = (frame[k] for k in range(3))
    if np.cross(x, y) @ z < 0:  # left-handed: x the other way round
        x = -x
        for place in (0, 3):
            if place in taken:
                taken[place] = _turned(taken[place])
    return _six_axis_of(taken), rotation.from_matrix(np.stack([x, y, z], axis=1))


def _turned(one: Axis) -> Axis:
    """The same along the opposite axis."""
    low, high = one.limits
    spring, drive = one.spring, one.drive
    if spring is not None:
        spring = replace(spring, rest=-spring.rest)
    if drive is not None:
        drive = replace(drive, position=-drive.position, velocity=-drive.velocity)
    return replace(one, axis=-one.axis, limits=(-high, -low), spring=spring, drive=drive)
