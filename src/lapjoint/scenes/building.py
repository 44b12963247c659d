"""Loose stones and two cannon balls.

Six storeys of five by five bays. A storey has 36 columns on the corners of the bays, 25 floor slabs that lie on them, a
slab per bay, and outer walls of 340 bricks, 17 between two columns in five courses (3, 4, 3, 4, 3, with half bricks at
the ends of the courses of four). That is 401 bodies; two cannon balls make 6 x 401 + 2. Nothing but contact holds them.

Labels are quarters of storeys, from the ground up and around; the cannon balls have the last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import LapjointError
from ..scene import Box, Material, Plane, Scene, Sphere

Array = NDArray[np.floating[Any]]

STOREYS, BAYS = 6, 5
BAY = 1.6  # [m] between the middles of two columns
COLUMN = 0.36  # [m] side of a column
SLAB = 0.16  # [m] thickness of a floor
COURSE = 0.3  # [m] height of a brick
WALL = 0.2  # [m] thickness of a wall
HEIGHT = 5 * COURSE  # [m] of a column, and of a wall
JOINT = 0.005  # [m] gap between neighbours beside each other; above each other they touch
STONE = Material(friction=0.5, linear_damping=0.1, angular_damping=0.2)
IRON = Material(friction=0.5, rolling_friction=0.05)
BALL_RADIUS = 0.14  # [m] for each bay of the building, three to ten of them
BALL_SPEED = 22.0  # [m/s]
HIT_TIME = 0.4  # [s] from the launch of a ball until it reaches the wall


def build(size: int | None = None, seed: int = 0) -> Scene:
    """The scene, with about `size` bodies (2,408). Nothing in it is random: `seed` is not used."""
    storeys, bays = (STOREYS, BAYS) if size is None else storeys_and_bays(size)
    scene = Scene("building", growth_depth=0, search_depth=4)
    scene.add_static(Plane(), material=STONE)
    for storey in range(storeys):
        _add_storey(scene, storey, bays)
    _launch(scene, storeys, bays)
    width, top = BAY * bays, storeys * (HEIGHT + SLAB)
    reach = max(width, top)
    scene.camera = ((-1.3 * reach, -2.15 * reach, 0.97 * reach), (-0.15 * reach, -0.1 * reach, 0.3 * top))
    return scene


def storey_body_count(bays: int) -> int:
    """Bodies of one storey: slabs, columns and bricks."""
    return bays**2 + (bays + 1) ** 2 + 17 * 4 * bays


def storeys_and_bays(size: int) -> tuple[int, int]:
    """Storeys and bays of the building with about `size` bodies that is nearest to six by five in its proportions."""
    smallest = storey_body_count(1) + 2
    if size < smallest:
        raise LapjointError(f"building: size is {size}, expected at least {smallest}: one storey of one bay, two balls")
    choices = []
    for bays in range(1, 1 + int(np.sqrt(size))):
        storeys = max(1, round((size - 2) / storey_body_count(bays)))
        off_size = abs(np.log((storeys * storey_body_count(bays) + 2) / size))
        off_shape = abs(np.log(storeys / bays * BAYS / STOREYS))
        choices.append((off_size + 0.3 * off_shape, storeys, bays))
    return min(choices)[1:]


def _add_storey(scene: Scene, storey: int, bays: int) -> None:
    """Bodies of one storey, quarter by quarter."""
    kinds = list(_kinds(bays, storey * (HEIGHT + SLAB)))
    boxes = [Box(size) for size, places in kinds for _ in places]
    places = np.concatenate([places for _, places in kinds])
    labels = _labels(places, storey)
    order = np.argsort(labels, kind="stable")
    scene.add_bodies([boxes[i] for i in order], places[order], density=2400.0, material=STONE, labels=labels[order])


def _kinds(bays: int, bottom: float) -> Iterator[tuple[tuple[float, float, float], Array]]:
    """Size and places of the bodies of one storey that stands at height `bottom`, kind by kind."""
    lines = (np.arange(bays + 1) - bays / 2) * BAY
    yield (COLUMN, COLUMN, HEIGHT), _grid(lines, lines, [bottom + HEIGHT / 2])
    yield from _walls(lines, bottom)
    # Outer slabs reach over the columns and walls under them.
    edge = lines[-1] + COLUMN / 2
    cuts = np.concatenate([[-edge], lines[1:-1], [edge]])
    middles, widths = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts) - JOINT
    kinds = np.unique(widths.round(9))
    for x in kinds:
        for y in kinds:
            xs, ys = middles[np.isclose(widths, x)], middles[np.isclose(widths, y)]
            yield (float(x), float(y), SLAB), _grid(xs, ys, [bottom + HEIGHT + SLAB / 2])


def _walls(lines: Array, bottom: float) -> Iterator[tuple[tuple[float, float, float], Array]]:
    """The bricks of the four outer walls: full and half, along x and along y."""
    clear = BAY - COLUMN
    bays = (lines[1:] + lines[:-1]) / 2 - clear / 2  # where the clear width of each bay begins
    thirds, courses = np.arange(3), np.arange(5)
    heights = bottom + (courses + 0.5) * COURSE
    # Courses of three are full bricks; a course of four has a half brick, two full ones and a half brick.
    full = [(1 / 6 + thirds / 3, heights[::2]), (1 / 3 + thirds[:2] / 3, heights[1::2])]
    half = [(np.array([1 / 12, 11 / 12]), heights[1::2])]
    for length, rows in ((clear / 3 - JOINT, full), (clear / 6 - JOINT, half)):
        for along, z in rows:
            run = (bays[:, None] + along * clear).ravel()
            yield (length, WALL, COURSE), _grid(run, lines[[0, -1]], z)
            yield (WALL, length, COURSE), _grid(lines[[0, -1]], run, z)


def _grid(x: Array, y: Array, z: Array | list[float]) -> Array:
    return np.stack(np.meshgrid(x, y, z, indexing="ij"), axis=-1).reshape(-1, 3)


def _labels(places: Array, storey: int) -> NDArray[np.int64]:
    """The quarters of a storey, numbered around the middle; every other storey the other way round."""
    east, north = places[:, 0] > 0, places[:, 1] > 0
    quarter = np.where(north, np.where(east, 2, 3), np.where(east, 1, 0))
    return 4 * storey + (quarter if storey % 2 == 0 else 3 - quarter)


def _launch(scene: Scene, storeys: int, bays: int) -> None:
    """Two cannon balls: one from the front at the lowest floor, one from the left at the next."""
    radius = BALL_RADIUS * min(max(bays, 3), 10)
    face = BAY * bays / 2 + radius
    floors = HEIGHT + SLAB / 2 + np.minimum([0, 1], storeys - 1) * (HEIGHT + SLAB)
    aside = BAY / 2 * (bays // 2)
    targets = np.array([[-aside, -face, floors[0]], [-face, aside, floors[1]]])
    velocities = np.array([[0.0, BALL_SPEED, 0.0], [BALL_SPEED, 0.0, 0.0]])
    velocities[:, 2] = -0.5 * scene.gravity[2] * HIT_TIME  # back at the same height when it hits
    scene.add_bodies(
        Sphere(radius),
        targets - velocities * [HIT_TIME, HIT_TIME, 0.0],
        density=7800.0,
        material=IRON,
        linear_velocities=velocities,
        labels=4 * storeys,
        names=["cannon ball 1", "cannon ball 2"],
    )
