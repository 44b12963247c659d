"""Shapes and surfaces of MJCF geoms. Those of one mesh are made once."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..scene import Box, Capsule, Cylinder, Ellipsoid, HeightField, Material, Plane, Sphere
from ..scene.shapes import StaticShape
from .model import Array
from .notes import Notes
from .solids import HERE, hull_of

PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(8)
Placed = tuple[StaticShape, Array]
"""A shape, and where its centre is in the geom's frame."""
SOLREF, SOLIMP = (0.02, 1.0), (0.9, 0.95, 0.001, 0.5, 2.0)
"""What MuJoCo has for contacts by default."""


class Shapes:
    """Of a compiled model."""

    def __init__(self, model: Any, notes: Notes) -> None:
        self._m, self._notes = model, notes
        self._hulls: dict[int, Placed] = {}

    def shape(self, geom: int, where: str, moves: bool) -> Placed:
        """What cannot be a shape is refused."""
        m = self._m
        kind, size = int(m.geom_type[geom]), m.geom_size[geom]
        if kind == SPHERE:
            return Sphere(float(size[0])), HERE
        if kind in (CAPSULE, CYLINDER):
            return (Capsule if kind == CAPSULE else Cylinder)(float(size[0]), 2 * float(size[1])), HERE
        if kind == BOX:
            return Box(tuple((2 * size).tolist())), HERE
        if kind == ELLIPSOID:
            return Ellipsoid(tuple(size.tolist())), HERE
        if kind == PLANE:
            if moves:
                raise self._notes.refuse(where, "a plane on a body that moves, expected one that is static")
            if size[0] or size[1]:
                self._notes.approximate(where, "a plane is infinite")
            return Plane(), HERE
        if kind == MESH:
            return self._hull(int(m.geom_dataid[geom]))
        if kind == HFIELD:
            return self._height_field(int(m.geom_dataid[geom]), where, moves), HERE
        raise self._notes.refuse(where, "a shape that lapjoint does not have (sdf)")

    def _hull(self, mesh: int) -> Placed:
        """MuJoCo collides with the hulls of meshes."""
        if mesh not in self._hulls:
            first, count = self._m.mesh_vertadr[mesh], self._m.mesh_vertnum[mesh]
            self._hulls[mesh] = hull_of(self._m.mesh_vert[first : first + count].astype(float))[:2]
        return self._hulls[mesh]

    def _height_field(self, number: int, where: str, moves: bool) -> StaticShape:
        m = self._m
        if moves:
            raise self._notes.refuse(where, "a height field on a body that moves, expected one that is static")
        rows, columns, first = int(m.hfield_nrow[number]), int(m.hfield_ncol[number]), int(m.hfield_adr[number])
        x, y, top, _ = m.hfield_size[number]
        heights = np.array(m.hfield_data[first : first + rows * columns], float).reshape(rows, columns) * top
        return HeightField(heights, (2 * x / (columns - 1), 2 * y / (rows - 1)))

    def material(self, geom: int, where: str) -> Material:
        """Two surfaces have the larger friction, as in MuJoCo; contacts of one dimension have none."""
        m, notes = self._m, self._notes
        (slide, spin, roll), dimensions = m.geom_friction[geom].tolist(), int(m.geom_condim[geom])
        if dimensions >= 4 and spin:
            notes.leave_out(where, "friction against spinning")
        if m.geom_priority[geom]:
            notes.approximate(where, "it has a priority: of two surfaces the larger friction counts")
        if m.geom_margin[geom] > m.geom_gap[geom]:
            notes.approximate(where, "it has a margin: contacts begin where surfaces touch")
        if (m.geom_solref[geom] != SOLREF).any() or (m.geom_solimp[geom] != SOLIMP).any():
            notes.approximate(where, "contacts are rigid, whatever solref and solimp say")
        return Material(
            friction=slide if dimensions > 1 else 0.0,
            rolling_friction=roll if dimensions >= 6 else 0.0,
            friction_combine="maximum",
        )
