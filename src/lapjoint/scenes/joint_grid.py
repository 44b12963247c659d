"""A curtain of balls in a grid, hung by its upper edge; not in the paper.

Ball joints halfway between neighbours hold the balls together, and those of the upper edge to the world. The curtain
starts flat, swung to the side. With 100 columns of 99 balls:

    bodies: 100 columns x 99 rows                                    = 9900
    joints: 99 x 99 beside + 100 x 98 above each other + 100 anchors = 19701

`size` is the longer side, the number of columns; a column has one ball less. Labels are columns, from left to right.
"""

from __future__ import annotations

import numpy as np

from ..errors import LapjointError
from ..scene import WORLD, Ball, Box, Material, Scene, Sphere

COLUMNS = 100
SPACING = 0.25  # [m] between neighbours
RADIUS = 0.11  # [m]
DENSITY = 1000.0  # kg/m^3
START_ANGLE = 0.35  # how far to the side the curtain starts [rad]
AIR = Material(linear_damping=0.1, angular_damping=0.3)


def build(size: int | None = None, seed: int = 0) -> Scene:
    """The curtain, or one of `size` columns. Nothing in it is random: `seed` is not used."""
    columns = COLUMNS if size is None else size
    if columns < 2:
        raise LapjointError(f"joint-grid: size is {columns}, expected at least 2 columns")
    rows = columns - 1
    column, row = (index.ravel() for index in np.indices((columns, rows)))
    down = SPACING * np.array([0.0, np.sin(START_ANGLE), -np.cos(START_ANGLE)])
    right = np.array([SPACING, 0.0, 0.0])
    top = SPACING * (rows + 3)

    scene = Scene("joint-grid", growth_depth=3, search_depth=4)
    places = np.outer(column - (columns - 1) / 2, right) + np.outer(row + 0.5, down) + [0.0, 0.0, top]
    balls = scene.add_bodies(Sphere(RADIUS), places, density=DENSITY, material=AIR, labels=column)
    grid = np.array(balls).reshape(columns, rows)
    for shift, a, b in ((-right / 2, grid[1:], grid[:-1]), (-down / 2, grid[:, 1:], grid[:, :-1])):
        scene.add_joints(Ball(), a.ravel(), b.ravel(), places[a.ravel()] + shift)
    edge = grid[:, 0]
    scene.add_joints(Ball(), edge, np.full(columns, WORLD), places[edge] - down / 2)

    width, middle = columns * SPACING, places.mean(axis=0)
    scene.add_static(Box((width, 0.4, 0.2)), (0.0, 0.0, top + 0.1 + RADIUS))
    eye = middle + np.array([-0.65, -1.4, 0.2]) * (width + 4 * SPACING)
    scene.camera = ((float(eye[0]), float(eye[1]), float(eye[2])), (0.0, float(middle[1]), float(middle[2])))
    return scene
