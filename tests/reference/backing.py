"""By how much heavier than it is a contact sees a body that others are welded to. The native twin, and why contacts see
it so, are in native/substeps/backing.h.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SPARE, MOST_BEHIND = 1.1, 1e3
LEAST_BEHIND = 4.0
"""Where a cluster is at most so much heavier than its touched bodies, contacts are as they are anywhere."""


def inertia_about_origin(mass: float, position: Array, inertia: Array) -> Array:
    """The 6 x 6 inertia of a body, for velocities of what is at the world's origin and rotations about it."""
    x, y, z = position
    crossed = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    about = inertia + mass * (position @ position * np.eye(3) - np.outer(position, position))
    return np.block([[mass * np.eye(3), -mass * crossed], [mass * crossed, about]])


def backing_factor(whole: Array, touched: Array) -> float:
    """One over the largest share that touched bodies have in how heavy their cluster is, in any of its motions, with a
    little to spare: were they taken to be heavier, contacts would overshoot in that motion. Both are sums of 6 x 6
    inertias."""
    if whole[0, 0] < LEAST_BEHIND * touched[0, 0]:
        return 1.0
    lower = np.linalg.cholesky(whole)
    share = np.linalg.solve(lower, np.linalg.solve(lower, touched).T)
    return float(np.clip(1 / (SPARE * np.linalg.eigvalsh(share).max()), 1.0, MOST_BEHIND))
