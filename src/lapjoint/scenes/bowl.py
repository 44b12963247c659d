"""Balls dropped into a square bowl.

The balls start as a grid of 14 x 18 x 20 that nowhere touches, each moved a little at random, so that columns topple.
The bowl is an inverted truncated pyramid of static bodies, high enough that no ball leaves it.

Labels are 64 blocks of columns of the grid, numbered so that consecutive ones make compact blocks.
"""

from __future__ import annotations

import numpy as np

from ..errors import LapjointError
from ..scene import Box, ConvexHull, Material, Scene, Sphere
from .blocks import block_labels

GRID = (14, 18, 20)
RADIUS = 0.2  # [m]
SPACING = 0.42  # [m] between neighbours in the grid
JITTER = 0.005  # [m] largest random move of a ball along each axis; less than half the gap between neighbours
DROP = 0.3  # [m] from the lowest balls to the floor
SLOPE = np.radians(60.0)
THICKNESS = 1.0  # [m] of floor and walls
BALL = Material(friction=0.4, restitution=0.1, linear_damping=0.1, angular_damping=0.5)


def build(size: int | None = None, seed: int = 0) -> Scene:
    """The scene, with `size` balls (5,040) in a bowl that grows with them. `seed` moves the balls."""
    count = int(np.prod(GRID)) if size is None else size
    if count < 1:
        raise LapjointError(f"bowl: size is {count}, expected at least one ball")
    shape = grid_shape(count)
    cell = np.stack(np.unravel_index(np.arange(count), shape[::-1])[::-1], axis=1)  # layer by layer, from below
    labels = block_labels(cell[:, :2] + 0.5, shape[:2])
    order = np.argsort(labels, kind="stable")

    places = (cell - (np.array(shape) - 1) / 2) * SPACING
    places[:, 2] = DROP + RADIUS + cell[:, 2] * SPACING
    places += np.random.default_rng(seed).uniform(-JITTER, JITTER, places.shape)

    scene = Scene("bowl", growth_depth=0, search_depth=4)
    scene.add_bodies(Sphere(RADIUS), places[order], density=1000.0, material=BALL, labels=labels[order])
    half_floor, height = bowl_size(shape)
    _add_bowl(scene, half_floor, height)
    rim = half_floor + height / np.tan(SLOPE)
    scene.camera = ((-1.0 * rim, -2.1 * rim, 2.5 * rim + 0.5 * height), (0.0, 0.0, 0.3 * height))
    return scene


def grid_shape(count: int) -> tuple[int, int, int]:
    """Balls along x, y and z: a grid of the paper's proportions that holds `count` balls; the top may be unfinished."""
    scale = (count / np.prod(GRID)) ** (1 / 3)
    x, y = (max(1, round(n * scale)) for n in GRID[:2])
    return x, y, -(-count // (x * y))


def bowl_size(shape: tuple[int, int, int]) -> tuple[float, float]:
    """Half the side of the floor and the height of the walls [m] for a grid of balls."""
    x, y, z = shape
    return 0.5 * SPACING * max(x, y) + RADIUS, 0.55 * SPACING * z + 5 * RADIUS


def _add_bowl(scene: Scene, a: float, height: float) -> None:
    """A floor with its top at zero and four sloped walls whose ends are mitred."""
    t, b = THICKNESS, a + height / np.tan(SLOPE)
    scene.add_static(Box((2 * (a + t), 2 * (a + t), t)), (0.0, 0.0, -t / 2), material=BALL)
    profile = [(a, 0.0), (a, -t), (a + t, -t), (b, height), (b + t, height)]  # distance from the middle, z
    wall = ConvexHull(np.array([(d, side * d, z) for d, z in profile for side in (-1, 1)]))
    turns = np.arange(4) * np.pi / 2
    quaternions = np.stack([np.cos(turns / 2), 0 * turns, 0 * turns, np.sin(turns / 2)], axis=1)
    cx, _, cz = wall.centre
    places = np.stack([np.cos(turns) * cx, np.sin(turns) * cx, np.full(4, cz)], axis=1)
    scene.add_statics(wall, places, quaternions, material=BALL)
