"""glTF files (.gltf, .glb) with the extensions KHR_physics_rigid_bodies and KHR_implicit_shapes, by their JSON.

Lengths are metres and y is up, as glTF has it; a scene has z up. Only buffers within the file's folder are read.
"""

from __future__ import annotations

import base64
import binascii
import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from ..arrays import rotation
from ..errors import LapjointError
from ..scene import (
    FREE,
    LOCKED,
    Ball,
    Box,
    Capsule,
    ConvexHull,
    Cylinder,
    Drive,
    Fixed,
    Hinge,
    Material,
    Plane,
    SixAxis,
    Slider,
    Sphere,
    Spring,
    TriangleMesh,
)
from ..scene.shapes import StaticShape, hull_faces
from .model import WORLD, Array, Collider, Link, LinkJoint, Mass, Model, Motion
from .notes import Notes

RIGID, SHAPES = "KHR_physics_rigid_bodies", "KHR_implicit_shapes"
KNOWN = (RIGID, SHAPES)
UP = rotation.from_axis_angle((1.0, 0.0, 0.0), np.pi / 2)
"""From y up to z up."""
ALONG_Y = rotation.between((0.0, 0.0, 1.0), (0.0, 1.0, 0.0))
"""Capsules and cylinders of glTF stand along y."""
MAGIC, JSON_CHUNK, BINARY_CHUNK = 0x46546C67, 0x4E4F534A, 0x004E4942
COMPONENTS = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
COLUMNS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}
COMBINE = {"average": "average", "minimum": "minimum", "maximum": "maximum", "multiply": "multiply"}
DEEPEST = 1000


