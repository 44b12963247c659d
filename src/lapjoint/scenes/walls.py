"""A field of brick walls, and a ball thrown at every thousandth brick; not in the paper.

Walls of loose bricks stand behind each other on a square of ground, 20 courses high. Every second course is shifted by
half a brick. A wall is as long as the field, so that the parts of a partition meet within walls. The balls start in the
alleys between the walls and fly at those behind them; most walls stay as they are.

With 10,000 bodies:

    bricks: 11 walls x 45 columns x 20 courses = 9900
    balls:  11 walls x 1                       = 11

Labels are 64 blocks of the field, numbered so that consecutive ones make compact blocks.
"""

from __future__ import annotations

import numpy as np

from ..errors import LapjointError
from ..scene import Box, Material, Plane, Scene, Sphere
from .blocks import block_labels

SIZE = 10_000
COURSES = 20
APART = 2.0  # [m] between walls
LENGTH, HEIGHT, THICKNESS = 0.5, 0.25, 0.25  # [m] of a brick and what is beside it
GAP = 0.002  # [m] between bricks of a course
RADIUS = 0.3  # [m] of a ball
SPEED = 12.0  # [m/s] of a ball
COLUMNS_PER_BALL = 50
BRICK = Material(friction=0.6, linear_damping=0.02, angular_damping=0.02)


def build(size: int | None = None, seed: int = 0) -> Scene:
    """The field, with about `size` bricks. Nothing in it is random: `seed` is not used."""
    walls, columns = field_shape(SIZE if size is None else size)
    scene = Scene("walls", growth_depth=0, search_depth=4)
    scene.add_static(Plane(), material=BRICK)
    extent = np.array([columns * LENGTH, walls * APART])

    wall, course, column = (index.ravel() for index in np.indices((walls, COURSES, columns)))
    ground = np.stack([(column + 0.25 + 0.5 * (course % 2)) * LENGTH, (wall + 0.5) * APART], axis=1)
    places = np.column_stack([ground - extent / 2, (course + 0.5) * HEIGHT])
    labels = block_labels(ground, extent)
    order = np.argsort(labels, kind="stable")
    brick = Box((LENGTH - GAP, THICKNESS, HEIGHT))
    scene.add_bodies(brick, places[order], density=2000.0, material=BRICK, labels=labels[order])

    shots = -(-columns // COLUMNS_PER_BALL)
    wall, shot = (index.ravel() for index in np.indices((walls, shots)))
    ground = np.stack([(shot + 0.5) / shots * extent[0], wall * APART], axis=1)
    starts = np.column_stack([ground - extent / 2, np.full(len(ground), 0.6 * COURSES * HEIGHT)])
    scene.add_bodies(
        Sphere(RADIUS),
        starts,
        linear_velocities=np.tile([0.0, SPEED, 0.0], (len(starts), 1)),
        density=4000.0,
        material=BRICK,
        labels=block_labels(ground, extent),
    )
    far = float(extent.max()) / 2 + 4.0
    scene.camera = ((-1.1 * far, -1.7 * far, 1.0 * far), (0.0, 0.0, 0.1 * far))
    return scene


def field_shape(size: int) -> tuple[int, int]:
    """How many walls of how many columns, so that the field is about as wide as deep."""
    if size < COURSES:
        raise LapjointError(f"walls: size is {size}, expected at least {COURSES} bricks, one for each course")
    walls = max(1, round(np.sqrt(size / COURSES * LENGTH / APART)))
    return walls, max(1, round(size / (COURSES * walls)))
