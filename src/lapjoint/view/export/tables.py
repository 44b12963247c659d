"""Parts of a scene as exporters write them: principal axes, distinct materials, and faces of hulls."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import rotation
from ...scene import Material
from ...scene.materials import COMBINE_RULES
from ...scene.shapes import hull_faces

Array = NDArray[np.float64]
NEARLY_DIAGONAL = 1e-12


def principal_axes(inertia: Array) -> tuple[Array, Array]:
    """Principal moments (n, 3) and the quaternions (n, 4) of the axes that they are about."""
    moments = np.diagonal(inertia, axis1=1, axis2=2).copy()
    turns = np.tile(rotation.IDENTITY, (len(inertia), 1))
    beside = np.abs(inertia - moments[:, :, None] * np.eye(3)).max(axis=(1, 2))
    skew = np.flatnonzero(beside > NEARLY_DIAGONAL * moments.sum(axis=1))
    if len(skew):
        moments[skew], axes = np.linalg.eigh(inertia[skew])
        axes[np.linalg.det(axes) < 0, :, 0] *= -1
        turns[skew] = rotation.from_matrix(axes)
    return moments, turns


def materials_of(table: Any) -> tuple[list[Material], NDArray[np.int64]]:
    """The distinct materials of bodies or static bodies, without damping, and whose each one's is."""
    names = ("friction", "restitution", "rolling_friction", "friction_combine", "restitution_combine")
    columns = np.stack([np.asarray(getattr(table, name), float) for name in names], axis=1)
    rows, which = np.unique(columns, axis=0, return_inverse=True)
    found = [
        Material(
            friction,
            restitution,
            rolling,
            friction_combine=COMBINE_RULES[int(rule)],
            restitution_combine=COMBINE_RULES[int(other)],
        )
        for friction, restitution, rolling, rule, other in rows.tolist()
    ]
    return found, which.reshape(-1)


def hull_triangles(points: Array) -> NDArray[np.int64]:
    """The faces of a hull between its points, of which some may be no corners: all are kept, in their order."""
    corners, faces = hull_faces(points)
    first = {tuple(point): number for number, point in reversed(list(enumerate(points.tolist())))}
    return np.array([first[tuple(corner)] for corner in corners.tolist()])[faces]
