"""A wall in mortar that a ball wrecks.

Courses of bricks, every second one shifted by half a brick, on a foundation that is the world. Mortar is bonds
over all common faces, and breaks. The ball hangs by a boom. Not in the paper.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from .. import fracture
from ..errors import LapjointError
from ..scene import WORLD, Ball, Box, Material, Plane, Scene, Sphere

Array = NDArray[np.float64]

COURSES, LENGTH = 16, 14
BRICK = np.array([0.5, 0.25, 0.25])  # [m]
STONE = Material(friction=0.6)
STRENGTH = 4.0e6  # of mortar [N/m^2]
RADIUS, BOOM, LIFT = 0.45, 6.0, 1.1  # of the ball; how it hangs [m], and how far it is drawn back [rad]


def build(size: int | None = None, seed: int = 0) -> Scene:
    """The scene, with about `size` bodies (233): bricks, and the ball. Nothing in it is random: `seed` is not used."""
    share = 1.0 if size is None else np.sqrt((size - 1) / (COURSES * (LENGTH + 0.5)))
    courses, length = max(2, round(COURSES * share)), max(2, round(LENGTH * share))
    if size is not None and size < 6:
        raise LapjointError(f"wrecking: size is {size}, expected at least 6: two courses of two bricks, and the ball")
    scene = Scene("wrecking", growth_depth=0, search_depth=4)
    scene.add_static(Plane(), material=STONE)
    places, sizes = _bricks(courses, length)
    bodies = scene.add_bodies([Box(tuple(one)) for one in sizes], places, density=1900.0, material=STONE)
    _add_mortar(scene, places, sizes)
    height = courses * BRICK[2]
    pivot = np.array([0.0, -RADIUS - BRICK[1] / 2, 0.55 * height + BOOM])
    place = pivot + BOOM * np.array([0.0, -np.sin(LIFT), -np.cos(LIFT)])
    ball = scene.add_body(Sphere(RADIUS), place, density=7800.0)
    scene.add_joint(Ball(), ball, WORLD, pivot)
    assert len(bodies) == ball
    reach = max(length * BRICK[0], height)
    scene.camera = ((-1.1 * reach, -1.15 * reach, 0.62 * reach), (0.0, 0.1 * reach, 0.33 * height))
    return scene


def _bricks(courses: int, length: int) -> tuple[Array, Array]:
    """Middles and sizes of the bricks; shifted courses have half bricks at their ends."""
    places, sizes = [], []
    for course in range(courses):
        edges = np.arange(length + 1.0) * BRICK[0]
        if course % 2:
            edges = np.concatenate([[0.0], edges[:-1] + BRICK[0] / 2, [edges[-1]]])
        edges -= edges[-1] / 2
        for left, right in itertools.pairwise(edges):
            places.append(((left + right) / 2, 0.0, (course + 0.5) * BRICK[2]))
            sizes.append((right - left, BRICK[1], BRICK[2]))
    return np.array(places), np.array(sizes)


def _add_mortar(scene: Scene, places: Array, sizes: Array) -> None:
    """Bonds over all faces that two bricks share, and between the lowest course and the ground."""
    low, high = places - sizes / 2, places + sizes / 2
    a, b, anchors, normals, sides, areas, spans = [], [], [], [], [], [], []

    def add(one: int, other: int, anchor: Array, across: Array, axis: int, span: float) -> None:
        a.append(one)
        b.append(other)
        anchors.append(anchor)
        normals.append(np.eye(3)[axis])
        sides.append(np.eye(3)[(axis + 1) % 3])
        areas.append((across[(axis + 1) % 3], across[(axis + 2) % 3]))
        spans.append(span)

    for one in range(len(places)):
        overlap = np.minimum(high[one], high[one + 1 :]) - np.maximum(low[one], low[one + 1 :])
        touching = (overlap > -1e-9).all(axis=1)
        for other in (np.flatnonzero(touching) + one + 1).tolist():
            across = overlap[other - one - 1]
            wide = across > 1e-6
            if wide.sum() == 2:  # a face, not an edge
                axis = int(np.argmin(wide))  # the other brick is the higher one, or further along
                anchor = (np.minimum(high[one], high[other]) + np.maximum(low[one], low[other])) / 2
                add(other, one, anchor, across, axis, (sizes[one] + sizes[other])[axis] / 2)
    for one in np.flatnonzero(low[:, 2] < 1e-9).tolist():
        add(one, WORLD, places[one] * (1.0, 1.0, 0.0), sizes[one], 2, sizes[one, 2])
    faces = fracture.rectangles(anchors, normals, sides, areas, spans)
    fracture.add_bonds(scene, a, b, faces, strength=STRENGTH)