def read_gltf(path: Path, notes: Notes) -> Model:
    """The model of a glTF file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LapjointError(f"{path}: {error.strerror or error}") from None
    try:
        root, binary = _chunks(content)
        return _Reader(root, binary, notes).read()
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise LapjointError(f"{path}: is no glTF file as the standard has it ({error!r})") from None


def _chunks(content: bytes) -> tuple[dict[str, Any], bytes]:
    """The JSON of a file, and the binary chunk if it has one."""
    if content[:4] != MAGIC.to_bytes(4, "little"):
        return json.loads(content), b""
    place, text, binary = 12, b"", b""
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
    return json.loads(text), binary


class _Reader:
    def __init__(self, root: dict[str, Any], binary: bytes, notes: Notes) -> None:
        self._root, self._binary, self._notes = root, binary, notes
        self._nodes: list[dict[str, Any]] = root.get("nodes", [])
        extensions = root.get("extensions", {})
        self._rigid: dict[str, Any] = extensions.get(RIGID, {})
        self._shapes: list[dict[str, Any]] = extensions.get(SHAPES, {}).get("shapes", [])
        self._model = Model(notes.path.stem)
        self._poses: dict[int, tuple[Array, Array, Array]] = {}  # position, quaternion, scale in the world
        self._link_of: dict[int, int] = {}  # of every node: the link that it moves with
        self._labels: dict[int | None, int] = {}
        self._buffers: dict[int, bytes] = {}

    def read(self) -> Model:
        for name in self._root.get("extensionsRequired", []):
            if name not in KNOWN:
                raise self._notes.refuse("extensionsRequired", f"{name} is required, and lapjoint does not have it")
        scenes = self._root.get("scenes", [])
        start = scenes[self._root.get("scene", 0)].get("nodes", []) if scenes else range(len(self._nodes))
        world = Link("world", motion=Motion.STATIC, where="the scene")
        self._model.links.append(world)
        for node in start:
            self._walk(int(node), (np.zeros(3), UP, np.ones(3)), 0, ())
        for node in self._poses:
            self._read_joint(node)
        self._read_filters()
        if not any(link.motion is Motion.MOVING for link in self._model.links):
            raise self._notes.refuse("", f"has no body in motion ({RIGID}.motion), expected at least one")
        return self._model

    def _where(self, node: int) -> str:
        name = self._nodes[node].get("name")
        return f"node {node} ({name!r})" if name else f"node {node}"

    # ---- nodes -----------------------------------------------------------------------------------------------------

    def _walk(self, node: int, above: tuple[Array, Array, Array], link: int, path: tuple[int, ...]) -> None:
        if node in path or len(path) > DEEPEST:
            raise self._notes.refuse(self._where(node), "is its own ancestor")
        entry, where = self._nodes[node], self._where(node)
        position, quaternion, scale = self._local(entry, where)
        base, turn, size = above
        if not np.allclose(size, size[0]) and not np.allclose(quaternion[1:], 0):
            raise self._notes.refuse(where, "is turned within a frame that is stretched, expected even scales")
        place = base + rotation.rotate(turn, size * position)
        pose = (place, rotation.multiply(turn, quaternion), size * scale)
        self._poses[node] = pose
        own = entry.get("extensions", {}).get(RIGID, {})
        if "motion" in own:
            link = self._add_link(node, own["motion"], pose)
        self._link_of[node] = link
        if "collider" in own:
            self._add_collider(node, own["collider"], link)
        if "trigger" in own:
            self._notes.leave_out(where, "a trigger: scene.add_sensor makes one")
        for child in entry.get("children", []):
            self._walk(int(child), pose, link, (*path, node))

    def _local(self, entry: dict[str, Any], where: str) -> tuple[Array, Array, Array]:
        if "matrix" in entry:
            matrix = np.array(entry["matrix"], float).reshape(4, 4).T
            scale = np.linalg.norm(matrix[:3, :3], axis=0)
            turn = matrix[:3, :3] / scale
            if not np.allclose(turn.T @ turn, np.eye(3), atol=1e-4) or np.linalg.det(turn) < 0:
                raise self._notes.refuse(where, "its matrix shears or mirrors, expected a turn and scales")
            return matrix[:3, 3], rotation.from_matrix(turn), scale
        position = np.array(entry.get("translation", (0, 0, 0)), float).reshape(3)
        x, y, z, w = (float(one) for one in entry.get("rotation", (0, 0, 0, 1)))
        scale = np.array(entry.get("scale", (1, 1, 1)), float).reshape(3)
        if not (scale > 0).all():
            raise self._notes.refuse(where, f"its scale is {scale.tolist()}, expected positive numbers")
        quaternion = np.array([w, x, y, z])
        return position, quaternion / np.linalg.norm(quaternion), scale

    def _add_link(self, node: int, motion: dict[str, Any], pose: tuple[Array, Array, Array]) -> int:
        where, (position, quaternion, scale) = self._where(node), pose
        link = Link(str(self._nodes[node].get("name") or f"node {node}"), position, quaternion, where=where)
        if motion.get("isKinematic"):
            link.motion = Motion.KINEMATIC
        factor = float(motion.get("gravityFactor", 1.0))
        if factor != 1.0:
            raise self._notes.refuse(where, f"its gravity factor is {factor:g}, expected 1 (or a force field)")
        link.linear_velocity = rotation.rotate(UP, np.array(motion.get("linearVelocity", (0, 0, 0)), float))
        link.angular_velocity = rotation.rotate(UP, np.array(motion.get("angularVelocity", (0, 0, 0)), float))
        if "mass" in motion:
            centre = scale * np.array(motion.get("centerOfMass", (0, 0, 0)), float)
            if "inertiaDiagonal" in motion:
                x, y, z, w = (float(one) for one in motion.get("inertiaOrientation", (0, 0, 0, 1)))
                turn = rotation.to_matrix(np.array([w, x, y, z]))
                inertia = turn @ np.diag(np.array(motion["inertiaDiagonal"], float)) @ turn.T
                link.mass = Mass(float(motion["mass"]), centre, inertia)
            else:
                link.mass = Mass(float(motion["mass"]), centre, np.full((3, 3), np.nan))  # by its colliders
            if not link.mass.mass > 0:
                raise self._notes.refuse(where, f"its mass is {link.mass.mass}, expected a positive one")
        self._model.links.append(link)
        return len(self._model.links) - 1

    # ---- colliders ---------------------------------------------------------------------------------------------------

    def _add_collider(self, node: int, collider: dict[str, Any], number: int) -> None:
        link, where = self._model.links[number], self._where(node)
        position, quaternion, scale = self._poses[node]
        geometry = collider["geometry"]
        if "shape" in geometry:
            shape, turn = self._implicit(self._shapes[geometry["shape"]], scale, where, link)
            offset = np.zeros(3)
        else:
            shape, offset = self._mesh_shape(node, geometry, scale, where, link)
            turn = rotation.IDENTITY
        back = rotation.conjugate(link.quaternion)
        place = position + rotation.rotate(quaternion, offset) - link.position
        found = Collider(
            shape,
            rotation.rotate(back, place),
            rotation.multiply(rotation.multiply(back, quaternion), turn),
            self._material(collider.get("physicsMaterial")),
            where=where,
        )
        chosen = collider.get("collisionFilter")
        found.label = self._labels.setdefault(chosen, len(self._labels))
        link.colliders.append(found)

    def _implicit(self, entry: dict[str, Any], scale: Array, where: str, link: Link) -> tuple[StaticShape, Array]:
        kind = entry["type"]
        own = entry.get(kind, {})
        even = bool(np.allclose(scale, scale[0]))
        if kind == "box":
            return Box(tuple(scale * np.array(own.get("size", (1, 1, 1)), float))), rotation.IDENTITY
        if not even:
            raise self._notes.refuse(where, f"a {kind} with uneven scales {scale.tolist()}, expected even ones")
        size = float(scale[0])
        if kind == "sphere":
            return Sphere(size * float(own.get("radius", 0.5))), rotation.IDENTITY
        if kind in ("capsule", "cylinder"):
            bottom, top = float(own.get("radiusBottom", 0.25)), float(own.get("radiusTop", 0.25))
            if bottom != top:
                raise self._notes.refuse(where, f"a {kind} of two radii, {bottom:g} and {top:g}, expected one")
            made = Capsule if kind == "capsule" else Cylinder
            return made(size * bottom, size * float(own.get("height", 0.5))), ALONG_Y
        if kind == "plane":
            if link.motion is Motion.MOVING:
                raise self._notes.refuse(where, "a plane on a body that moves, expected one that is static")
            if own.get("sizeX") or own.get("sizeZ"):
                self._notes.approximate(where, "a plane is infinite")
            return Plane(), ALONG_Y
        raise self._notes.refuse(where, f"a shape of the type {kind!r}, which lapjoint does not have")

    def _mesh_shape(
        self, node: int, geometry: dict[str, Any], scale: Array, where: str, link: Link
    ) -> tuple[StaticShape, Array]:
        chosen = geometry.get("mesh")
        if chosen is None:
            chosen = self._nodes[geometry.get("node", node)].get("mesh")
        if chosen is None:
            raise self._notes.refuse(where, "its collider has neither a shape nor a mesh")
        points, triangles = self._mesh(int(chosen), where)
        points = points * scale
        if not geometry.get("convexHull") and link.motion is not Motion.MOVING:
            return TriangleMesh(points, triangles), np.zeros(3)
        if not geometry.get("convexHull"):
            self._notes.approximate(where, "a mesh that moves is its convex hull")
        hull = ConvexHull(points)
        corners = ConvexHull(hull_faces(hull.points)[0])
        return corners, hull.centre + corners.centre

    def _mesh(self, number: int, where: str) -> tuple[Array, NDArray[np.int32]]:
        """All triangles of a mesh."""
        points, triangles, count = [], [], 0
        for part in self._root["meshes"][number]["primitives"]:
            if part.get("mode", 4) != 4:
                raise self._notes.refuse(where, "a mesh that is not made of triangles")
            own = self._accessor(part["attributes"]["POSITION"]).astype(float)
            if "indices" in part:
                corners = self._accessor(part["indices"]).astype(np.int64).reshape(-1, 3)
            else:
                corners = np.arange(len(own)).reshape(-1, 3)
            points.append(own)
            triangles.append(corners + count)
            count += len(own)
        return np.concatenate(points), np.concatenate(triangles).astype(np.int32)

    def _accessor(self, number: int) -> NDArray[Any]:
        accessor = self._root["accessors"][number]
        if "sparse" in accessor or "bufferView" not in accessor:
            raise self._notes.refuse(f"accessor {number}", "is sparse, expected a plain one")
        view = self._root["bufferViews"][accessor["bufferView"]]
        data = self._buffer(int(view["buffer"]))
        dtype, columns = np.dtype(COMPONENTS[accessor["componentType"]]), COLUMNS[accessor["type"]]
        count, row = int(accessor["count"]), dtype.itemsize * columns
        stride = int(view.get("byteStride", row)) or row
        start = int(view.get("byteOffset", 0)) + int(accessor.get("byteOffset", 0))
        last = int(view.get("byteOffset", 0)) + int(view["byteLength"])
        if (
            min(count, start) < 0
            or stride < row
            or (count and start + stride * (count - 1) + row > min(last, len(data)))
        ):
            raise self._notes.refuse(f"accessor {number}", "reaches beyond its buffer")
        return np.ndarray((count, columns), dtype, data, start, (stride, dtype.itemsize)).copy()

    def _buffer(self, number: int) -> bytes:
        if number not in self._buffers:
            self._buffers[number] = self._load_buffer(self._root["buffers"][number], number)
        return self._buffers[number]

    def _load_buffer(self, entry: dict[str, Any], number: int) -> bytes:
        uri, where = entry.get("uri"), f"buffer {number}"
        if uri is None:
            return self._binary
        if uri.startswith("data:"):
            try:
                return base64.b64decode(uri.partition(",")[2], validate=True)
            except binascii.Error:
                raise self._notes.refuse(where, "its data is not base64") from None
        folder = self._notes.path.resolve().parent
        found = (folder / unquote(uri)).resolve()
        if "://" in uri or not found.is_relative_to(folder):
            raise self._notes.refuse(where, f"names {uri!r}, which is outside the folder {folder}")
        try:
            return found.read_bytes()
        except OSError as error:
            raise self._notes.refuse(where, f"{uri}: {error.strerror or error}") from None

    def _material(self, number: int | None) -> Material:
        if number is None:
            return Material()
        own = self._rigid["physicsMaterials"][number]
        still, moving = float(own.get("staticFriction", 0.6)), float(own.get("dynamicFriction", 0.6))
        if still != moving:
            self._notes.approximate(f"material {number}", "there is one coefficient of friction: the dynamic one")
        return Material(
            friction=moving,
            restitution=float(own.get("restitution", 0.0)),
            friction_combine=COMBINE[own.get("frictionCombine", "average")],
            restitution_combine=COMBINE[own.get("restitutionCombine", "average")],
        )

    # ---- joints, filters ---------------------------------------------------------------------------------------------

    def _read_joint(self, node: int) -> None:
        """The connected node moves relative to the joint's own."""
        own = self._nodes[node].get("extensions", {}).get(RIGID, {}).get("joint")
        if own is None:
            return
        where, connected = self._where(node), int(own["connectedNode"])
        if connected not in self._poses:
            raise self._notes.refuse(where, f"is connected to node {connected}, which is not in the scene")
        ends = []
        for one in (node, connected):
            link = self._link_of[one]
            moves = self._model.links[link].motion is Motion.MOVING
            position, quaternion, _ = self._poses[one]
            ends.append(
                (link if moves or self._model.links[link].motion is Motion.KINEMATIC else WORLD, position, quaternion)
            )
        if ends[0][0] == ends[1][0] == WORLD:
            raise self._notes.refuse(where, "joins nothing that moves")
        forward = ends[1][0] != WORLD
        (b, anchor_b, turn_b), (a, anchor_a, turn_a) = ends if forward else ends[::-1]
        entry = self._rigid["physicsJoints"][own["joint"]]
        joint, along = _joint_of(entry, 1.0 if forward else -1.0, self._notes, where)
        self._model.joints.append(
            LinkJoint(
                joint,
                a,
                b,
                anchor_a,
                rotation.multiply(turn_a, along),
                anchor_b,
                rotation.multiply(turn_b, along),
                collide=bool(own.get("enableCollision", False)),
                name=str(self._nodes[node].get("name", "")),
                where=where,
            )
        )

    def _read_filters(self) -> None:
        entries = self._rigid.get("collisionFilters", [])
        filters = [{} if number is None else entries[number] for number in self._labels]
        count = max(1, len(filters))
        self._model.may_touch = np.ones((count, count), bool)
        for i, one in enumerate(filters):
            for k, other in enumerate(filters):
                self._model.may_touch[i, k] = _passes(one, other) and _passes(other, one)


