"""Values of USD as arrays: vectors, quaternions, and where prims are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import rotation

Array = NDArray[np.float64]
DEGREE = np.pi / 180
AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
UNLIMITED = 1e30
"""Limits and forces beyond are written as the largest float32, or as infinite."""


def vector(value: Any) -> Array:
    return np.array([value[0], value[1], value[2]], float)


def quaternion(value: Any) -> Array:
    found = np.array([value.GetReal(), *value.GetImaginary()], float)
    return found / np.linalg.norm(found)


def pose(matrix: Any) -> tuple[Array, Array]:
    """Position and quaternion of a frame; its axes may be scaled. A ValueError says what else it is."""
    rows = np.array(matrix, float)
    axes, lengths = rows[:3, :3], np.linalg.norm(rows[:3, :3], axis=1)
    if not np.isfinite(rows).all():
        raise ValueError("its place is not finite")
    if not (lengths > 0).all():
        raise ValueError("its scale is zero, expected a positive one")
    turn = axes / lengths[:, None]
    if np.linalg.det(turn) < 0:
        raise ValueError("its scale is negative: it is mirrored, expected a positive one")
    if np.abs(turn @ turn.T - np.eye(3)).max() > 1e-4:
        raise ValueError("it is turned within a frame that is stretched, expected even scales")
    return rows[3, :3], rotation.from_matrix(turn.T)


def given(prim: Any, name: str, missing: Any = None) -> Any:
    """An attribute's value, or another where the prim has none."""
    attribute = prim.GetAttribute(name)
    value = attribute.Get() if attribute else None
    return missing if value is None else value
