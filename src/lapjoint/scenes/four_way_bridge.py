"""Two crossing footbridges, two balls.

Four arms of 42 cells hang between an abutment each and one platform in the middle. The deck is a lattice: 4 planks
cross 2 stringers and 2 runners, with a joint at each of the 16 crossings, so a cell has 10 bodies and 18 joints (2 of
them hold the rails). Two loose boards lie on each abutment.

    bodies: 4 arms x (42 cells x 10 + 2 boards) + 1 platform + 2 balls               = 1691
    joints: 4 arms x (42 cells x 18 + 43 links x 4, from the world to the platform)  = 3712
"""

from __future__ import annotations

import numpy as np

from ..arrays import rotation
from ..errors import LapjointError
from ..scene import WORLD, Box, Compound, Material, Part, Plane, Scene, Sphere
from .bridge_cells import (
    LENGTH,
    STRINGER,
    TIMBER,
    Cell,
    add_cells,
    add_landing,
    add_pins,
    depths,
    facing,
    hanging_line,
)

CELL = Cell(planks=4, runners=2)
CELL_COUNT = 42  # per arm
BOARD_COUNT = 2  # at each end
SWING = 0.0
SIDE = 2.2  # of the platform [m]
FLOOR = STRINGER[2]  # its thickness
CORNER = SIDE / 2 - 0.08
PLATFORM = Compound(
    (
        Part(Box((SIDE - 0.04, SIDE - 0.04, FLOOR))),
        *(Part(Box((0.12, 0.12, 1.0)), (x * CORNER, y * CORNER, 0.56)) for x in (-1, 1) for y in (-1, 1)),
    )
)
PLATFORM_DENSITY = 300.0  # a hollow floor
BALL = Sphere(0.4)
BALL_DENSITY = 300.0
BALLS = ((0.45, 0.45, 2.0), (-0.45, -0.45, 3.0))  # x, y, and height above the floor [m]
LEATHER = Material(friction=0.8, restitution=0.2, rolling_friction=0.01, angular_damping=0.05)


def build(size: int | None = None, seed: int = 0) -> Scene:
    """The crossing, or one of about `size` bodies. Nothing in it is random."""
    return cross(CELL_COUNT if size is None else cells_for(size))


def cells_for(size: int) -> int:
    """How many cells per arm make a crossing of about `size` bodies."""
    others = 4 * BOARD_COUNT + 1 + len(BALLS)
    least = 4 * CELL.body_count + others
    if size < least:
        raise LapjointError(f"four-way-bridge: size is {size}, expected at least {least} bodies: one cell per arm")
    return round((size - others) / (4 * CELL.body_count))


def cross(cell_count: int) -> Scene:
    """A crossing with that many cells per arm.

    Labels follow the two bridges: along the first arm from its end to the platform, on along the second to its end;
    then the third and the fourth alike.
    """
    scene = Scene("four-way-bridge", **depths(cell_count))
    scene.add_static(Plane(), material=TIMBER)
    arm_cells = [LENGTH] * cell_count
    pins, slopes = hanging_line([*arm_cells, SIDE, *arm_cells], SWING)
    pins, slopes = pins[: cell_count + 1], slopes[:cell_count]  # one arm, from its end to the platform

    centre = np.array([0.0, 0.0, pins[-1, 2]])
    middle = cell_count + 1  # label of the platform and the balls
    place = centre + PLATFORM.centre
    platform = scene.add_body(PLATFORM, place, density=PLATFORM_DENSITY, label=middle, material=TIMBER)
    drops = centre + np.array(BALLS) + [0.0, 0.0, FLOOR / 2 + BALL.radius]
    scene.add_bodies(BALL, drops, density=BALL_DENSITY, labels=middle, material=LEATHER)

    for arm, heading in enumerate(np.radians([0.0, 180.0, 90.0, 270.0])):
        inward = arm * (cell_count + 1) + min(arm, 1) + np.arange(cell_count + 1)
        labels = inward[::-1] if arm % 2 else inward
        places = rotation.rotate(facing(heading, np.zeros(1)), pins)
        add_landing(scene, places[0], heading, BOARD_COUNT, int(labels[0]))
        cells = add_cells(scene, CELL, (places[1:] + places[:-1]) / 2, slopes, labels[1:], heading)
        stringers = cells[:, :2]
        onward = np.concatenate([stringers, np.full((1, 2), platform)])
        back = np.concatenate([np.full((1, 2), WORLD), stringers])
        add_pins(scene, onward, back, places, heading)

    reach, height = -float(pins[0, 0]), float(centre[2])
    scene.camera = (
        (0.83 * reach + 2, -1.27 * reach - 5, height + 0.83 * reach + 3),
        (0.0, -0.12 * reach, 0.7 * height + 1.0),
    )
    return scene