def _passes(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether a filter lets whoever is in another's systems through."""
    systems = set(other.get("collisionSystems", []))
    if "collideWithSystems" in one:
        return bool(systems & set(one["collideWithSystems"]))
    return not systems & set(one.get("notCollideWithSystems", []))


def _joint_of(entry: dict[str, Any], sign: float, notes: Notes, where: str) -> tuple[Any, Array]:
    """A joint, and how its frame is turned from that of the file: a hinge or a slider has its axis along x."""
    limits: list[tuple[float, float]] = [FREE] * 6
    springs: dict[int, Spring] = {}
    drives: dict[int, Drive] = {}
    for limit in entry.get("limits", []):
        axes = [*limit.get("linearAxes", []), *(3 + axis for axis in limit.get("angularAxes", []))]
        if len(axes) > 1 and (limit.get("min") or limit.get("max")):
            notes.approximate(where, "a limit of several axes together is one of each")
        low, high = float(limit.get("min", -np.inf)), float(limit.get("max", np.inf))
        if np.isfinite(limit.get("stiffness", np.inf)):
            notes.approximate(where, "its soft limits are hard")
        for axis in axes:
            first, second = sorted((sign * low, sign * high))
            limits[axis] = LOCKED if low == high == 0 else (first, second)
    for drive in entry.get("drives", []):
        axis = int(drive["axis"]) + (3 if drive["type"] == "angular" else 0)
        if drive.get("mode", "acceleration") != "force":
            raise notes.refuse(where, "a drive in the mode acceleration, expected force")
        if limits[axis] == LOCKED:
            continue
        notes.count("drives")
        drives[axis] = Drive(
            position=sign * float(drive.get("positionTarget", 0.0)),
            velocity=sign * float(drive.get("velocityTarget", 0.0)),
            stiffness=float(drive.get("stiffness", 0.0)),
            damping=float(drive.get("damping", 0.0)),
            max_force=float(drive.get("maxForce", np.inf)),
        )
    free = [axis for axis in range(6) if limits[axis] != LOCKED]
    if not free:
        return Fixed(), rotation.IDENTITY
    if free == [3, 4, 5] and not drives and all(limits[axis] == FREE for axis in free):
        return Ball(), rotation.IDENTITY
    if len(free) == 1:
        (axis,) = free
        direction = np.eye(3)[axis % 3]
        kind = Hinge if axis >= 3 else Slider
        made = kind(limits=limits[axis], drive=drives.get(axis))
        return made, rotation.between((1.0, 0.0, 0.0), direction)
    made = SixAxis(linear=tuple(limits[:3]), angular=tuple(limits[3:]), springs=springs, drives=drives)
    return made, rotation.IDENTITY
