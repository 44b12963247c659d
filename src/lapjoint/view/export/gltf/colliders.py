"""Colliders of bodies: implicit shapes, or meshes, on nodes below the body's; materials and filters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ....arrays import rotation
from ....files.gltf_words import OWN
from ....scene import (
    Box,
    Capsule,
    Compound,
    Cone,
    ConvexHull,
    Cylinder,
    Ellipsoid,
    HeightField,
    Material,
    Plane,
    Sphere,
    TriangleMesh,
)
from ....scene.filters import ALL_GROUPS
from ....scene.shapes import StaticShape
from ..filters import DEFAULT, Filter, may_touch
from ..tables import mesh_of
from .document import Document

UPRIGHT = rotation.from_axis_angle((1.0, 0.0, 0.0), np.pi / 2)
"""Of the node of a shape that stands along y there, and along z here."""
COMBINE = ("average", "minimum", "maximum", "multiply")
"""Rules that the extension has."""


class Colliders:
    """`filters` are all pairs of a group and a mask in use."""

    def __init__(self, document: Document, filters: list[Filter]) -> None:
        self._document = document
        self._filters = filters

    def add(self, body: int, shape: StaticShape, material: Material, group: int, mask: int) -> None:
        """All colliders of a body's node."""
        if not isinstance(shape, Compound):
            self._add_one(body, shape, np.zeros(3), rotation.IDENTITY, material, (group, mask))
            return
        self._document.note(body, shape="Compound")
        for part in shape.parts:
            own = (group if part.group is None else part.group, mask if part.mask is None else part.mask)
            surface = material if part.material is None else part.material
            node = self._add_one(body, part.shape, part.position, part.quaternion, surface, own, apart=True)
            if part.relative_density != 1:
                self._document.note(node, relativeDensity=part.relative_density)

    def _add_one(
        self,
        body: int,
        shape: StaticShape,
        position: ArrayLike,
        quaternion: ArrayLike,
        material: Material,
        bits: Filter,
        apart: bool = False,
    ) -> int:
        document = self._document
        node = self._placed(body, shape, position, quaternion, apart)
        collider: dict[str, Any] = {"geometry": self._geometry(shape)}
        collider["physicsMaterial"] = document.once("physicsMaterials", material, lambda: _material(material))
        if self._filters != [DEFAULT]:
            collider["collisionFilter"] = document.once("collisionFilters", bits, lambda: self._filter(bits))
        document.rigid(node)["collider"] = collider
        return node

    def add_trigger(
        self, parent: int, shape: StaticShape, position: ArrayLike, quaternion: ArrayLike, mask: int
    ) -> int:
        """A sensor on a node below that of what it is on; the node."""
        node = self._placed(parent, shape, position, quaternion, apart=True)
        trigger: dict[str, Any] = {"geometry": self._geometry(shape)}
        if mask != ALL_GROUPS:
            bits = (ALL_GROUPS, mask)
            trigger["collisionFilter"] = self._document.once("collisionFilters", bits, lambda: self._filter(bits))
        self._document.rigid(node)["trigger"] = trigger
        return node

    def _placed(self, parent: int, shape: StaticShape, position: ArrayLike, quaternion: ArrayLike, apart: bool) -> int:
        """The node of a shape: a body's own, or one below it where the shape is placed or turned."""
        place, turn, scale = np.asarray(position, float), np.asarray(quaternion, float), None
        if isinstance(shape, Cone):  # whose middle is in the origin
            place = place + rotation.rotate(turn, (0.0, 0.0, shape.length / 4))
        if isinstance(shape, (Capsule, Cylinder, Cone, Plane)):
            turn, apart = rotation.multiply(turn, UPRIGHT), True
        if isinstance(shape, Ellipsoid):
            scale, apart = np.array(shape.radii), True
        return self._document.add_node(parent, position=place, quaternion=turn, scale=scale) if apart else parent

    def _geometry(self, shape: StaticShape) -> dict[str, Any]:
        if isinstance(shape, (ConvexHull, TriangleMesh, HeightField)):
            found: dict[str, Any] = {"node": self._mesh_node(shape)}
            return {**found, "convexHull": True} if isinstance(shape, ConvexHull) else found
        return {"shape": self._document.once("shapes", shape, lambda: _implicit(shape))}

    def _mesh_node(self, shape: ConvexHull | TriangleMesh | HeightField) -> int:
        """A node in no scene, whose mesh is for colliders alone: its points are each there once."""
        known = self._document.collision_nodes
        if shape not in known:
            primitive = self._document.geometry(*mesh_of(shape))
            mesh = self._document.once("meshes", ("collision", shape), lambda: {"primitives": [primitive]})
            known[shape] = self._document.add_node(None, "collision mesh")
            self._document.nodes[known[shape]]["mesh"] = mesh
            if isinstance(shape, ConvexHull):
                self._document.note(known[shape], shape="ConvexHull")
            if isinstance(shape, HeightField):
                columns = shape.heights.shape[1]
                field = {"heights": shape.heights.ravel().tolist(), "columns": columns, "spacing": list(shape.spacing)}
                self._document.note(known[shape], heightField=field)
        return known[shape]

    def _filter(self, bits: Filter) -> dict[str, Any]:
        """A system for each pair of a group and a mask, and those that it may not touch."""
        names = {one: f"{one[0]:x}:{one[1]:x}" for one in self._filters}
        entry: dict[str, Any] = {"collisionSystems": [names[bits]]}
        apart = [names[other] for other in self._filters if not may_touch(bits, other)]
        if apart:
            entry["notCollideWithSystems"] = apart
        return {**entry, "extras": {OWN: {"group": bits[0], "mask": bits[1]}}}


def _implicit(shape: StaticShape) -> dict[str, Any]:
    if isinstance(shape, Sphere):
        return {"type": "sphere", "sphere": {"radius": shape.radius}}
    if isinstance(shape, Ellipsoid):
        return {"type": "sphere", "sphere": {"radius": 1.0}}
    if isinstance(shape, Box):
        return {"type": "box", "box": {"size": list(shape.size)}}
    if isinstance(shape, Plane):
        return {"type": "plane", "plane": {}}
    assert isinstance(shape, (Capsule, Cylinder, Cone))
    kind, top = (
        "capsule" if isinstance(shape, Capsule) else "cylinder",
        0.0 if isinstance(shape, Cone) else shape.radius,
    )
    return {"type": kind, kind: {"height": shape.length, "radiusBottom": shape.radius, "radiusTop": top}}


def _material(material: Material) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "staticFriction": material.friction,
        "dynamicFriction": material.friction,
        "restitution": material.restitution,
    }
    own: dict[str, Any] = {}
    if material.rolling_friction:
        own["rollingFriction"] = material.rolling_friction
    for name, rule in (
        ("frictionCombine", material.friction_combine),
        ("restitutionCombine", material.restitution_combine),
    ):
        if rule in COMBINE:
            entry[name] = rule
        else:
            own[name] = rule
    return {**entry, "extras": {OWN: own}} if own else entry
