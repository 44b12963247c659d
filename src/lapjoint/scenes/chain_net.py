"""Interlocking rings, hung by the rim.

European four-in-one mail, 49 rows of 76 rings: every ring passes through two rings of the row before and two of the
row after. Rings of even rows lean to one side, rings of odd rows to the other, and every other row is set off by half a
ring. A seam of static rings continues the pattern around the net and holds it, so that each of the 3,724 rings is
linked to exactly four others. Nothing touches at the start; the net falls into its slack and hangs.

A ring has 1,151 vertices. It is cut into 10 convex pieces at 10 cross-sections of 24 points, which neighbours share. In
between, seven half sections of 13 points round the outside of each piece; its inside is straight from cut to cut, so
that all points are corners of a convex hull: 10 x (24 + 7 x 13) = 1,150. The last is the end of the wire, a
point on the outside of the first piece.

Labels are strips of the net: its columns, from left to right.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import rotation
from ..errors import LapjointError
from ..scene import Compound, ConvexHull, Material, Part, Scene
from ..scene.linking import linking_numbers

Array = NDArray[np.float64]
Pairs = NDArray[np.int64]

ROWS, COLUMNS = 49, 76
RADIUS = 0.1  # [m] of a ring, to the middle of its wire
WIRE = 0.015  # [m] radius of the wire
ROW_PITCH = 0.135  # [m] between rows
PITCH = 0.135  # [m] between rings of a row
LEAN = np.radians(25.0)  # about the direction across the rows
PIECES = 10
EMPTY = -(10**9)  # in a table of cells: no ring
METAL = Material(friction=0.2, linear_damping=0.1, angular_damping=0.1)


def build(size: int | None = None, seed: int = 0) -> Scene:
    """The scene, with about `size` rings (3,724). Nothing in it is random: `seed` is not used."""
    rows, columns = (ROWS, COLUMNS) if size is None else rows_and_columns(size)
    scene = Scene("chain-net", growth_depth=3, search_depth=4)
    numbers, _ = _pattern(rows, columns)
    cells = np.argsort(-numbers, axis=None)[: np.sum(numbers != EMPTY)]  # bodies backwards, then static rings
    bodies, seam = cells[: rows * columns][::-1], cells[rows * columns :]
    places, turns = _places(bodies, rows, columns)
    labels = np.arange(rows * columns) // rows
    scene.add_bodies(ring(), places, turns, density=7800.0, material=METAL, labels=labels)
    scene.add_statics(ring(), *_places(seam, rows, columns), material=METAL)
    width = max(columns * PITCH, 1.5 * rows * ROW_PITCH)
    scene.camera = ((-0.34 * width, -0.88 * width, 0.42 * width), (0.0, 0.02 * width, -0.02 * width))
    return scene


def rows_and_columns(size: int) -> tuple[int, int]:
    """Rows and columns of a net of about `size` rings with the paper's proportions."""
    if size < 4:
        raise LapjointError(f"chain-net: size is {size}, expected at least 4 rings: two rows of two")
    rows = max(2, round(np.sqrt(size * ROWS / COLUMNS)))
    return rows, max(2, round(size / rows))


@cache
def ring() -> Compound:
    """The shape that all links share: a ring about the z axis, in convex pieces."""
    step = 2 * np.pi / PIECES
    around = np.arange(24) * np.pi / 12
    outside = np.linspace(-np.pi / 2, np.pi / 2, 13)
    parts = []
    for piece in range(PIECES):
        cuts = [_wire(step * cut, around) for cut in (piece, (piece + 1) % PIECES)]
        rounds = [_wire(step * (piece + k / 8), outside) for k in range(1, 8)]
        wire_end = [_wire(step / 16, np.radians([7.5]))] if piece == 0 else []
        hull = ConvexHull(np.concatenate(cuts + rounds + wire_end))
        parts.append(Part(hull, tuple(hull.centre)))
    return Compound(tuple(parts))


