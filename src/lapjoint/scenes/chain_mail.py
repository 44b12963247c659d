"""A sheet of chain mail that falls over a field of posts, held together by contacts alone; not in the paper.

European four-in-one mail, as the chain net: every ring passes through two rings of the row before and two of the row
after. But a ring is made of ten capsules, and nothing holds the sheet: it drops onto posts with round heads, drapes
over them and sags in between. What a ring bears does not grow with the sheet. With 5,000 rings:

    rings: 71 rows x 70 columns = 4970

Labels are 64 blocks of the sheet, numbered so that consecutive ones make compact blocks.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ..arrays import rotation
from ..errors import LapjointError
from ..scene import Capsule, Compound, Part, Plane, Scene
from .blocks import block_labels
from .chain_net import LEAN, METAL, PITCH, RADIUS, ROW_PITCH, WIRE

SIZE = 5_000
PIECES = 10
DROP = 0.1  # [m] from the rings to the posts
POST_RADIUS = 0.4  # [m]
POST_HEIGHT = 1.6  # [m] with its head
POSTS_APART = 2.7  # [m]: 20 rings


def build(size: int | None = None, seed: int = 0) -> Scene:
    """The sheet, of about `size` rings. Nothing in it is random: `seed` is not used."""
    rows, columns = rows_and_columns(SIZE if size is None else size)
    scene = Scene("chain-mail", growth_depth=3, search_depth=4)
    column, row = (index.ravel() for index in np.indices((columns, rows)))
    odd = row % 2 == 1  # set off by half a ring, and leaning to the other side
    x = (column - (columns - 1) / 2 + 0.5 * odd - 0.25) * PITCH
    y = (row - (rows - 1) / 2) * ROW_PITCH
    places = np.stack([x, y, np.full(len(x), POST_HEIGHT + DROP + RADIUS)], axis=1)
    turns = rotation.from_axis_angle([0.0, 1.0, 0.0], np.where(odd, -LEAN, LEAN))
    labels = block_labels(np.stack([column + 0.5, row + 0.5], axis=1), (columns, rows))
    order = np.argsort(labels, kind="stable")
    scene.add_bodies(ring(), places[order], turns[order], density=7800.0, material=METAL, labels=labels[order])

    scene.add_static(Plane(), material=METAL)
    along = [np.arange(max(1, side // POSTS_APART)) for side in (columns * PITCH, rows * ROW_PITCH)]
    grid = np.stack(np.meshgrid(*(line - (len(line) - 1) / 2 for line in along), indexing="ij"), axis=-1)
    posts = np.concatenate(
        [POSTS_APART * grid.reshape(-1, 2), np.full((grid[..., 0].size, 1), POST_HEIGHT / 2)], axis=1
    )
    scene.add_statics(Capsule(POST_RADIUS, POST_HEIGHT - 2 * POST_RADIUS), posts, material=METAL)
    width = max(columns * PITCH, rows * ROW_PITCH) + 1.0
    scene.camera = ((-0.55 * width, -1.15 * width, 0.75 * width), (0.0, 0.0, 0.5))
    return scene


def rows_and_columns(size: int) -> tuple[int, int]:
    """Rows and columns of a square sheet of about `size` rings."""
    if size < 4:
        raise LapjointError(f"chain-mail: size is {size}, expected at least 4 rings: two rows of two")
    rows = max(2, round(np.sqrt(size)))
    return rows, max(2, round(size / rows))


@cache
def ring() -> Compound:
    """The shape that all rings share: a ring about the z axis, of capsules from corner to corner."""
    step = 2 * np.pi / PIECES
    angles = step * (np.arange(PIECES) + 0.5)
    length = 2 * RADIUS * np.sin(step / 2)
    parts = []
    for angle in angles:
        middle = RADIUS * np.cos(step / 2) * np.array([np.cos(angle), np.sin(angle), 0.0])
        # A capsule lies along its z axis: turned about the direction outwards, it lies along the ring.
        turn = rotation.from_axis_angle([np.cos(angle), np.sin(angle), 0.0], np.pi / 2)
        parts.append(Part(Capsule(WIRE, length), tuple(middle), tuple(turn)))
    return Compound(tuple(parts))
