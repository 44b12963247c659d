"""Sections: faces as beams' cross-sections are described, by area, second moments and how far they reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays.checks import as_rows, positive_rows, unit_vectors
from ..scene.bonds import DIRECTIONS

Array = NDArray[np.float64]

LEAST_MOMENT = 1e-3
"""Share of a square's of the same area: what rounding leaves of a thinner sliver is not sure."""


class Section(NamedTuple):
    """A face that two pieces share; its normal is from the first to the second."""

    middle: Array
    normal: Array
    area: float
    across: Array
    """(2, 3) principal axes y and z, with the normal a right-handed frame."""
    moments: Array
    """(2,) second moments about these."""
    reach: Array
    """(16,) how far it reaches from its middle, in directions from y by z."""
    span: float
    """How far apart what it is between is: how thick a layer over it is."""


def section(middle: Array, normal: Array, across: Array, polygons: Sequence[Array], span: float) -> Section:
    """The face of flat polygons, each (n, 2) corners about the face's middle along two directions of its plane."""
    area, second = 0.0, np.zeros((2, 2))
    for corners in polygons:
        (x, y), (x2, y2) = corners.T, np.roll(corners, -1, axis=0).T
        crossed = x * y2 - x2 * y
        area += crossed.sum() / 2
        xx, yy = ((a * a + a * b + b * b) @ crossed / 12 for a, b in ((x, x2), (y, y2)))
        xy = (2 * x * y + x * y2 + x2 * y + 2 * x2 * y2) @ crossed / 24
        second += np.array([[xx, xy], [xy, yy]])
    y_axis = np.linalg.eigh(second)[1][:, 0] @ across
    z_axis = np.cross(normal, y_axis)
    own = np.stack([across @ y_axis, across @ z_axis])
    about_y, about_z = own[1] @ second @ own[1], own[0] @ second @ own[0]
    moments = np.maximum([about_y, about_z], LEAST_MOMENT * area**2 / 12)
    turns = 2 * np.pi / DIRECTIONS * np.arange(DIRECTIONS)
    places = np.concatenate(polygons) @ own.T
    reach = (places @ np.stack([np.cos(turns), np.sin(turns)])).max(axis=0)
    return Section(middle, normal, float(area), np.stack([y_axis, z_axis]), moments, reach, span)


@dataclass(frozen=True, eq=False)
class Sections:
    """Faces, one row each."""

    anchors: Array
    """(m, 3) their middles."""
    normals: Array
    """(m, 3) from the first of what they join to the second."""
    areas: Array
    """(m,) m^2"""
    across: Array
    """(m, 2, 3) principal axes y and z, with the normal a right-handed frame."""
    moments: Array
    """(m, 2) m^4: second moments about these axes."""
    reach: Array
    """(m, 16) m: how far they reach from their middles, in directions from y by z."""
    spans: Array
    """(m,) m: how far apart the seeds are that they are half way between."""

    @staticmethod
    def of(each: Sequence[Section]) -> Sections:
        """Sections as columns."""
        shapes = ((3,), (3,), (), (2, 3), (2,), (DIRECTIONS,), ())
        columns = [[one[k] for one in each] for k in range(len(shapes))]
        return Sections(*(np.array(rows, float).reshape(-1, *of) for rows, of in zip(columns, shapes, strict=True)))

    def joined(self, more: Sections) -> Sections:
        """These, and more after them."""
        pairs = ((getattr(self, one.name), getattr(more, one.name)) for one in fields(Sections))
        return Sections(*(np.concatenate(pair) for pair in pairs))


def rectangles(
    middles: ArrayLike, normals: ArrayLike, sides: ArrayLike, sizes: ArrayLike, spans: ArrayLike
) -> Sections:
    """Faces that are rectangles: with normals, one of their sides' directions, their sizes along that and across, and
    how far apart the middles of what they join are."""
    places = np.asarray(middles, float).reshape(-1, 3)
    count = len(places)

    def title(row: int) -> str:
        return f"rectangles: face {row}"

    normal, side = unit_vectors("normal", normals, count, title), unit_vectors("side", sides, count, title)
    size = as_rows("size", sizes, count, (2,), title)
    span = positive_rows("span", spans, count, title)
    found = []
    for k in range(count):
        corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * size[k] / 2
        across = np.stack([side[k], np.cross(normal[k], side[k])])
        found.append(section(places[k], normal[k], across, [corners], float(span[k])))
    return Sections.of(found)
