"""The cell that the bridges are made of, and how cells hang in a line.

One cell is a metre of hanging footbridge. Two stringers run along it, one on each side; planks lie across them;
runners, if any, lie along on top of the planks; a rail stands on the outer side of each stringer.

    bodies of a cell = 2 stringers + planks + runners + 2 rails
    joints in a cell = planks x (2 stringers + runners), one at each crossing, + 2, one for each rail
    joints of a link = 4: two ball joints from each stringer to the next

The two ball joints between stringers are pins: together they turn about one line across the bridge. So cells fold
only up and down, rails stay upright, and a cut between two cells touches four bodies (Fig. 6 of the paper). Nothing
but the stringers reaches from cell to cell, and they are pulled, never pushed: the bridge hangs like a chain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import rotation
from ..scene import Ball, Box, Compound, Fixed, Material, Part, Scene
from ..scene.shapes import MovingShape

Array = NDArray[np.float64]
Ids = NDArray[np.int64]
Place = tuple[float, float, float]

LENGTH = 1.0  # of a cell, from pins to pins [m]
STRINGER = (0.97, 0.2, 0.12)
PLANK = (0.15, 1.54, 0.05)
RUNNER = (0.92, 0.3, 0.04)
STRINGER_OFFSET = 0.7  # from the middle of the bridge to the middle of a stringer
PIN_OFFSET = 0.08  # from the middle of a stringer to its two pins
RUNNER_OFFSET = 0.2
RAIL_OFFSET = STRINGER_OFFSET + STRINGER[1] / 2 + 0.03
PLANK_BASE = STRINGER[2] / 2  # height of the planks' lower side above the pins
RUNNER_BASE = PLANK_BASE + PLANK[2]
RAIL = Compound(
    (
        Part(Box((0.06, 0.05, 1.1)), (-0.3, 0.0, 0.5)),
        Part(Box((0.06, 0.05, 1.1)), (0.3, 0.0, 0.5)),
        Part(Box((0.82, 0.05, 0.06)), (0.0, 0.0, 1.08)),
        Part(Box((0.54, 0.05, 0.06)), (0.0, 0.0, 0.6)),
    )
)
SPRUCE, OAK = 450.0, 700.0  # kg/m^3
TIMBER = Material(friction=0.6, linear_damping=0.02, angular_damping=0.02)
LEFT_RIGHT = (1.0, -1.0)  # signs of y


@dataclass(frozen=True)
class Cell:
    """How many planks and runners a cell has."""

    planks: int
    runners: int

    @property
    def body_count(self) -> int:
        return 2 + self.planks + self.runners + 2

    def bodies(self) -> list[tuple[MovingShape, float, Place]]:
        """Shape, density and place in the cell: left and right stringer, planks, runners, left and right rail."""
        x, y, z = RAIL.centre
        return [
            *((Box(STRINGER), SPRUCE, (0.0, side * STRINGER_OFFSET, 0.0)) for side in LEFT_RIGHT),
            *((Box(PLANK), OAK, (along, 0.0, PLANK_BASE + PLANK[2] / 2)) for along in self._plank_places()),
            *(
                (Box(RUNNER), SPRUCE, (0.0, side * RUNNER_OFFSET, RUNNER_BASE + RUNNER[2] / 2))
                for side in LEFT_RIGHT[: self.runners]
            ),
            *((RAIL, SPRUCE, (x, side * RAIL_OFFSET + y, z)) for side in LEFT_RIGHT),
        ]

    def crossings(self) -> list[tuple[int, int, Place, bool]]:
        """Upper and lower body, where they meet, and whether the upper one is screwed on there."""
        planks = list(enumerate(self._plank_places(), start=2))
        on_stringers = [
            (plank, line, (along, side * STRINGER_OFFSET, PLANK_BASE), plank % 2 == line)
            for line, side in enumerate(LEFT_RIGHT)
            for plank, along in planks
        ]
        on_planks = [
            (2 + self.planks + line, plank, (along, side * RUNNER_OFFSET, RUNNER_BASE), plank == line + 3)
            for line, side in enumerate(LEFT_RIGHT[: self.runners])
            for plank, along in planks
        ]
        return on_stringers + on_planks

    def _plank_places(self) -> list[float]:
        return [LENGTH * ((plank + 0.5) / self.planks - 0.5) for plank in range(self.planks)]


def add_cells(scene: Scene, cell: Cell, middles: Array, slopes: Array, labels: ArrayLike, heading: float = 0.0) -> Ids:
    """Add a cell at each middle between pins. Returns the bodies' numbers, a row per cell, in the order of
    `Cell.bodies`. The heading turns cells about the vertical, the slopes then tilt them up [rad]."""
    count, turns = len(middles), facing(heading, slopes)

    def in_world(places: list[Place]) -> Array:
        return (middles[:, None] + rotation.rotate(turns[:, None], np.array([places]))).reshape(-1, 3)

    shapes, densities, places = (list(column) for column in zip(*cell.bodies(), strict=True))
    ids = scene.add_bodies(
        shapes * count,
        in_world(places),
        np.repeat(turns, cell.body_count, axis=0),
        density=np.tile(densities, count),
        labels=np.repeat(np.broadcast_to(labels, count), cell.body_count),
        material=TIMBER,
    )
    table = np.array(ids, np.int64).reshape(count, cell.body_count)

    # Every plank and every runner is screwed on at one crossing, or it could roll, and pinned at the others, where it
    # also bears: those pairs touch.
    for screwed in (True, False):
        upper, lower, spots, _ = zip(*(row for row in cell.crossings() if row[3] == screwed), strict=True)
        joint = Fixed() if screwed else Ball()
        pair = table[:, upper].ravel(), table[:, lower].ravel()
        scene.add_joints(joint, *pair, in_world(list(spots)), collide=not screwed)
    bolts = in_world([(0.0, side * (STRINGER_OFFSET + STRINGER[1] / 2), 0.0) for side in LEFT_RIGHT])
    scene.add_joints(Fixed(), table[:, -2:].ravel(), table[:, :2].ravel(), bolts)
    return table


def add_pins(scene: Scene, stringers: Ids, to: ArrayLike, places: Array, heading: float = 0.0) -> None:
    """Link pairs of stringers (n, 2) to other pairs or to the WORLD, at n places in the middle of the bridge."""
    across = rotation.rotate(facing(heading, np.zeros(1))[0], [0.0, 1.0, 0.0])
    offsets = [side * STRINGER_OFFSET + pin * PIN_OFFSET for side in LEFT_RIGHT for pin in LEFT_RIGHT]
    anchors = places[:, None] + np.array(offsets)[:, None] * across
    bodies_a, bodies_b = (np.repeat(np.broadcast_to(ids, stringers.shape), 2) for ids in (stringers, to))
    scene.add_joints(Ball(), bodies_a, bodies_b, anchors.reshape(-1, 3))


def add_landing(scene: Scene, end: Array, heading: float, board_count: int, label: int) -> range:
    """A static abutment behind the last pins, and boards that lie loose on it and are let go just above it."""
    depth, gap = max(1.0, 0.3 * board_count), 0.06
    height = end[2] + PLANK_BASE
    turn = facing(heading, np.zeros(1))[0]
    middle = end + rotation.rotate(turn, [-gap - depth / 2, 0.0, 0.0])
    scene.add_static(Box((depth, 2.2, height)), (middle[0], middle[1], height / 2), turn, material=TIMBER)
    back = -gap - 0.02 - (np.arange(board_count) + 0.5) * (PLANK[0] + 0.02)
    up = np.full(board_count, PLANK_BASE + PLANK[2] / 2 + 0.005)
    places = end + rotation.rotate(turn, np.stack([back, 0 * back, up], axis=1))
    return scene.add_bodies(Box(PLANK), places, turn, density=OAK, labels=label, material=TIMBER)


def hanging_line(lengths: ArrayLike, swing: float) -> tuple[Array, Array]:
    """Pins (n + 1, 3) and slopes (n) of n links that hang along x above the ground, their middle at x = 0.

    At the ends the slope is 20 degrees, less for a short line, so that the rails of neighbouring cells keep apart.
    With `swing` 0 the line is an arc, close to its rest shape; more hollows it, so that it swings when let go.
    """
    lengths = np.asarray(lengths, float)
    ends = np.concatenate([[0.0], np.cumsum(lengths)])
    steepest = np.radians(min(20.0, 1.5 * ends[-1]))
    place = (ends[1:] + ends[:-1]) / ends[-1] - 1  # of each link's middle, from -1 to 1
    slopes = steepest * place * (1 + swing * (1 - place**2))
    steps = lengths[:, None] * np.stack([np.cos(slopes), 0 * slopes, np.sin(slopes)], axis=1)
    pins = np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])
    pins[:, 0] -= pins[-1, 0] / 2
    pins[:, 2] += 2.0 + 0.04 * ends[-1] - pins[:, 2].min()
    return pins, slopes


def depths(cell_count: int) -> dict[str, int]:
    """Growth depth and search depth for a bridge, or an arm, of that many cells.

    The paper's growth depth is 6; a short bridge has less, or its overlaps would leave no worker any bodies of its own.
    An overlap that grew by d edges both ways is 2 d + 2 wide: as far must a body look for those of the other worker.
    """
    growth_depth = min(6, cell_count // 4)
    return {"growth_depth": growth_depth, "search_depth": max(4, 2 * growth_depth + 2)}


def facing(heading: float, slopes: Array) -> Array:
    """Quaternions that turn x up by slopes and then about the vertical to a heading [rad]."""
    yaw = rotation.from_axis_angle([0.0, 0.0, 1.0], heading)
    return rotation.multiply(yaw, rotation.from_axis_angle([0.0, -1.0, 0.0], slopes))
