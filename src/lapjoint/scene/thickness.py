"""How thin a shape is: a body that moves farther than that in a step could pass through others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .scene import Scene
from .shapes import Box, Capsule, Compound, ConvexHull, Cylinder, Plane, Sphere, StaticShape
from .solids import Cone, Ellipsoid

FAST_SHARE = 0.5
"""Share of its thickness that a body moves in a step from which on it is fast."""


def thickness(shape: StaticShape) -> float:
    """Half of a shape's least extent [m]; infinite for a plane, which has an inside, and 0 for a mesh, which has none.
    Of a compound, that of its thinnest part."""
    if isinstance(shape, Sphere | Capsule):
        return shape.radius
    if isinstance(shape, Box):
        return min(shape.size) / 2
    if isinstance(shape, Cylinder | Cone):
        return min(shape.radius, shape.length / 2)
    if isinstance(shape, Ellipsoid):
        return min(shape.radii)
    if isinstance(shape, ConvexHull):
        centred = shape.points - shape.points.mean(axis=0)
        along = centred @ np.linalg.svd(centred, full_matrices=False)[2].T
        return float(np.ptp(along, axis=0).min()) / 2
    if isinstance(shape, Compound):
        return min(thickness(part.shape) for part in shape.parts)
    return np.inf if isinstance(shape, Plane) else 0.0


def body_thickness(scene: Scene) -> NDArray[np.float64]:
    """The thickness of every body [m]."""
    by_shape = np.zeros(len(scene.shapes))
    for shape_id in np.unique(scene.bodies.shape_id):
        by_shape[shape_id] = thickness(scene.shapes[shape_id])
    return np.asarray(by_shape[scene.bodies.shape_id])