def _wire(along: float, around: Array) -> Array:
    """Points on the wire's surface, `along` the ring and `around` the wire (0 is outside) [rad]."""
    out = RADIUS + WIRE * np.cos(around)
    return np.stack([out * np.cos(along), out * np.sin(along), WIRE * np.sin(around)], axis=1)


def linked_pairs(scene: Scene) -> Pairs:
    """Which rings pass through each other, (n, 2): a body and another, or -1 - s for the static ring s."""
    columns = int(scene.bodies.label[-1]) + 1
    numbers, links = _pattern(scene.body_count // columns, columns)
    pairs = numbers.ravel()[links]
    return np.sort(pairs, axis=1)[:, ::-1]


def center_lines(scene: Scene, states: ArrayLike | None = None, points: int = 24) -> Array:
    """The middle of each body's wire as a polygon, (body_count, points, 3), in the given states or the first ones."""
    given = scene.states if states is None else np.asarray(states, float)
    return _lines(given[:, :3], given[:, 3:7], points)


def ring_linking_numbers(scene: Scene, states: ArrayLike | None = None) -> NDArray[np.int64]:
    """The linking number of each of the linked pairs: 1 or -1 while they hold, 0 once one has slipped out."""
    bodies, seam = center_lines(scene, states), _lines(scene.statics.position, scene.statics.quaternion, 24)
    lines = np.concatenate([bodies, seam[::-1]])  # so that a negative number counts from the end
    pairs = linked_pairs(scene)
    return linking_numbers(lines[pairs[:, 0]], lines[pairs[:, 1]])


def _lines(places: Array, turns: Array, points: int) -> Array:
    angles = np.arange(points) * 2 * np.pi / points
    circle = RADIUS * np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1) - ring().centre
    return places[:, None] + rotation.rotate(turns[:, None], circle)


def _pattern(rows: int, columns: int) -> tuple[Pairs, Pairs]:
    """The pattern with a border of one cell: who is in each cell, and which cells are linked (flat cell indices).

    Bodies are numbered column by column. A border cell holds a static ring s, as -1 - s, where it is linked to a body;
    where it is not it is empty, and holds EMPTY.
    """
    inside = np.zeros((rows + 2, columns + 2), bool)
    inside[1:-1, 1:-1] = True
    row, column = np.indices((rows + 1, columns + 2)).reshape(2, -1)
    links = []
    for side in (0, 1):  # a ring is linked to two rings of the next row: every other row is half a pitch to the right
        other = column + side - row % 2
        cells = np.stack([row * (columns + 2) + column, (row + 1) * (columns + 2) + other], axis=1)
        cells = cells[(other >= 0) & (other < columns + 2)]
        links.append(cells[inside.ravel()[cells].any(axis=1)])
    linked = np.concatenate(links)
    numbers = np.full((rows + 2, columns + 2), EMPTY)
    numbers[1:-1, 1:-1] = np.arange(rows * columns).reshape(columns, rows).T
    seam = np.setdiff1d(linked, np.flatnonzero(inside))
    numbers.ravel()[seam] = -1 - np.arange(len(seam))
    return numbers, linked


def _places(cells: Pairs, rows: int, columns: int) -> tuple[Array, Array]:
    """Positions and quaternions of the rings in these cells of the pattern, the net's middle at the origin."""
    row, column = np.divmod(cells, columns + 2)
    odd = row % 2 == 0  # the border is row zero
    x = (column - (columns + 1) / 2 + 0.5 * odd - 0.25) * PITCH
    y = (row - (rows + 1) / 2) * ROW_PITCH
    turns = rotation.from_axis_angle([0.0, 1.0, 0.0], np.where(odd, -LEAN, LEAN))
    centres = np.stack([x, y, np.zeros(len(cells))], axis=1)
    return centres + rotation.rotate(turns, ring().centre), turns
