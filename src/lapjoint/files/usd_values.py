"""Values of USD as arrays: vectors, quaternions, and where prims are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import rotation
from .usd_words import SPACE

Array = NDArray[np.float64]
DEGREE = np.pi / 180
AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
UNLIMITED = 1e30
"""Limits and forces beyond are written as the largest float32, or as infinite."""


def vector(value: Any) -> Array:
    return np.array([value[0], value[1], value[2]], float)


def quaternions(values: Iterable[Any]) -> Array:
    found = np.array([(one.GetReal(), *one.GetImaginary()) for one in values], float)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def poses(matrices: Sequence[Any]) -> tuple[Array, Array, dict[int, str]]:
    """Positions and quaternions of frames, whose axes may be scaled, and by number what is wrong with those that are
    none."""
    rows = np.array([np.array(matrix, float) for matrix in matrices]).reshape(-1, 4, 4)
    axes, wrong = rows[:, :3, :3], np.zeros(len(rows), int)
    with np.errstate(invalid="ignore", divide="ignore"):
        lengths = np.linalg.norm(axes, axis=2)
        turns = axes / lengths[:, :, None]
        skew = np.abs(turns @ turns.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2)) > 1e-4
        wrong[skew] = 4
        wrong[np.linalg.det(np.nan_to_num(turns)) < 0] = 3
        wrong[~(lengths > 0).all(axis=1)] = 2
        wrong[~np.isfinite(rows).all(axis=(1, 2))] = 1
    turns[wrong > 0] = np.eye(3)
    found = {int(i): WRONG[wrong[i]] for i in np.flatnonzero(wrong)}
    return rows[:, 3, :3], rotation.from_matrix(turns.transpose(0, 2, 1)), found


WRONG = (
    "",
    "its place is not finite",
    "its scale is zero, expected a positive one",
    "its scale is negative: it is mirrored, expected a positive one",
    "it is turned within a frame that is stretched, expected even scales",
)


def given(prim: Any, name: str, missing: Any = None) -> Any:
    """An attribute's value, or another where the prim has none."""
    attribute = prim.GetAttribute(name)
    value = attribute.Get() if attribute else None
    return missing if value is None else value


def own_values(prim: Any) -> dict[str, Any]:
    """What an export has written of a prim in words of our own, without their namespace."""
    found = prim.GetAuthoredPropertiesInNamespace(SPACE.rstrip(":"))
    return {one.GetName().removeprefix(SPACE): one.Get() for one in found if hasattr(one, "Get")}
