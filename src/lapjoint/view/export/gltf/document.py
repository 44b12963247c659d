"""A glTF document while it is put together: nodes, meshes, materials, and what the physics extensions have."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....arrays import rotation
from ....files.gltf_words import OWN, RIGID, SHAPES
from ....scene.shapes import StaticShape
from .buffer import INDICES, VERTICES, Buffer

Node = dict[str, Any]
DOWN = rotation.from_axis_angle((1.0, 0.0, 0.0), -np.pi / 2)
"""From z up to y up."""


class Document:
    """Nodes are added below others; what is equal is written once."""

    def __init__(self) -> None:
        self.buffer = Buffer()
        self.nodes: list[Node] = []
        self._listed: dict[str, list[dict[str, Any]]] = {
            name: []
            for name in ("meshes", "materials", "physicsMaterials", "collisionFilters", "physicsJoints", "shapes")
        }
        self._known: dict[tuple[str, Hashable], int] = {}
        self.animations: list[dict[str, Any]] = []
        self.collision_nodes: dict[StaticShape, int] = {}
        """Nodes in no scene, by the shape that their meshes are the collider of."""
        self.own: dict[str, Any] = {}
        """Of the scene, in words of our own."""
        self.root = self.add_node(None, "lapjoint", quaternion=DOWN)

    def add_node(
        self,
        parent: int | None,
        name: str | None = None,
        *,
        position: ArrayLike | None = None,
        quaternion: ArrayLike | None = None,
        scale: ArrayLike | None = None,
    ) -> int:
        """The number of a new node; without a parent it is in no scene, but for the first."""
        node: Node = {} if name is None else {"name": name}
        if position is not None and np.any(position):
            node["translation"] = np.asarray(position, float).tolist()
        if quaternion is not None:
            w, x, y, z = np.asarray(quaternion, float).tolist()
            if (x, y, z) != (0.0, 0.0, 0.0):
                node["rotation"] = [x, y, z, w]
        if scale is not None and np.any(np.asarray(scale) != 1):
            node["scale"] = np.asarray(scale, float).tolist()
        self.nodes.append(node)
        if parent is not None:
            self.nodes[parent].setdefault("children", []).append(len(self.nodes) - 1)
        return len(self.nodes) - 1

    def rigid(self, node: int) -> dict[str, Any]:
        """What a node has of the extension for rigid bodies, to be filled."""
        entry: dict[str, Any] = self.nodes[node].setdefault("extensions", {}).setdefault(RIGID, {})
        return entry

    def note(self, node: int, **own: Any) -> None:
        """Words of our own on a node."""
        self.nodes[node].setdefault("extras", {}).setdefault(OWN, {}).update(own)

    def once(self, kind: str, key: Hashable, make: Any) -> int:
        """The number of an entry of a list, which is made where there is none of this key yet."""
        if (kind, key) not in self._known:
            entry = make()
            self._known[kind, key] = len(self._listed[kind])
            self._listed[kind].append(entry)
        return self._known[kind, key]

    def material(self, name: str, color: NDArray[Any], *, both_sides: bool = False) -> int:
        """A material of one colour, linear."""
        surface = {
            "baseColorFactor": [*np.round(color, 6).tolist(), 1.0],
            "metallicFactor": 0.0,
            "roughnessFactor": 0.7,
        }
        entry: dict[str, Any] = {"name": name, "pbrMetallicRoughness": surface}
        if both_sides:
            entry["doubleSided"] = True
        return self.once("materials", (name, both_sides), lambda: entry)

    def geometry(
        self, vertices: NDArray[Any], triangles: NDArray[Any], normals: NDArray[Any] | None = None
    ) -> dict[str, Any]:
        """A primitive of a mesh, without a material."""
        attributes = {"POSITION": self.buffer.add(vertices, VERTICES, bounds=True)}
        if normals is not None:
            attributes["NORMAL"] = self.buffer.add(normals, VERTICES)
        return {"attributes": attributes, "indices": self.buffer.add(triangles.reshape(-1), INDICES)}

    def to_dict(self, name: str) -> dict[str, Any]:
        """The document's JSON, without its buffer."""
        listed = self._listed
        rigid = {key: listed[key] for key in ("physicsMaterials", "collisionFilters", "physicsJoints") if listed[key]}
        scene: dict[str, Any] = {"name": name, "nodes": [self.root]}
        if self.own:
            scene["extras"] = {OWN: self.own}
        whole: dict[str, Any] = {
            "asset": {"version": "2.0", "generator": "lapjoint"},
            "extensionsUsed": [RIGID, SHAPES],
            "scene": 0,
            "scenes": [scene],
            "nodes": self.nodes,
            "meshes": listed["meshes"],
            "materials": listed["materials"],
            "animations": self.animations,
            "accessors": self.buffer.accessors,
            "bufferViews": self.buffer.views,
            "extensions": {RIGID: rigid, SHAPES: {"shapes": listed["shapes"]} if listed["shapes"] else {}},
        }
        whole["extensions"] = {key: value for key, value in whole["extensions"].items() if value}
        whole["extensionsUsed"] = list(whole["extensions"])
        return {key: value for key, value in whole.items() if value or key == "scene"}  # no list may be empty
