"""Pieces: what a shape is cut into, and the faces that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..scene import Compound, ConvexHull
from .sections import Section, Sections

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

LEAST_FACE = 1e-4
"""Share of a piece's surface, about: a smaller common face holds nothing."""


@dataclass(frozen=True)
class Pieces:
    """Pieces of a shape, in its frame, and the faces that they share."""

    shapes: tuple[ConvexHull | Compound, ...]
    positions: Array
    """(n, 3) their centres of mass."""
    volumes: Array
    """(n,) m^3; of a mesh, of what was cut out of it, of which a shape may have a little more."""
    seeds: Ids
    """(n,) whose cells they are, ascending. Of a mesh, a cell may be several pieces, or none."""
    bonds: Ids
    """(m, 2) pieces that share a face, the lower number first, ascending."""
    faces: Sections
    """These faces, with normals from the first piece to the second."""

    def __len__(self) -> int:
        return len(self.shapes)

    @property
    def anchors(self) -> Array:
        """(m, 3) middles of the faces."""
        return self.faces.anchors

    @property
    def normals(self) -> Array:
        """(m, 3) from the first piece to the second."""
        return self.faces.normals

    @property
    def areas(self) -> Array:
        """(m,) m^2 of the faces."""
        return self.faces.areas


class Piece(NamedTuple):
    """One of them. It is where the centre of its shape is."""

    shape: ConvexHull | Compound
    volume: float
    seed: int


def collect(pieces: Sequence[Piece], faces: Mapping[tuple[int, int], Section]) -> Pieces:
    """Pieces, and of the faces between them, by their numbers, those that hold something."""
    volumes = np.array([piece.volume for piece in pieces])
    sizes = np.cbrt(volumes)
    kept = sorted(pair for pair, face in faces.items() if face.area > LEAST_FACE * min(sizes[list(pair)]) ** 2)
    return Pieces(
        tuple(piece.shape for piece in pieces),
        np.array([piece.shape.centre for piece in pieces]).reshape(-1, 3),
        volumes,
        np.array([piece.seed for piece in pieces], np.int32),
        np.array(kept, np.int32).reshape(-1, 2),
        Sections.of([faces[pair] for pair in kept]),
    )


def directions_in(normal: Array) -> Array:
    """Two directions in the plane with this normal, (2, 3)."""
    return np.asarray(np.linalg.svd(normal[None])[2][1:])


def polygon_moments(corners: Array) -> tuple[float, Array]:
    """Area of a flat polygon, negative if it is clockwise, and six times that times its middle. Corners are (n, 2), in
    order."""
    (x, y), (x2, y2) = corners.T, np.roll(corners, -1, axis=0).T
    crossed = x * y2 - x2 * y
    return float(crossed.sum() / 2), np.array([((x + x2) * crossed).sum(), ((y + y2) * crossed).sum()])
