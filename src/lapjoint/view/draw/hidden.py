"""Hidden triangles: the sides along which the convex parts of a compound touch, and whatever is inside a part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .surface import Surface, face_normals, merge

Array = NDArray[np.float64]


def without_hidden(parts: Sequence[Surface]) -> Surface:
    """One surface of several convex ones, without the triangles that lie inside, or flat against, another part."""
    from scipy.spatial import ConvexHull as Qhull

    centres = np.array([part.vertices.mean(axis=0) for part in parts])
    radii = np.array([np.linalg.norm(part.vertices - c, axis=1).max() for part, c in zip(parts, centres, strict=True)])
    sides = [Qhull(part.vertices).equations for part in parts]
    seen = []
    for one, part in enumerate(parts):
        hidden = np.zeros(len(part.triangles), bool)
        probes = _probes(part, 1e-4 * radii[one])
        near = np.linalg.norm(centres - centres[one], axis=1) < radii + radii[one] * 1.001
        for other in np.flatnonzero(near):
            if other != one:
                heights = probes @ sides[other][:, :3].T + sides[other][:, 3]
                hidden |= (heights <= 0).all(axis=(1, 2))
        seen.append(Surface(part.vertices, part.normals, part.triangles[~hidden]))
    return merge(seen)


def _probes(part: Surface, lift: float) -> Array:
    """Three points per triangle, near its corners and just outside it."""
    corners = part.vertices[part.triangles]
    inner = corners + 0.02 * (corners.mean(axis=1, keepdims=True) - corners)
    return np.asarray(inner + lift * face_normals(part.vertices, part.triangles)[:, None])
