"""USD files with UsdPhysics, by usd-core: references, payloads, instances and the standard's own rules of mass are
resolved there. Needs the extra `lapjoint[usd]`.

Lengths and masses are converted from the stage's units, degrees to radians, and y up to z up.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import rotation
from ..errors import LapjointError
from ..scene import (
    FREE,
    LOCKED,
    Ball,
    Box,
    Breaks,
    Capsule,
    Cone,
    ConvexHull,
    Cylinder,
    Distance,
    Drive,
    Fixed,
    Hinge,
    Material,
    Plane,
    SixAxis,
    Slider,
    Sphere,
    TriangleMesh,
)
from ..scene.meshes import decompose
from ..scene.shapes import STATIC_ONLY, StaticShape, hull_faces, mass_properties
from .model import WORLD, Array, Collider, Link, LinkJoint, Mass, Model, Motion
from .notes import Notes

DEGREE = np.pi / 180
AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
TURNS = {name: rotation.between((1.0, 0.0, 0.0), axis) for name, axis in AXES.items()}
"""From the x axis, along which joints are, to the one that a joint names."""
TO_AXIS = {name: rotation.between((0.0, 0.0, 1.0), axis) for name, axis in AXES.items()}
"""The same from z, along which capsules, cylinders and cones stand."""
UP = {"Z": rotation.IDENTITY, "Y": rotation.from_axis_angle((1.0, 0.0, 0.0), np.pi / 2)}
JOINT_KINDS = ("FixedJoint", "RevoluteJoint", "PrismaticJoint", "SphericalJoint", "DistanceJoint", "D6Joint")


def read_usd(path: Path, notes: Notes) -> Model:
    """The model of a USD file: .usd, .usda, .usdc or .usdz."""
    try:
        from pxr import Tf, Usd
    except ImportError:
        raise LapjointError(f"{path}: reading it needs usd-core: pip install 'lapjoint[usd]'") from None
    try:
        check_layers(path)
        stage = Usd.Stage.Open(str(path.resolve()))
    except Tf.ErrorException as error:
        text = " ".join(str(error).split())
        raise LapjointError(f"{path}: cannot be read as USD: {text}") from None
    return _Reader(stage, notes).read()


def check_layers(path: Path) -> None:
    """Refuse a file that refers to layers outside its folder, to none that exist, or to itself in a circle of
    sublayers; none of these is opened then."""
    from pxr import Sdf

    folder = path.resolve().parent
    waiting, seen = [path.resolve()], set()
    while waiting:
        own = waiting.pop()
        if own in seen:
            continue
        seen.add(own)
        if not own.is_file():
            raise LapjointError(f"{own}: there is no such file")
        layer = Sdf.Layer.FindOrOpen(str(own))
        if layer is None:
            raise LapjointError(f"{own}: cannot be read as USD")
        for name in layer.GetCompositionAssetDependencies():
            if not name:
                continue
            other = Path(name)
            found = (other if other.is_absolute() else own.parent / other).resolve()
            if "://" in name or not found.is_relative_to(folder):
                raise LapjointError(f"{own}: refers to {name!r}, which is outside the folder {folder}")
            if not found.is_file():
                raise LapjointError(f"{own}: refers to {name!r}: there is no such file")
            waiting.append(found)


def _vector(value: Any) -> Array:
    return np.array([value[0], value[1], value[2]], float)


def _quaternion(value: Any) -> Array:
    imaginary = value.GetImaginary()
    found = np.array([value.GetReal(), *imaginary], float)
    return found / np.linalg.norm(found)


class _Reader:
    def __init__(self, stage: Any, notes: Notes) -> None:
        from pxr import Usd, UsdGeom, UsdPhysics

        self._physics, self._stage, self._notes = UsdPhysics, stage, notes
        self._unit = float(UsdGeom.GetStageMetersPerUnit(stage))
        self._mass_unit = float(UsdPhysics.GetStageKilogramsPerUnit(stage))
        self._up = UP[str(UsdGeom.GetStageUpAxis(stage))]
        self._parsed = UsdPhysics.LoadUsdPhysicsFromRange(stage, ["/"])
        self._proxies = Usd.TraverseInstanceProxies
        self._model = Model(notes.path.stem)
        self._link_of: dict[str, int] = {}
        self._labels: dict[tuple[frozenset[str], str], int] = {}

    def read(self) -> Model:
        self._read_scene()
        self._read_bodies()
        self._read_shapes()
        self._read_masses()
        for kind in JOINT_KINDS:
            for desc in self._all(kind):
                self._read_joint(kind, desc)
        for desc in self._all("CustomJoint"):
            raise self._notes.refuse(str(desc.primPath), "a joint of a kind that is not in the standard")
        self._read_filters()
        if not any(link.motion is Motion.MOVING for link in self._model.links):
            raise self._notes.refuse("", "has no rigid body (UsdPhysics.RigidBodyAPI), expected at least one")
        return self._model

    def _all(self, kind: str) -> Iterator[Any]:
        """All objects of a kind, in the order of their paths."""
        kinds = self._parsed.get(getattr(self._physics.ObjectType, kind))
        return iter(sorted(kinds[1], key=lambda desc: str(desc.primPath)) if kinds else ())

    def _length(self, value: Any) -> Array:
        return self._unit * _vector(value)

    # ---- the scene and its links -----------------------------------------------------------------------------------

    def _read_scene(self) -> None:
        scenes = list(self._all("Scene"))
        if len(scenes) > 1:
            self._notes.leave_out(str(scenes[1].primPath), f"all bodies are in the scene {scenes[0].primPath}")
        direction, magnitude = np.zeros(3), -np.inf
        if scenes:
            direction, magnitude = _vector(scenes[0].gravityDirection), float(scenes[0].gravityMagnitude)
        if not direction.any():
            direction = rotation.rotate(rotation.conjugate(self._up), (0.0, 0.0, -1.0))
        size = 9.81 if not np.isfinite(magnitude) or magnitude < 0 else magnitude * self._unit
        self._model.gravity = size * rotation.rotate(self._up, direction / np.linalg.norm(direction))

    def _read_bodies(self) -> None:
        for desc in self._all("RigidBody"):
            path = str(desc.primPath)
            motion = Motion.MOVING
            if not desc.rigidBodyEnabled:
                motion = Motion.STATIC
            elif desc.kinematicBody:
                motion = Motion.KINEMATIC
            link = Link(path, where=path, motion=motion)
            link.position = rotation.rotate(self._up, self._length(desc.position))
            link.quaternion = rotation.multiply(self._up, _quaternion(desc.rotation))
            link.linear_velocity = rotation.rotate(self._up, self._length(desc.linearVelocity))
            link.angular_velocity = DEGREE * rotation.rotate(self._up, _vector(desc.angularVelocity))
            if desc.startsAsleep:
                self._notes.leave_out(path, "it starts asleep")
            self._link_of[path] = len(self._model.links)
            self._model.links.append(link)

    # ---- shapes ----------------------------------------------------------------------------------------------------

    def _read_shapes(self) -> None:
        kinds = ("Sphere", "Cube", "Capsule", "Cylinder", "Cone", "Plane", "Mesh")
        world: Link | None = None
        for kind in (*kinds, "Capsule1", "Cylinder1", "SpherePoints", "Custom"):
            for desc in self._all(f"{kind}Shape"):
                if not desc.collisionEnabled:
                    self._notes.leave_out(str(desc.primPath), "its collisions are disabled")
                    continue
                body = str(desc.rigidBody)
                if body in self._link_of:
                    link = self._model.links[self._link_of[body]]
                    collider = self._collider(kind, desc, link)
                else:
                    if world is None:
                        world = Link("world", motion=Motion.STATIC, where="/")
                        self._model.links.append(world)
                    link = world
                    collider = self._collider(kind, desc, link)
                    collider.position = rotation.rotate(self._up, collider.position)
                    collider.quaternion = rotation.multiply(self._up, collider.quaternion)
                link.colliders.append(collider)
        for link in self._model.links:
            link.colliders.sort(key=lambda collider: collider.where)

    def _collider(self, kind: str, desc: Any, link: Link) -> Collider:
        where = str(desc.primPath)
        place, turn = self._length(desc.localPos), _quaternion(desc.localRot)
        shape, offset, own_turn = self._shape(kind, desc, where, link)
        collider = Collider(
            shape, place + rotation.rotate(turn, offset), rotation.multiply(turn, own_turn), where=where
        )
        collider.material = self._material(desc)
        groups = frozenset(str(group) for group in desc.collisionGroups)
        alone = where if self._is_filtered_alone(where) else ""
        collider.label = self._labels.setdefault((groups, alone), len(self._labels))
        return collider

    def _shape(self, kind: str, desc: Any, where: str, link: Link) -> tuple[StaticShape, Array, Array]:
        """A shape, where its centre is and how it is turned in the collider's frame."""
        unit, here, straight = self._unit, np.zeros(3), rotation.IDENTITY
        if kind == "Sphere":
            return Sphere(desc.radius * unit), here, straight
        if kind == "Cube":
            return Box(tuple(2 * self._length(desc.halfExtents))), here, straight
        if kind in ("Capsule", "Cylinder", "Cone"):
            turn, length = TO_AXIS[desc.axis.name], 2 * desc.halfHeight * unit
            if kind == "Cone":
                # Its frame is in the middle of its height, its centre of mass a quarter above its base.
                cone = Cone(desc.radius * unit, length)
                return cone, rotation.rotate(turn, (0.0, 0.0, -length / 4)), turn
            return (Capsule if kind == "Capsule" else Cylinder)(desc.radius * unit, length), here, turn
        if kind == "Plane":
            if link.motion is Motion.MOVING:
                raise self._notes.refuse(where, "a plane on a body that moves, expected one that is static")
            return Plane(), here, TO_AXIS[desc.axis.name]
        if kind == "Mesh":
            return self._mesh(desc, where, link)
        raise self._notes.refuse(where, f"a shape that lapjoint does not have ({kind})")

    def _mesh(self, desc: Any, where: str, link: Link) -> tuple[StaticShape, Array, Array]:
        from pxr import UsdGeom

        mesh = UsdGeom.Mesh(self._stage.GetPrimAtPath(desc.primPath))
        points = np.array(mesh.GetPointsAttr().Get() or [], float).reshape(-1, 3)
        points = points * _vector(desc.meshScale) * self._unit
        straight = rotation.IDENTITY
        how = str(desc.approximation)
        if len(points) == 0:
            raise self._notes.refuse(where, "a mesh without points")
        if how in ("boundingSphere", "boundingCube"):
            low, high = points.min(axis=0), points.max(axis=0)
            middle = (low + high) / 2
            if how == "boundingCube":
                return Box(tuple(high - low)), middle, straight
            return Sphere(float(np.linalg.norm(points - middle, axis=1).max())), middle, straight
        if how in ("none", "meshSimplification") and link.motion is not Motion.MOVING:
            return TriangleMesh(points, self._triangles(mesh, where)), np.zeros(3), straight
        if how == "convexDecomposition":
            parts = decompose(points, self._triangles(mesh, where))
            return parts, parts.centre, straight
        if how != "convexHull":
            self._notes.approximate(where, f"a mesh that moves is its convex hull (its approximation is {how!r})")
        hull = ConvexHull(points)
        corners = ConvexHull(hull_faces(hull.points)[0])
        return corners, hull.centre + corners.centre, straight

    def _triangles(self, mesh: Any, where: str) -> NDArray[np.int32]:
        """Polygons as fans of triangles."""
        counts = np.array(mesh.GetFaceVertexCountsAttr().Get() or [], int)
        corners = np.array(mesh.GetFaceVertexIndicesAttr().Get() or [], int)
        if counts.sum() != len(corners) or (counts < 3).any():
            raise self._notes.refuse(where, "a mesh whose faces do not add up to their corners")
        if (counts == 3).all():
            return corners.reshape(-1, 3).astype(np.int32)
        ends = np.cumsum(counts)
        fans = [_fan(corners[end - count : end]) for end, count in zip(ends, counts, strict=True)]
        return np.concatenate([np.empty((0, 3), int), *fans]).astype(np.int32)

    def _material(self, desc: Any) -> Material:
        from pxr import Sdf

        for path in desc.materials:
            if path == Sdf.Path.emptyPath:
                continue
            prim = self._stage.GetPrimAtPath(path)
            if not prim or not prim.HasAPI(self._physics.MaterialAPI):
                continue
            own = self._physics.MaterialAPI(prim)
            still, moving = float(own.GetStaticFrictionAttr().Get()), float(own.GetDynamicFrictionAttr().Get())
            if still != moving:
                self._notes.approximate(str(path), "there is one coefficient of friction: the dynamic one")
            return Material(
                friction=moving,
                restitution=float(own.GetRestitutionAttr().Get()),
                friction_combine="average",
                restitution_combine="average",
            )
        return Material()

    # ---- masses ----------------------------------------------------------------------------------------------------

    def _read_masses(self) -> None:
        """By the standard's precedence, which usd-core knows; it asks for volumes."""
        from pxr import Gf

        scale, mass_unit = self._unit, self._mass_unit
        for path, number in self._link_of.items():
            link = self._model.links[number]
            if link.motion is not Motion.MOVING:
                continue
            by_path = {collider.where: collider for collider in link.colliders}

            def information(prim: Any, by_path: dict[str, Collider] = by_path) -> Any:
                found = self._physics.RigidBodyAPI.MassInformation()
                collider = by_path.get(str(prim.GetPath()))
                found.volume, found.localPos, found.localRot = -1.0, Gf.Vec3f(0), Gf.Quatf(1)
                found.centerOfMass, found.inertia = Gf.Vec3f(0), Gf.Matrix3f(1)
                if collider is None or isinstance(collider.shape, STATIC_ONLY):
                    return found
                volume, inertia = mass_properties(collider.shape)
                turn = rotation.to_matrix(collider.quaternion)
                found.volume = volume / scale**3
                found.inertia = Gf.Matrix3f(*(turn @ inertia @ turn.T / scale**5).ravel().tolist())
                found.localPos = Gf.Vec3f(*(collider.position / scale).tolist())
                return found

            api = self._physics.RigidBodyAPI(self._stage.GetPrimAtPath(path))
            mass, diagonal, centre, axes = api.ComputeMassProperties(information)
            if not mass > 0:
                raise self._notes.refuse(path, f"its mass is {mass}, expected a positive one")
            turn = rotation.to_matrix(_quaternion(axes))
            inertia = turn @ np.diag(_vector(diagonal)) @ turn.T
            link.mass = Mass(mass * mass_unit, self._length(centre), inertia * mass_unit * scale**2)

    # ---- joints ----------------------------------------------------------------------------------------------------

    def _read_joint(self, kind: str, desc: Any) -> None:
        where, notes = str(desc.primPath), self._notes
        if not desc.jointEnabled:
            notes.leave_out(where, "a joint that is not enabled")
            return
        axis = desc.axis.name if kind in ("RevoluteJoint", "PrismaticJoint", "SphericalJoint") else "X"
        ends = []
        for body, place, turn in (
            (desc.body0, desc.localPose0Position, desc.localPose0Orientation),
            (desc.body1, desc.localPose1Position, desc.localPose1Orientation),
        ):
            ends.append(self._end(str(body), place, turn, TURNS[axis]))
        if ends[0][0] == ends[1][0] == WORLD:
            raise notes.refuse(where, "joins nothing that moves")
        forward = ends[1][0] != WORLD  # body 1 moves relative to body 0
        (b, anchor_b, turn_b), (a, anchor_a, turn_a) = ends if forward else ends[::-1]
        joint = self._joint(kind, desc, where, 1.0 if forward else -1.0)
        self._model.joints.append(
            LinkJoint(
                joint,
                a,
                b,
                anchor_a,
                turn_a,
                anchor_b,
                turn_b,
                collide=bool(desc.collisionEnabled),
                name=where,
                where=where,
            )
        )

    def _end(self, body: str, place: Any, turn: Any, along: Array) -> tuple[int, Array, Array]:
        """A joint's frame on one of its bodies, in the world, and the link: WORLD where that does not move."""
        number = self._link_of.get(body, WORLD)
        position, quaternion = np.zeros(3), self._up
        if number != WORLD:
            link = self._model.links[number]
            position, quaternion = link.position, link.quaternion
            if link.motion is Motion.STATIC:
                number = WORLD
        anchor = position + rotation.rotate(quaternion, self._length(place))
        return number, anchor, rotation.multiply(rotation.multiply(quaternion, _quaternion(turn)), along)

    def _joint(self, kind: str, desc: Any, where: str, sign: float) -> Any:
        breaks = self._breaks(desc)
        if kind == "FixedJoint":
            return Fixed(breaks=breaks)
        if kind == "SphericalJoint":
            if not desc.limit.enabled:
                return Ball(breaks=breaks)
            low, high = desc.limit.lower * DEGREE, desc.limit.upper * DEGREE
            if low != high:
                self._notes.approximate(where, "its cone is round: by the smaller of its two angles")
            return Ball(swing=float(min(low, high)), breaks=breaks)
        if kind == "DistanceJoint":
            low = desc.limit.lower * self._unit if desc.minEnabled else 0.0
            high = desc.limit.upper * self._unit if desc.maxEnabled else np.inf
            return Distance(float(low), float(high), breaks=breaks)
        if kind == "D6Joint":
            return self._six_axis(desc, where, sign, breaks)
        angular = kind == "RevoluteJoint"
        limits = self._limits(desc.limit, angular, sign)
        drive = self._drive(desc.drive, angular, sign, where)
        return (Hinge if angular else Slider)(limits=limits, drive=drive, breaks=breaks)

    def _six_axis(self, desc: Any, where: str, sign: float, breaks: Breaks | None) -> SixAxis:
        names = ["TransX", "TransY", "TransZ", "RotX", "RotY", "RotZ"]
        limits, drives = [FREE] * 6, {}
        for pair in desc.jointLimits:
            if pair.first.name not in names:
                raise self._notes.refuse(where, "a limit of a distance in a joint of six axes")
            k = names.index(pair.first.name)
            limits[k] = self._limits(pair.second, k >= 3, sign)
        for pair in desc.jointDrives:
            if pair.first.name in names:
                k = names.index(pair.first.name)
                drive = self._drive(pair.second, k >= 3, sign, where)
                if drive is not None and limits[k] != LOCKED:
                    drives[k] = drive
        return SixAxis(linear=tuple(limits[:3]), angular=tuple(limits[3:]), drives=drives, breaks=breaks)

    def _limits(self, limit: Any, angular: bool, sign: float) -> tuple[float, float]:
        if not limit.enabled:
            return FREE
        scale = DEGREE if angular else self._unit
        low, high = float(limit.lower), float(limit.upper)
        if low > high:
            return LOCKED
        # Unlimited ends are written as the largest float32.
        ends = [one * scale if abs(one) < 1e30 else np.copysign(np.inf, one) for one in (low, high)]
        first, second = sorted(sign * end for end in ends)
        return first, second

    def _drive(self, drive: Any, angular: bool, sign: float, where: str) -> Drive | None:
        if not drive.enabled or not (drive.stiffness or drive.damping):
            return None
        unit = self._mass_unit * (self._unit**2 if angular else 1.0)
        if drive.acceleration:
            raise self._notes.refuse(where, "a drive of the type acceleration, expected force")
        scale = DEGREE if angular else self._unit
        force = unit if angular else self._mass_unit * self._unit
        limit = float(drive.forceLimit) * force if drive.forceLimit < 1e30 else np.inf
        # Angular stiffness is per degree.
        per = unit / DEGREE if angular else unit
        self._notes.count("drives")
        return Drive(
            position=sign * float(drive.targetPosition) * scale,
            velocity=sign * float(drive.targetVelocity) * scale,
            stiffness=float(drive.stiffness) * per,
            damping=float(drive.damping) * per,
            max_force=limit,
        )

    def _breaks(self, desc: Any) -> Breaks | None:
        force, torque = (float(one) if one < 1e30 else np.inf for one in (desc.breakForce, desc.breakTorque))
        if np.isinf(force) and np.isinf(torque):
            return None
        unit = self._mass_unit * self._unit
        return Breaks(force * unit, torque * unit * self._unit)

    # ---- filters ---------------------------------------------------------------------------------------------------

    def _filtered(self) -> Iterator[tuple[str, str]]:
        """Pairs of paths, of bodies or colliders, that must not touch."""
        kinds = ("RigidBody", "Articulation", "SphereShape", "CubeShape", "CapsuleShape", "CylinderShape", "ConeShape",
                 "PlaneShape", "MeshShape")  # fmt: skip
        for kind in kinds:
            for desc in self._all(kind):
                for other in desc.filteredCollisions:
                    yield str(desc.primPath), str(other)

    def _is_filtered_alone(self, path: str) -> bool:
        """Whether a collider, not its whole body, is in a pair that must not touch."""
        return any(path in pair for pair in self._filtered())

    def _read_filters(self) -> None:
        made = self._model
        table = self._physics.CollisionGroup.ComputeCollisionGroupTable(self._stage)
        labels = list(self._labels)
        made.may_touch = np.ones((max(1, len(labels)),) * 2, bool)
        for i, (groups, _) in enumerate(labels):
            for k, (others, _) in enumerate(labels):
                allowed = all(table.IsCollisionEnabled(one, other) for one in groups for other in others)
                made.may_touch[i, k] = allowed
        alone = {path: number for number, (_, path) in enumerate(labels) if path}
        for one, other in self._filtered():
            if one in alone and other in alone:
                made.may_touch[alone[one], alone[other]] = made.may_touch[alone[other], alone[one]] = False
                continue
            bodies = [self._bodies_below(path) for path in (one, other)]
            for a in bodies[0]:
                for b in bodies[1]:
                    if a != b:
                        made.ignored.append((a, b))

    def _bodies_below(self, path: str) -> list[int]:
        """Links of a body, of an articulation, or of all below a path."""
        return [n for name, n in self._link_of.items() if name == path or name.startswith(path + "/")]


def _fan(corners: NDArray[np.int64]) -> NDArray[np.int64]:
    """A polygon as triangles that share its first corner."""
    return np.stack([np.full(len(corners) - 2, corners[0]), corners[1:-1], corners[2:]], axis=1)

