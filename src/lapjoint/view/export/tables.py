"""Parts of a scene as exporters write them: principal axes, distinct materials, drives of axes, meshes of shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import rotation
from ...scene import ConvexHull, HeightField, Material, TriangleMesh
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


def mesh_of(shape: ConvexHull | TriangleMesh | HeightField) -> tuple[Array, NDArray[np.int32]]:
    """Vertices and triangles of a shape that is a mesh to other programs."""
    if isinstance(shape, ConvexHull):
        return shape.points, _hull_triangles(shape.points).astype(np.int32)
    return shape.vertices, shape.triangles


def _hull_triangles(points: Array) -> NDArray[np.int64]:
    """The faces of a hull between its points, of which some may be no corners: all are kept, in their order."""
    corners, faces = hull_faces(points)
    first = {tuple(point): number for number, point in reversed(list(enumerate(points.tolist())))}
    return np.array([first[tuple(corner)] for corner in corners.tolist()])[faces]


@dataclass(frozen=True)
class AxisDrive:
    """What acts on an axis, as the one drive that a standard has for it."""

    position: float
    velocity: float
    stiffness: float
    damping: float
    max_force: float


STIFF = 1e3
"""A motor is a drive that does all it can where its velocity is off by a thousandth [m/s or rad/s]."""


def axis_drive(row: dict[str, Any], axis: int) -> AxisDrive | None:
    """The drive, motor or spring of an axis of a joint, in this order; what is not a drive in the scene is also written
    in words of our own."""

    def values(kind: str, *names: str) -> list[float]:
        return [float(row[f"{kind}_{name}"][axis]) for name in names]

    if row["drive_max_force"][axis] > 0:
        return AxisDrive(*values("drive", "position", "velocity", "stiffness", "damping", "max_force"))
    if row["motor_max_force"][axis] > 0:
        velocity, most = values("motor", "velocity", "max_force")
        return AxisDrive(0.0, velocity, 0.0, STIFF * most, most)
    if row["spring_stiffness"][axis] > 0:
        stiffness, damping, rest = values("spring", "stiffness", "damping", "rest")
        return AxisDrive(rest, 0.0, stiffness, damping, np.inf)
    return None


def driven_axes(row: dict[str, Any]) -> list[int]:
    """Axes of a joint that have a drive besides a spring."""
    return np.flatnonzero((row["drive_max_force"] > 0) & (row["spring_stiffness"] > 0)).tolist()
