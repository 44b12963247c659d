"""A cable of light links with a load of a thousand links' mass, beside a pile of boxes; not in the paper.

Sequential impulses carry a load up a cable by one link a sweep, and the lighter the links the less of it: the cable
stretches. The timestep is short because taut light links vibrate fast, and no solver changes that. Label 1 is the cable
with its load, label 0 the pile; they do not touch. See docs/solvers.md.
"""

from __future__ import annotations

import numpy as np

from ..errors import LapjointError
from ..scene import WORLD, Ball, Box, Capsule, Material, Plane, Scene, Sphere

BODY_COUNT = 121
LINK_SHARE = 1 / 6  # of all bodies
LINK_LENGTH = 0.2  # from joint to joint [m]
LINK_MASS = 0.1  # kg
MASS_RATIO = 1000.0  # of the load to a link
RADIUS = 0.03
GAP = 0.01  # between the rods of two links
LOAD_RADIUS = 0.25
START_ANGLE = 0.3  # how far to the side the cable starts [rad]
CLEARANCE = 0.5  # of the load over the ground [m]
BOX = 0.2  # side of a box of the pile [m]
BOX_MASS = 2.0  # kg
PILE, CABLE = 0, 1  # labels


def build(size: int | None = None, seed: int = 0) -> Scene:
    """The cable and its pile, or about `size` bodies. Boxes of the pile are turned at random by `seed`."""
    count = BODY_COUNT if size is None else size
    if count < 4:
        raise LapjointError(f"cable: size is {size}, expected at least 4: two links, a load and a box")
    link_count = max(2, round(count * LINK_SHARE))
    scene = Scene("cable", timestep=0.001, iterations=50, growth_depth=1, search_depth=2)
    scene.add_static(Plane(), material=Material(friction=0.6))
    _add_pile(scene, count - link_count - 1, seed)
    height = _add_cable(scene, link_count)
    scene.camera = (1.0, -1.5 * height, 0.8 * height), (0.6, 0.0, 0.45 * height)
    return scene


def _add_cable(scene: Scene, link_count: int) -> float:
    length = LINK_LENGTH * link_count
    top = np.array([0.0, 0.0, length + 2 * LOAD_RADIUS + CLEARANCE])
    along = np.array([-np.sin(START_ANGLE), 0.0, -np.cos(START_ANGLE)])
    joints = top + np.outer(np.arange(link_count + 1) * LINK_LENGTH, along)
    turn = np.array([np.cos(START_ANGLE / 2), 0.0, np.sin(START_ANGLE / 2), 0.0])
    links = scene.add_bodies(
        Capsule(RADIUS, LINK_LENGTH - GAP - 2 * RADIUS),
        (joints[1:] + joints[:-1]) / 2,
        np.tile(turn, (link_count, 1)),
        mass=LINK_MASS,
        labels=CABLE,
    )
    load = scene.add_body(
        Sphere(LOAD_RADIUS), joints[-1] + (LOAD_RADIUS + GAP) * along, mass=MASS_RATIO * LINK_MASS, label=CABLE
    )
    scene.add_joints(Ball(), links, [WORLD, *links[:-1]], joints[:-1])
    scene.add_joint(Ball(), load, links[-1], joints[-1])
    scene.add_static(Box((0.4, 0.4, 0.1)), top + [0.0, 0.0, 0.05 + 2 * RADIUS])
    return float(top[2])


def _add_pile(scene: Scene, box_count: int, seed: int) -> None:
    """Layers of boxes with air between them, well to the side of where the load swings."""
    side = max(1, round((box_count / 2) ** (1 / 3)))
    number = np.arange(box_count)
    place = np.stack([number % side, number // side % side, number // side**2], axis=1)
    rng = np.random.default_rng(seed)
    position = place * [1.3 * BOX, 1.3 * BOX, 1.4 * BOX] + rng.uniform(-0.1, 0.1, (box_count, 3)) * BOX
    position += [2.2, -0.65 * BOX * (side - 1), 0.75 * BOX]
    angle = rng.uniform(-0.4, 0.4, box_count)
    turn = np.stack([np.cos(angle / 2), 0 * angle, 0 * angle, np.sin(angle / 2)], axis=1)
    scene.add_bodies(Box((BOX, BOX, BOX)), position, turn, mass=BOX_MASS, labels=PILE, material=Material(friction=0.6))
