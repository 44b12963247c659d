"""A field's function for benchmarks/fields.py, in a module that workers can import."""

from __future__ import annotations

import numpy as np


def swirl(positions: np.ndarray, velocities: np.ndarray, time: float) -> np.ndarray:
    """About the z axis, and slowing down."""
    forces = -0.5 * velocities
    forces[:, 0] -= positions[:, 1]
    forces[:, 1] += positions[:, 0]
    return forces
