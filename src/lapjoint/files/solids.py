"""Shapes that files have in other frames than scenes: hulls of points, and what stands along an axis."""

from __future__ import annotations

import numpy as np

from ..arrays import rotation
from ..errors import LapjointError
from ..scene import Capsule, Cone, ConvexHull, Cylinder
from ..scene.shapes import StaticShape, hull_faces
from .model import Array

HERE = np.zeros(3)
OVER = np.array([0.0, 1.0, 0.0, 0.0])
"""Half a turn about x."""
Placed = tuple[StaticShape, Array, Array]
"""A shape, where its centre is and how it is turned in the collider's frame."""


def hull_of(points: Array) -> Placed:
    """The hull of points, without those that are no corners of it."""
    hull = ConvexHull(points)
    corners = ConvexHull(hull_faces(hull.points)[0])
    return corners, hull.centre + corners.centre, rotation.IDENTITY


def standing(kind: str, bottom: float, top: float, length: float, turn: Array) -> Placed:
    """A capsule or a cylinder by the radii of its ends, or a cone, if one of them is zero; `turn` is from z to the axis
    along which it stands."""
    if bottom == top:
        return (Capsule if kind == "capsule" else Cylinder)(bottom, length), HERE, turn
    if kind == "capsule" or min(bottom, top) != 0:
        raise LapjointError(f"a {kind} of two radii, {bottom:g} and {top:g}, expected one")
    if bottom == 0:
        turn = rotation.multiply(turn, OVER)
    # Its frame is in the middle of its height, its centre of mass a quarter above its base.
    return Cone(max(bottom, top), length), rotation.rotate(turn, (0.0, 0.0, -length / 4)), turn
