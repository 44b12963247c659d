"""glTF files (.gltf, .glb) with the extensions KHR_physics_rigid_bodies and KHR_implicit_shapes, by their JSON.

Lengths are metres and y is up, as glTF has it; a scene has z up. Only buffers within the file's folder are read.
"""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import rotation
from ..errors import LapjointError, shortened
from ..scene import HeightField, Material, TriangleMesh
from ..scene.filters import ALL_GROUPS
from ..scene.motions import GivenMotion
from ..system.files import read_file
from .gltf_buffers import Buffers
from .gltf_entries import entry_of
from .gltf_joints import joint_of
from .gltf_nodes import Nodes
from .gltf_shapes import Shapes
from .gltf_words import OWN, RIGID, SHAPES
from .model import WORLD, Array, Collider, Link, LinkJoint, LinkSensor, Mass, Model, Motion
from .notes import Notes
from .own import set_link, set_model

KNOWN = (RIGID, SHAPES)
MAGIC, JSON_CHUNK, BINARY_CHUNK = 0x46546C67, 0x4E4F534A, 0x004E4942
COMBINE = ("average", "minimum", "maximum", "multiply")


def read_gltf(path: Path, notes: Notes) -> Model:
    """The model of a glTF file."""
    content = read_file(path)
    try:
        root, binary = _chunks(content)
        return _Reader(root, binary, notes).read()
    except LapjointError:
        raise
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, RecursionError, OverflowError) as error:
        raise LapjointError(f"{path}: is no glTF file as the standard has it ({shortened(repr(error))})") from None


def _chunks(content: bytes) -> tuple[dict[str, Any], bytes]:
    """The JSON of a file, and the binary chunk if it has one."""
    if content[:4] != MAGIC.to_bytes(4, "little"):
        return _json(content), b""
    place, text, binary = 12, b"", b""
    if len(content) < int.from_bytes(content[8:12], "little"):
        raise ValueError("it is cut off")
    while place + 8 <= len(content):
        size, kind = (int.from_bytes(content[place + 4 * k : place + 4 * k + 4], "little") for k in range(2))
        chunk = content[place + 8 : place + 8 + size]
        if len(chunk) < size:
            raise ValueError("it is cut off")
        if kind == JSON_CHUNK:
            text = chunk
        elif kind == BINARY_CHUNK:
            binary = chunk
        place += 8 + size
    return _json(text), binary


def _json(content: bytes) -> dict[str, Any]:
    """Without numbers that are none, which JSON does not have and Python reads, and without those beyond all."""

    def number(word: str) -> float:
        value = float(word)
        if not isfinite(value):
            raise ValueError(f"it has {word}, expected a number")
        return value

    found: dict[str, Any] = json.loads(content, parse_constant=number, parse_float=number)
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    return found


def _own(entry: dict[str, Any]) -> dict[str, Any]:
    """What an export has written of something in words of our own."""
    found: dict[str, Any] = entry.get("extras", {}).get(OWN, {}) if isinstance(entry.get("extras"), dict) else {}
    return found


