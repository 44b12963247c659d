"""Shapes of glTF colliders: implicit ones, and meshes of nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import rotation
from ..errors import LapjointError
from ..scene import Box, ConvexHull, Ellipsoid, HeightField, Plane, Sphere, TriangleMesh
from .gltf_buffers import Buffers
from .gltf_entries import entry_of
from .gltf_words import OWN
from .notes import Notes
from .solids import HERE, Placed, hull_of, standing

Array = NDArray[np.float64]
ALONG_Y = rotation.between((0.0, 0.0, 1.0), (0.0, 1.0, 0.0))
"""Capsules, cylinders, cones and planes of glTF stand along y."""
DEEPEST = 100


class Shapes:
    """Shapes of colliders; those of one mesh and one scale are made once."""

    def __init__(self, implicit: dict[str, Any], root: dict[str, Any], buffers: Buffers, notes: Notes) -> None:
        self._implicit, self._root, self._buffers, self._notes = implicit, root, buffers, notes
        self._made: dict[tuple[Any, ...], Placed] = {}

    def shape(self, geometry: dict[str, Any], node: int, scale: Array, where: str, moves: bool) -> Placed:
        """The shape of a collider on a node. What cannot be one is refused."""
        source = (geometry.get("shape"), geometry.get("mesh"), geometry.get("node"))
        own_mesh = node if source == (None, None, None) else None
        key = (*source, own_mesh, bool(geometry.get("convexHull")), moves, *scale.tolist())
        if key not in self._made:
            try:
                if "shape" in geometry:
                    entry = entry_of(self._implicit, "shapes", geometry["shape"], where, self._notes)
                    self._made[key] = self._of_kind(entry, scale, where, moves)
                else:
                    self._made[key] = self._mesh(geometry, node, scale, where, moves)
            except LapjointError as error:
                if str(error).startswith(str(self._notes.path)):
                    raise
                raise self._notes.refuse(where, str(error)) from None
        return self._made[key]

    def _of_kind(self, entry: dict[str, Any], scale: Array, where: str, moves: bool) -> Placed:
        kind = entry["type"]
        own = entry.get(kind, {})
        x, y, z = scale.tolist()
        even = max(x, y, z) - min(x, y, z) <= 1e-6 * max(x, y, z)
        if kind == "box":
            return Box(tuple(scale * np.array(own.get("size", (1, 1, 1)), float))), HERE, rotation.IDENTITY
        if kind == "sphere":
            radius = float(own.get("radius", 0.5))
            shape = Sphere(x * radius) if even else Ellipsoid(tuple(scale * radius))
            return shape, HERE, rotation.IDENTITY
        if kind == "plane":
            if moves:
                raise LapjointError("a plane on a body that moves, expected one that is static")
            if own.get("sizeX") or own.get("sizeZ"):
                self._notes.approximate(where, "a plane is infinite")
            return Plane(), HERE, ALONG_Y
        if kind not in ("capsule", "cylinder"):
            raise LapjointError(f"a shape of the type {kind!r}, which lapjoint does not have")
        if not (even or (kind == "cylinder" and abs(x - z) <= 1e-6 * x)):
            raise LapjointError(f"a {kind} with uneven scales {scale.tolist()}, expected even ones")
        bottom, top = (x * float(own.get(f"radius{end}", 0.25)) for end in ("Bottom", "Top"))
        return standing(kind, bottom, top, y * float(own.get("height", 0.5)), ALONG_Y)

    def _mesh(self, geometry: dict[str, Any], node: int, scale: Array, where: str, moves: bool) -> Placed:
        source = geometry.get("node", node)
        own = entry_of(self._root, "nodes", source, where, self._notes).get("extras", {}).get(OWN, {})
        if "heightField" in own:
            field = own["heightField"]
            heights = np.array(field["heights"], float).reshape(-1, int(field["columns"]))
            return HeightField(heights, tuple(field["spacing"])), HERE, rotation.IDENTITY
        if "mesh" in geometry:
            points, triangles = self._buffers.mesh(geometry["mesh"], where)
        else:
            points, triangles = self._meshes_below(source, where, 0)
        if len(points) == 0:
            raise LapjointError("its collider has neither a shape nor a mesh")
        points = points * scale
        if not geometry.get("convexHull") and not moves:
            return TriangleMesh(points, triangles), HERE, rotation.IDENTITY
        if not geometry.get("convexHull"):
            self._notes.approximate(where, "a mesh that moves is its convex hull")
        if own.get("shape") == "ConvexHull":
            hull = ConvexHull(points)
            return hull, hull.centre, rotation.IDENTITY
        return hull_of(points)

    def _meshes_below(self, node: int, where: str, depth: int) -> tuple[Array, NDArray[np.int32]]:
        """The meshes of a node and of all below it, in the node's frame."""
        if depth > DEEPEST:
            raise LapjointError("its mesh is that of a node that is below itself")
        entry = entry_of(self._root, "nodes", node, where, self._notes)
        points, triangles = np.empty((0, 3)), np.empty((0, 3), np.int32)
        if "mesh" in entry:
            points, triangles = self._buffers.mesh(entry["mesh"], where)
        for child in entry.get("children", []):
            inner, corners = self._meshes_below(child, where, depth + 1)
            if len(inner):
                if any(name in self._root["nodes"][child] for name in ("matrix", "rotation", "translation", "scale")):
                    raise LapjointError(
                        f"its mesh has node {child} below it, which is placed elsewhere: expected one node"
                    )
                triangles = np.concatenate([triangles, corners + np.int32(len(points))])
                points = np.concatenate([points, inner])
        return points, triangles
