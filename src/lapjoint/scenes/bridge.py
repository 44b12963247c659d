"""A hanging footbridge (Fig. 5).

A cell has 9 bodies: 2 stringers, 5 planks, 2 rails. An end has 8: two steel bars that hold the stringers to the world,
and six loose boards that lie on the abutment.

    bodies: 24 cells x 9 + 2 ends x 8                                               = 232
    joints: 24 cells x 12 + 25 links x 4 (cell to cell, cell to bars) + 2 ends x 4  = 396

That is the paper's 9 bodies and 16 joints per cell, plus 7 and minus 4, for 25 cells.
"""

from __future__ import annotations

import numpy as np

from ..errors import LapjointError
from ..scene import WORLD, Box, Plane, Scene
from .bridge_cells import (
    LENGTH,
    STRINGER_OFFSET,
    TIMBER,
    Array,
    Cell,
    Ids,
    add_cells,
    add_landing,
    add_pins,
    depths,
    facing,
    hanging_line,
)

CELL = Cell(planks=5, runners=0)
CELL_COUNT = 24
BAR = (0.25, 0.2, 0.04)  # the thickness makes it as heavy as a stringer: a light one would let gaps grow
STEEL = 7800.0  # kg/m^3
BOARD_COUNT = 6  # at each end
SWING = 0.6


def build(size: int | None = None, seed: int = 0) -> Scene:
    """The bridge, or one of about `size` bodies. Nothing in it is random."""
    return hang("bridge", CELL_COUNT if size is None else cells_for("bridge", size))


def cells_for(name: str, size: int) -> int:
    """How many cells make a bridge of about `size` bodies."""
    others = 2 * (2 + BOARD_COUNT)
    least = 2 * CELL.body_count + others
    if size < least:
        raise LapjointError(f"{name}: size is {size}, expected at least {least} bodies: two cells and two ends")
    return round((size - others) / CELL.body_count)


def hang(name: str, cell_count: int) -> Scene:
    """A bridge of that many cells. Labels count the left end, the cells and the right end."""
    scene = Scene(name, **depths(cell_count))
    scene.add_static(Plane(), material=TIMBER)
    pins, slopes = hanging_line([BAR[0], *[LENGTH] * cell_count, BAR[0]], SWING)
    middles = (pins[1:] + pins[:-1]) / 2

    add_landing(scene, pins[0], 0.0, BOARD_COUNT, label=0)
    left = _add_bars(scene, middles[0], slopes[:1], label=0)
    cells = add_cells(scene, CELL, middles[1:-1], slopes[1:-1], labels=np.arange(1, cell_count + 1))
    right = _add_bars(scene, middles[-1], slopes[-1:], label=cell_count + 1)
    add_landing(scene, pins[-1], np.pi, BOARD_COUNT, label=cell_count + 1)

    stringers = np.concatenate([left, cells[:, :2], right])
    add_pins(scene, stringers[1:], stringers[:-1], pins[1:-1])
    add_pins(scene, stringers[[0, -1]], WORLD, pins[[0, -1]])

    span, top, low = (float(length) for length in (2 * pins[-1, 0], pins[0, 2], pins[:, 2].min()))
    scene.camera = (0.55 * span, -0.52 * span - 4, top + 0.15 * span), (0.1 * span, 0.0, 0.7 * low)
    return scene


def _add_bars(scene: Scene, middle: Array, slope: Array, label: int) -> Ids:
    """The two bars of an end, left and right, as one row."""
    places = middle + np.array([[0.0, STRINGER_OFFSET, 0.0], [0.0, -STRINGER_OFFSET, 0.0]])
    bars = scene.add_bodies(Box(BAR), places, facing(0.0, slope), density=STEEL, labels=label, material=TIMBER)
    return np.array([bars], np.int64)
