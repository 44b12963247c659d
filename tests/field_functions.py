"""Functions of fields that tests share: workers in other processes import them."""

from __future__ import annotations

import numpy as np

STIFFNESS = 40.0


def spring(positions: np.ndarray, velocities: np.ndarray, time: float) -> np.ndarray:
    """To the origin."""
    return -STIFFNESS * positions


def push_at_times(positions: np.ndarray, velocities: np.ndarray, time: float) -> np.ndarray:
    """Forces and torques that follow the time."""
    forces = np.zeros((len(positions), 6))
    forces[:, 0] = np.sin(50 * time)
    forces[:, 5] = 0.01
    return forces


def too_few(positions: np.ndarray, velocities: np.ndarray, time: float) -> np.ndarray:
    return np.zeros((len(positions) + 1, 3))


def not_finite(positions: np.ndarray, velocities: np.ndarray, time: float) -> np.ndarray:
    return np.full((len(positions), 3), np.nan)
