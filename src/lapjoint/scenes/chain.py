"""A chain hung at both ends (Fig. 3).

A link is a rod, LINK_LENGTH long from joint to joint. Ball joints hold it to its neighbours, and the two ends to the
world. The chain starts in its rest shape, the catenary of rigid links, but swung to the side; air drag stops it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from ..arrays import rotation
from ..errors import LapjointError
from ..scene import WORLD, Ball, Box, Capsule, Material, Scene

Array = NDArray[np.float64]

LINK_COUNT = 40
LINK_LENGTH = 0.25  # from joint to joint [m]
SPAN_RATIO = 0.8  # distance between the ends over the length of the chain
HEIGHT_RATIO = 0.4  # height of the ends over the length of the chain
START_ANGLE = 0.35  # how far to the side the chain starts [rad]
RADIUS = 0.04
GAP = 0.01  # between the rods of two links
STEEL = 7800.0  # kg/m^3
AIR = Material(linear_damping=0.6, angular_damping=0.6)


def build(size: int | None = None, seed: int = 0) -> Scene:
    """The chain, or one of `size` links. Nothing in it is random."""
    count = LINK_COUNT if size is None else size
    if count < 2:
        raise LapjointError(f"chain: size is {size}, expected at least 2 links")
    scene = Scene("chain", growth_depth=0, search_depth=4)
    joints = rest_joints(count, START_ANGLE)
    links = scene.add_bodies(
        Capsule(RADIUS, LINK_LENGTH - GAP - 2 * RADIUS),
        (joints[1:] + joints[:-1]) / 2,
        rotation.between([0.0, 0.0, 1.0], np.diff(joints, axis=0)),
        density=STEEL,
        labels=np.arange(count),
        material=AIR,
    )
    scene.add_joints(Ball(), links, [WORLD, *links[:-1]], joints[:-1])
    scene.add_joint(Ball(), links[-1], WORLD, joints[-1])

    width, height = span(count), float(joints[0, 2])
    scene.add_static(Box((width + 1.0, 1.0, 0.2)), (0.0, 0.0, height + 0.1 + 2 * RADIUS))
    scene.camera = (0.2 * width, -0.85 * width - 0.5, 0.7 * height), (0.0, 0.0, 0.65 * height)
    return scene


def span(link_count: int = LINK_COUNT) -> float:
    """Distance between the two ends [m]."""
    return SPAN_RATIO * LINK_LENGTH * link_count


def rest_joints(link_count: int = LINK_COUNT, angle: float = 0.0) -> Array:
    """Where the joints are when the chain rests, (link_count + 1, 3), or is swung by an angle [rad].

    The tension's horizontal part is the same everywhere and its vertical part grows by one weight per link, so the
    tangent of the slope grows evenly from link to link. How fast, the span decides.
    """
    place = (np.arange(link_count) + 0.5) / link_count * 2 - 1  # of each link's middle, from -1 to 1

    def width(steepness: float) -> float:
        return float(LINK_LENGTH * np.cos(np.arctan(steepness * place)).sum())

    steepness = brentq(lambda s: width(s) - span(link_count), 0.0, 10.0)
    slopes = np.arctan(steepness * place)
    ends = np.zeros((link_count + 1, 2))
    ends[1:] = LINK_LENGTH * np.cumsum(np.stack([np.cos(slopes), np.sin(slopes)], axis=1), axis=0)
    along, up = ends.T
    height = HEIGHT_RATIO * LINK_LENGTH * link_count
    return np.stack([along - along[-1] / 2, up * np.sin(angle), height + up * np.cos(angle)], axis=1)
