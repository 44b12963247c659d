"""A pyramid of loose cubes, 100 at its base; not in the paper.

Every row lies on the one below, each cube on the halves of two, so that the lowest carry all others: 100 rows, 5,050
cubes of one metre. It stands, and a solver that carries weight from row to row too slowly lets it sink into itself.

`size` is the number of cubes at the base. Labels are columns one cube wide, from left to right.
"""

from __future__ import annotations

import numpy as np

from ..errors import LapjointError
from ..scene import Box, Material, Plane, Scene

BASE = 100
SIDE = 1.0  # [m] of a cube
GAP = 0.01  # [m] between cubes beside each other; above each other they touch
DENSITY = 1000.0  # kg/m^3
ROUGH = Material(friction=0.6)


def build(size: int | None = None, seed: int = 0) -> Scene:
    """The pyramid, or one of `size` cubes at its base. Nothing in it is random: `seed` is not used."""
    base = BASE if size is None else size
    if base < 1:
        raise LapjointError(f"pyramid: size is {base}, expected at least 1 cube at the base")
    row, column = (index.ravel() for index in np.indices((base, base)))
    row, column = row[row + column < base], column[row + column < base]
    along = column + row / 2  # of the left side, in cubes
    labels = along.astype(np.int64)
    order = np.argsort(labels, kind="stable")
    x, z = (along - (base - 1) / 2) * (SIDE + GAP), (row + 0.5) * SIDE
    places = np.stack([x, np.zeros(len(x)), z], axis=1)

    scene = Scene("pyramid", growth_depth=0, search_depth=4)
    scene.add_static(Plane(), material=ROUGH)
    scene.add_bodies(Box((SIDE, SIDE, SIDE)), places[order], density=DENSITY, material=ROUGH, labels=labels[order])
    reach = (base + 1) * SIDE
    scene.camera = ((-0.75 * reach, -1.35 * reach, 0.6 * reach), (0.0, 0.0, 0.46 * reach))
    return scene
