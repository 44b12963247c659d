"""How bodies look: a mesh for each model of a shape and each colour, whose accessors are shared by all colours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....scene import Plane
from ....scene.shapes import StaticShape
from ...draw.surface import Kind
from ...draw.tessellate import Model, model_of
from .document import Document


class Looks:
    """Meshes of shapes in colours; planes are as large as `extent` [m]."""

    def __init__(self, document: Document, extent: float) -> None:
        self._document, self._extent = document, extent
        self._models: dict[StaticShape, Model] = {}
        self._geometry: dict[Any, dict[str, Any]] = {}

    def add(self, parent: int, shape: StaticShape, color_name: str, color: NDArray[Any]) -> tuple[int, NDArray[Any]]:
        """A node below another that shows a shape, and the scale that it has."""
        key, scale, both_sides = self._look(shape)
        material = self._document.material(color_name, color, both_sides=both_sides)
        mesh = self._document.once(
            "meshes", (key, material), lambda: {"primitives": [{**self._geometry[key], "material": material}]}
        )
        node = self._document.add_node(parent, scale=scale)
        self._document.nodes[node]["mesh"] = mesh
        return node, scale

    def hide(self, node: int) -> None:
        """Let a node begin with no size."""
        self._document.nodes[node]["scale"] = [0.0, 0.0, 0.0]

    def _look(self, shape: StaticShape) -> tuple[Any, NDArray[Any], bool]:
        if isinstance(shape, Plane):
            if "plane" not in self._geometry:
                corners = np.array([[-0.5, -0.5, 0], [0.5, -0.5, 0], [0.5, 0.5, 0], [-0.5, 0.5, 0]])
                up = np.tile([0.0, 0.0, 1.0], (4, 1))
                self._geometry["plane"] = self._document.geometry(corners, np.array([[0, 1, 2], [0, 2, 3]]), up)
            return "plane", np.array([self._extent, self._extent, 1.0]), True
        if shape not in self._models:
            self._models[shape] = model_of(shape)
        model = self._models[shape]
        level = model.levels[len(model.levels) // 2]  # never a sphere's disc
        if model.key not in self._geometry:
            used, triangles = np.unique(level.triangles, return_inverse=True)
            triangles = triangles.reshape(level.triangles.shape)
            self._geometry[model.key] = self._document.geometry(level.vertices[used], triangles, level.normals[used])
        return model.key, np.array(model.scale, float), level.kind is Kind.OPEN
