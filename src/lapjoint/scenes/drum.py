"""Grains that tumble in a turning drum.

The drum is a triangle mesh, closed at its back, with a rim at its mouth, which looks up a little; lifters along its
wall turn with it. Grains are balls and cubes. Not in the paper.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays import rotation
from ..errors import LapjointError
from ..scene import Box, Material, Rotation, Scene, Sphere, TriangleMesh

Array = NDArray[np.float64]

GRAINS = 800
GRAIN = 0.05  # radius of a ball, and half a cube's side [m]
SPACING = 2.3 * GRAIN
FILLED = 0.22  # of the drum's volume, by grains and what is between them
LENGTH, MOUTH = 0.8, 0.75  # of the drum, and the radius of its mouth, in radii
SIDES, LIFTERS = 48, 6
TILT = 0.5  # of its axis [rad]
RATE = 1.2  # [rad/s]
DRY = Material(friction=0.5, rolling_friction=0.002)


def build(size: int | None = None, seed: int = 0) -> Scene:
    """The scene, with about `size` grains (800); `seed` decides which of them are balls."""
    count = GRAINS if size is None else size
    if count < 10:
        raise LapjointError(f"drum: size is {size}, expected at least 10 grains")
    radius = float(np.cbrt(count * SPACING**3 / (FILLED * np.pi * LENGTH)))
    length = LENGTH * radius
    tilt = rotation.from_axis_angle([1.0, 0.0, 0.0], -TILT)
    turns = Rotation(rotation.rotate(tilt, [0.0, 1.0, 0.0]), RATE, about=(0.0, 0.0, 0.0))
    scene = Scene("drum", growth_depth=0, search_depth=4)
    scene.add_kinematic(drum_shell(radius, length, SIDES), (0.0, 0.0, 0.0), tilt, motion=turns, material=DRY)
    lifter = Box((0.16 * radius, 0.96 * length, 0.06 * radius))
    for angle in np.arange(LIFTERS) * 2 * np.pi / LIFTERS:
        turn = rotation.multiply(tilt, rotation.from_axis_angle([0.0, 1.0, 0.0], angle))
        place = rotation.rotate(turn, [0.9 * radius, 0.0, 0.0])
        scene.add_kinematic(lifter, place, turn, motion=turns, material=DRY)
    places = rotation.rotate(tilt, _lowest_places(count, radius, length, tilt))
    places = np.random.default_rng(seed).permutation(places)
    balls = len(places) // 2
    scene.add_bodies(Sphere(GRAIN), places[:balls], density=1500.0, material=DRY)
    scene.add_bodies(Box((2 * GRAIN, 2 * GRAIN, 2 * GRAIN)), places[balls:], tilt, density=1500.0, material=DRY)
    scene.camera = ((-1.1 * radius, -2.7 * radius, 1.7 * radius), (0.0, 0.0, -0.05 * radius))
    return scene


def drum_shell(radius: float, length: float, sides: int) -> TriangleMesh:
    """A wall about the y axis, its back, and a rim in front."""
    angle = np.arange(sides) * 2 * np.pi / sides
    ring = np.stack([np.cos(angle), 0 * angle, np.sin(angle)], axis=1)
    offset = np.array([0.0, length / 2, 0.0])
    rings = radius * ring + offset, radius * ring - offset, MOUTH * radius * ring - offset
    here, after = np.arange(sides), (np.arange(sides) + 1) % sides
    triangles = [np.stack([here, after, np.full(sides, 3 * sides)], axis=1)]
    for first in (0, sides):  # from the back to the front, from there to the mouth
        a, b, c, d = first + here, first + sides + here, first + sides + after, first + after
        triangles += [np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)]
    return TriangleMesh(np.concatenate([*rings, [offset]]), np.concatenate(triangles))


def _lowest_places(count: int, radius: float, length: float, tilt: Array) -> Array:
    """Places of a grid in the drum's frame that are clear of its lifters: the lowest as it stands."""
    across = np.arange(-radius, radius, SPACING)
    along = np.arange((length - SPACING) / 2, (SPACING - length) / 2, -SPACING)
    grid = np.stack(np.meshgrid(across, along, across, indexing="ij"), axis=-1).reshape(-1, 3)
    inside = grid[np.hypot(grid[:, 0], grid[:, 2]) < 0.8 * radius - GRAIN]
    heights = rotation.rotate(tilt, inside)[:, 2]
    return np.asarray(inside[np.argsort(heights, kind="stable")][:count])
