"""Boxes that go round on four belts.

Belts do not move, their surfaces do: each carries boxes along a side of a square, up to the next belt, which carries
them on. Boxes of several sizes are dropped on them. Not in the paper.
"""

from __future__ import annotations

import numpy as np

from ..errors import LapjointError
from ..scene import Box, Material, Scene

BOXES = 120
SPEED = 1.0  # of a belt [m/s]
WIDTH, WALL = 1.2, 0.1  # of a belt, and of the walls beside it [m]
SPACING, ABREAST = 0.62, 0.54  # of boxes along a belt and across it [m]
RUBBER = Material(friction=0.7)
SMOOTH = Material(friction=0.05)


def build(size: int | None = None, seed: int = 0) -> Scene:
    """The scene, with `size` boxes (120), two abreast; the more, the longer the belts. `seed` decides their sizes."""
    count = BOXES if size is None else size
    if count < 8:
        raise LapjointError(f"belt: size is {size}, expected at least 8 boxes")
    per_side = -(-count // 8)
    length = max(per_side * SPACING, 2 * WIDTH)
    scene = Scene("belt", growth_depth=0, search_depth=4)
    places = []
    for side in range(4):
        angle = side * np.pi / 2
        turn = (np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2))
        along, out = np.array([np.cos(angle), np.sin(angle), 0.0]), np.array([np.sin(angle), -np.cos(angle), 0.0])
        # It begins behind the last belt's end, and ends where the next one begins.
        middle = 0.5 * length * out - 0.5 * WIDTH * along
        low = [0.0, 0.0, 0.1]
        velocity = (SPEED, 0.0, 0.0)
        scene.add_static(Box((length, WIDTH, 0.2)), middle - low, turn, material=RUBBER, surface_velocity=velocity)
        for away in (-1, 1):
            wall = Box((length + away * (WIDTH + 2 * WALL), WALL, 0.4))
            scene.add_static(wall, 0.5 * (length + away * (WIDTH + WALL)) * out + low, turn, material=SMOOTH)
        for k in range(per_side):
            ahead = middle + ((k + 0.5) / per_side - 0.5) * length * along
            places += [ahead + across * ABREAST / 2 * out + [0.0, 0.0, 0.3] for across in (-1, 1)]
    sizes = np.random.default_rng(seed).uniform(0.26, 0.44, (len(places), 3)).round(2)
    boxes = [Box(tuple(one.tolist())) for one in sizes[:count]]
    scene.add_bodies(boxes, np.array(places)[:count], density=400.0, material=RUBBER)
    scene.camera = ((-0.35 * length, -1.25 * length, 1.15 * length), (0.0, -0.08 * length, 0.0))
    return scene