class _Reader:
    def __init__(self, root: dict[str, Any], binary: bytes, notes: Notes) -> None:
        self._root, self._notes = root, notes
        version = str(root.get("asset", {}).get("version", "2.0"))
        if version.partition(".")[0] != "2":
            raise notes.refuse("asset", f"its version is {version}, expected 2.0")
        for name in root.get("extensionsRequired", []):
            if name not in KNOWN:
                raise notes.refuse("extensionsRequired", f"{name} is required, and lapjoint does not have it")
        entries: list[dict[str, Any]] = root.get("nodes", [])
        extensions = root.get("extensions", {})
        self._rigid: dict[str, Any] = extensions.get(RIGID, {})
        scenes = root.get("scenes", [])
        self._scene = entry_of(root, "scenes", root.get("scene", 0), "scene", notes) if scenes else {}
        self._nodes = Nodes(entries, self._scene.get("nodes", []) if scenes else _tops(entries), notes)
        self._shapes = Shapes(extensions.get(SHAPES, {}), root, Buffers(root, binary, notes), notes)
        self._model = Model(notes.path.stem)
        self._link_of: dict[int, int] = {-1: 0}  # of every node: the link that it moves with
        self._labels: dict[int | None, dict[str, Any]] = {}  # filters in use, in the order of their labels

    def read(self) -> Model:
        self._read_settings()
        self._model.links.append(Link("world", motion=Motion.STATIC, where="the scene"))
        colliders = []
        for node in self._nodes.order:
            own = self._nodes.entries[node].get("extensions", {}).get(RIGID, {})
            self._link_of[node] = self._link(node, own)
            if "collider" in own:
                colliders.append((node, own["collider"]))
        self._read_colliders(colliders)
        for node in self._with("trigger"):
            self._read_trigger(node, self._rigid_of(node)["trigger"])
        self._read_joints(self._with("joint"))
        self._read_filters()
        if not any(link.motion is Motion.MOVING for link in self._model.links):
            raise self._notes.refuse("", f"has no body in motion ({RIGID}.motion), expected at least one")
        return self._model

    def _rigid_of(self, node: int) -> dict[str, Any]:
        found: dict[str, Any] = self._nodes.entries[node].get("extensions", {}).get(RIGID, {})
        return found

    def _with(self, what: str) -> list[int]:
        """Nodes with a joint or a trigger, in the order in which the file has them."""
        return sorted(node for node in self._nodes.order if what in self._rigid_of(node))

    def _read_settings(self) -> None:
        """What an export has written of a scene. The extensions have no gravity: it is that of the Earth."""
        own, model = _own(self._scene), self._model
        set_model(model, own)
        if "gravity" in own:
            model.gravity = np.array(own["gravity"], float).reshape(3)

    # ---- links -----------------------------------------------------------------------------------------------------

    def _link(self, node: int, rigid: dict[str, Any]) -> int:
        """The link that a node moves with: its own, or that of the node above."""
        own = _own(self._nodes.entries[node])
        if "motion" not in rigid and own.get("kind") != "static":
            return self._link_of[self._nodes.parent[node]]
        where = self._nodes.where(node)
        link = Link("", self._nodes.position[node], self._nodes.quaternion[node], where=where)
        if "kind" in own:
            set_link(link, own)
        else:
            link.name = str(self._nodes.entries[node].get("name") or f"node {node}")
        if "motion" in rigid:
            self._read_motion(link, rigid["motion"], self._nodes.scale[node])
        else:
            link.motion = Motion.STATIC
        if "motion" in own:
            given = own["motion"]
            values, base = (np.array(given[name], float) for name in ("values", "base"))
            link.given_motion = GivenMotion(int(given["kind"]), values, int(given["start"]), base)
        self._model.links.append(link)
        return len(self._model.links) - 1

    def _read_motion(self, link: Link, motion: dict[str, Any], scale: Array) -> None:
        if motion.get("isKinematic"):
            link.motion = Motion.KINEMATIC
        factor = float(motion.get("gravityFactor", 1.0))
        if factor != 1.0:
            raise self._notes.refuse(link.where, f"its gravity factor is {factor:g}, expected 1 (or a force field)")
        # Velocities are in the node's own frame.
        for name in ("linear", "angular"):
            if f"{name}Velocity" in motion:
                velocity = np.array(motion[f"{name}Velocity"], float).reshape(3)
                setattr(link, f"{name}_velocity", rotation.rotate(link.quaternion, velocity))
        if not any(name in motion for name in ("mass", "centerOfMass", "inertiaDiagonal")):
            return
        mass, centre, inertia = np.nan, np.full(3, np.nan), np.full((3, 3), np.nan)  # what follows from its colliders
        if "mass" in motion:
            mass = float(motion["mass"])
            if not mass > 0:
                raise self._notes.refuse(link.where, f"its mass is {mass:g}, expected a positive one (0 is infinite)")
        if "centerOfMass" in motion:
            centre = scale * np.array(motion["centerOfMass"], float).reshape(3)
        if "inertiaDiagonal" in motion:
            moments = np.array(motion["inertiaDiagonal"], float).reshape(3)
            if not (moments > 0).all():
                text = f"its inertia is {moments.tolist()}, expected positive numbers (0 is infinite)"
                raise self._notes.refuse(link.where, text)
            inertia = np.diag(moments)
            if "inertiaOrientation" in motion:
                x, y, z, w = (float(one) for one in motion["inertiaOrientation"])
                length = float(np.linalg.norm([w, x, y, z]))
                if not abs(length - 1) < 1e-3:
                    raise self._notes.refuse(link.where, "its inertia's orientation is no unit quaternion")
                turn = rotation.to_matrix(np.array([w, x, y, z]) / length)
                inertia = turn @ inertia @ turn.T
        link.mass = Mass(mass, centre, inertia)

    # ---- colliders -------------------------------------------------------------------------------------------------

    def _read_colliders(self, found: list[tuple[int, dict[str, Any]]]) -> None:
        if not found:
            return
        nodes, tree = [node for node, _ in found], self._nodes
        links = [self._model.links[self._link_of[node]] for node in nodes]
        shapes = []
        for (node, collider), link in zip(found, links, strict=True):
            geometry = collider.get("geometry") or {"shape": collider["shape"]}  # as drafts of the standard have it
            where, moves = tree.where(node), link.motion is Motion.MOVING
            shapes.append(self._shapes.shape(geometry, node, tree.scale[node], where, moves))
        # In the links' frames, all at once.
        back = rotation.conjugate(np.array([link.quaternion for link in links]))
        turns = rotation.multiply(back, tree.quaternion[nodes])
        places = rotation.rotate(back, tree.position[nodes] - np.array([link.position for link in links]))
        places += rotation.rotate(turns, np.array([offset for _, offset, _ in shapes]))
        turns = rotation.multiply(turns, np.array([turn for _, _, turn in shapes]))
        materials: dict[int | None, Material] = {}
        numbers: dict[int | None, int] = {}
        for row, (node, collider) in enumerate(found):
            number = collider.get("physicsMaterial")
            if number not in materials:
                materials[number] = self._material(number, tree.where(node))
            made = Collider(shapes[row][0], places[row], turns[row], materials[number], where=tree.where(node))
            made.relative_density = float(_own(tree.entries[node]).get("relativeDensity", 1.0))
            kind = collider.get("collisionFilter")
            if kind not in self._labels:
                self._labels[kind] = self._filter(kind, tree.where(node))
                numbers[kind] = len(numbers)
            made.label = numbers[kind]
            links[row].colliders.append(made)
        rules = {(one.friction_combine, one.restitution_combine) for key, one in materials.items() if key is not None}
        if len(rules) > 1 and not _own(self._scene):
            text = "where two surfaces have different rules, the one that is later in docs/files.md holds"
            self._notes.approximate("physicsMaterials", text)

    def _read_trigger(self, node: int, trigger: dict[str, Any]) -> None:
        """A sensor; those of several nodes are one for each."""
        tree, where = self._nodes, self._nodes.where(node)
        if "nodes" in trigger:
            self._notes.approximate(where, "a trigger of several nodes is a sensor for each of them")
            return
        geometry = trigger.get("geometry") or {"shape": trigger["shape"]}
        shape, offset, own_turn = self._shapes.shape(geometry, node, tree.scale[node], where, False)
        if isinstance(shape, (TriangleMesh, HeightField)):
            self._notes.leave_out(where, "a trigger of triangles, which has no inside")
            return
        link = self._model.links[self._link_of[node]]
        place = tree.position[node] + rotation.rotate(tree.quaternion[node], offset)
        turn, back = rotation.multiply(tree.quaternion[node], own_turn), rotation.conjugate(link.quaternion)
        place, turn = rotation.rotate(back, place - link.position), rotation.multiply(back, turn)
        own = _own(tree.entries[node])
        name = str(own.get("name", "") if "kind" in own else tree.entries[node].get("name", ""))
        self._model.sensors.append(
            LinkSensor(shape, self._link_of[node], place, turn, *self._senses(trigger, where), name=name, where=where)
        )

    def _senses(self, trigger: dict[str, Any], where: str) -> tuple[int | None, NDArray[np.bool_] | None]:
        """Mask of a trigger, and which labels of colliders it senses."""
        if "collisionFilter" not in trigger:
            return None, None
        own = self._filter(trigger["collisionFilter"], where)
        bits = _bits(own)
        if bits is not None:
            return bits[1], None
        return None, np.array([_passes(own, one) and _passes(one, own) for one in self._labels.values()], bool)

    def _filter(self, number: Any, where: str) -> dict[str, Any]:
        return {} if number is None else entry_of(self._rigid, "collisionFilters", number, where, self._notes)

    def _material(self, number: int | None, where: str) -> Material:
        if number is None:
            return Material()
        entry = entry_of(self._rigid, "physicsMaterials", number, where, self._notes)
        where = f"material {number}"
        own = _own(entry)
        still, moving = float(entry.get("staticFriction", 0.6)), float(entry.get("dynamicFriction", 0.6))
        if still != moving:
            self._notes.approximate(where, "there is one coefficient of friction: the dynamic one")
        try:
            return Material(
                friction=moving,
                restitution=float(entry.get("restitution", 0.0)),
                rolling_friction=float(own.get("rollingFriction", 0.0)),
                friction_combine=own.get("frictionCombine", entry.get("frictionCombine", "average")),
                restitution_combine=own.get("restitutionCombine", entry.get("restitutionCombine", "average")),
            )
        except LapjointError as error:
            raise self._notes.refuse(where, str(error)) from None

    # ---- joints, filters -------------------------------------------------------------------------------------------

    def _read_joints(self, nodes: list[int]) -> None:
        """Connected nodes move relative to the joints' own."""
        tree, found = self._nodes, []
        for node in nodes:
            own, where = self._rigid_of(node)["joint"], tree.where(node)
            connected = int(own["connectedNode"])
            if connected not in tree:
                raise self._notes.refuse(where, f"is connected to node {connected}, which is not in the scene")
            b, a = (self._end(one) for one in (node, connected))
            if a == b == WORLD:
                raise self._notes.refuse(where, "joins nothing that moves")
            ends, sign = ((a, connected), (b, node)), 1.0
            if a == WORLD:
                ends, sign = ends[::-1], -1.0
            entry = entry_of(self._rigid, "physicsJoints", own["joint"], where, self._notes)
            joint, along = joint_of(entry, sign, self._notes, where)
            found.append((node, own, joint, along, ends))
        if not found:
            return
        # The frames on both sides, all at once.
        along = np.array([one[3] for one in found])
        turns = [rotation.multiply(tree.quaternion[[one[4][side][1] for one in found]], along) for side in range(2)]
        for row, (node, own, joint, _, ((a, on_a), (b, on_b))) in enumerate(found):
            self._model.joints.append(
                LinkJoint(
                    joint,
                    a,
                    b,
                    tree.position[on_a],
                    turns[0][row],
                    tree.position[on_b],
                    turns[1][row],
                    collide=bool(own.get("enableCollision", False)),
                    name=str(tree.entries[node].get("name", "")),
                    where=tree.where(node),
                )
            )

    def _end(self, node: int) -> int:
        """The link that a joint holds at a node, WORLD where it does not move."""
        link = self._link_of[node]
        return WORLD if self._model.links[link].motion is Motion.STATIC else link

    def _read_filters(self) -> None:
        model, filters = self._model, list(self._labels.values())
        count = max(1, len(filters))
        model.may_touch = np.ones((count, count), bool)
        for i, one in enumerate(filters):
            for k, other in enumerate(filters):
                model.may_touch[i, k] = _passes(one, other) and _passes(other, one)
        bits = [(1, ALL_GROUPS) if not one else _bits(one) for one in filters]
        model.bits = [one for one in bits if one is not None] if None not in bits else None
        for a, b in _own(self._scene).get("ignored", []):
            model.ignored.append((self._link_of[int(a)], self._link_of[int(b)]))


def _tops(entries: list[dict[str, Any]]) -> list[int]:
    """Nodes that are below no other."""
    below = {int(child) for entry in entries for child in entry.get("children", [])}
    return [node for node in range(len(entries)) if node not in below]


def _bits(entry: dict[str, Any]) -> tuple[int, int] | None:
    """Group and mask that an export has written of a filter."""
    own = _own(entry)
    return (int(own["group"]), int(own["mask"])) if {"group", "mask"} <= set(own) else None


def _passes(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether a filter lets whoever is in another's systems through."""
    systems = set(other.get("collisionSystems", []))
    if "collideWithSystems" in one:
        return bool(systems & set(one["collideWithSystems"]))
    return not systems & set(one.get("notCollideWithSystems", []))
