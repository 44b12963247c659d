"""Two walls under one plank (Fig. 7).

Nothing touches at first: bricks float a little above each other, and the plank above both walls. Then everything lands,
and bricks of one wall are a few edges away from those of the other, by way of the plank, though metres apart.

    bodies: 2 walls x 8 courses x 5 bricks + 1 plank = 81
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import LapjointError
from ..scene import Box, Material, Plane, Scene

COURSES, COLUMNS = 8, 5
BRICK = (0.3, 0.4, 0.2)  # thickness of the wall, along the wall, height [m]
GAP = 0.01  # between bricks at first
DISTANCE = 3.0  # from the middle of one wall to the middle of the other
PLANK = (4.2, 0.3, 0.06)
DROP = 0.3  # of the plank
CLAY, OAK = 1800.0, 700.0  # kg/m^3
ROUGH = Material(friction=0.7)


def build(size: int | None = None, seed: int = 0) -> Scene:
    """The walls and the plank, or some of about `size` bodies. Nothing in it is random.

    Labels run up the first wall, course by course, over the plank and down the second.
    """
    courses, columns = (COURSES, COLUMNS) if size is None else _walls_for(size)
    scene = Scene("plank", growth_depth=0, search_depth=4)
    scene.add_static(Plane(), material=ROUGH)
    course, column = (grid.ravel() for grid in np.indices((courses, columns)))
    shift = np.where(course % 2 == 0, -0.125, 0.125)  # bonded: every other course is a quarter brick further
    along = (column - (columns - 1) / 2 + shift) * (BRICK[1] + GAP)
    up = (course + 0.5) * BRICK[2] + (course + 1) * GAP
    top = courses * (BRICK[2] + GAP)

    def wall(x: float, labels: NDArray[np.int64]) -> None:
        places = np.stack([np.full(len(up), x), along, up], axis=1)
        scene.add_bodies(Box(BRICK), places, density=CLAY, labels=labels, material=ROUGH)

    wall(-DISTANCE / 2, course)
    place = (0.0, 0.0, top + DROP + PLANK[2] / 2)
    scene.add_body(Box(PLANK), place, name="plank", density=OAK, label=courses, material=ROUGH)
    wall(DISTANCE / 2, 2 * courses - course)
    reach = max(PLANK[0], 1.5 * top, columns * BRICK[1])
    scene.camera = (0.5 * reach, -1.2 * reach, top + 0.3 * reach), (0.0, 0.0, 0.6 * top)
    return scene


def _walls_for(size: int) -> tuple[int, int]:
    """Courses and columns of two walls that have about `size` bodies with the plank."""
    bricks = (size - 1) / 2
    if bricks < 4:
        raise LapjointError(f"plank: size is {size}, expected at least 9 bodies: two walls of four bricks and a plank")
    columns = max(2, round(np.sqrt(bricks * COLUMNS / COURSES)))
    return max(2, round(bricks / columns)), columns
