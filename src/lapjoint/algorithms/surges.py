"""The account of energy, readable: which islands gain more in a step than forces explain. What joints and contacts may
give back is in its native twin alone (native/bullet/surges.cpp)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..arrays.rotation import to_matrix
from ..scene import Scene

Array = NDArray[np.float64]
SHARE, MOVING_SHARE, STANDARD_GRAVITY = 0.1, 0.1, 9.80665


def kinetic_energies(scene: Scene, states: Array) -> Array:
    """Of each body [J]."""
    turns = to_matrix(states[:, 3:7])
    own = np.einsum("bji,bj->bi", turns, states[:, 10:13])
    spin = np.einsum("bi,bij,bj->b", own, scene.bodies.inertia, own)
    return np.asarray(0.5 * (scene.bodies.mass * np.square(states[:, 7:10]).sum(axis=1) + spin))


def rises(
    scene: Scene, before: Array, after: Array, touching: Iterable[tuple[int, int]]
) -> dict[int, tuple[float, float]]:
    """Of each island, by its lowest body: what it has gained beyond the work of gravity, and its limit [J]. `touching`
    are pairs that contacts or joints connect."""
    island = np.arange(scene.body_count)
    for a, b in touching:
        island[island == max(island[a], island[b])] = min(island[a], island[b])
    mass, gravity = scene.bodies.mass, np.asarray(scene.gravity)
    work = mass * ((after[:, :3] - before[:, :3]) @ gravity)
    kinetic = kinetic_energies(scene, after)
    gain = kinetic - kinetic_energies(scene, before) - np.maximum(work, 0)
    pull = float(np.linalg.norm(gravity)) or STANDARD_GRAVITY
    limit = SHARE * pull * mass * 2 * scene.bounding_radii() + MOVING_SHARE * kinetic
    return {
        int(one): (float(gain[island == one].sum()), float(limit[island == one].sum())) for one in np.unique(island)
    }
