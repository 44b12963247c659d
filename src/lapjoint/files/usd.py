"""USD files with UsdPhysics, by usd-core: references, payloads, instances and the standard's own rules of mass are
resolved there. Needs the extra `lapjoint[usd]`.

Lengths and masses are converted from the stage's units, degrees to radians, and y up to z up.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from math import isfinite, isnan
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import rotation
from ..errors import LapjointError
from ..scene import Material
from ..scene.filters import ALL_GROUPS
from ..scene.motions import GivenMotion
from ..scene.shapes import STATIC_ONLY, mass_properties
from ..system.files import check_file
from ..system.shortage import USD_ROOM, check_room, short_of
from . import usd_joints, usd_shapes
from . import usd_words as words
from .model import WORLD, Array, Collider, Link, LinkJoint, LinkSensor, Mass, Model, Motion
from .notes import Notes
from .own import set_link, set_model
from .usd_values import AXES, DEGREE, given, own_values, poses, quaternions, vector

TURNS = {name: rotation.between((1.0, 0.0, 0.0), axis) for name, axis in AXES.items()}
"""From the x axis, along which joints are, to the one that a joint names."""
SHAPES = [f"{kind}Shape" for kind in (*usd_shapes.KINDS, *usd_shapes.OTHERS)]
UP = {"Z": rotation.IDENTITY, "Y": rotation.from_axis_angle((1.0, 0.0, 0.0), np.pi / 2)}


def read_usd(path: Path, notes: Notes) -> Model:
    """The model of a USD file: .usd, .usda, .usdc or .usdz."""
    with short_of(str(path)):
        check_room(USD_ROOM)
    try:
        from pxr import Tf, Usd, UsdUtils
    except ImportError:
        raise LapjointError(f"{path}: reading it needs usd-core: pip install 'lapjoint[usd]'") from None
    quiet = UsdUtils.CoalescingDiagnosticDelegate()  # what it would print is in the errors below
    try:
        check_layers(path)
        stage = Usd.Stage.Open(str(path.resolve()))
        for error in stage.GetCompositionErrors():
            raise LapjointError(f"{path}: cannot be composed: {' '.join(str(error).split())}")
        return _Reader(stage, notes).read()
    except Tf.ErrorException as error:
        raise LapjointError(f"{path}: cannot be read as USD: {_said(error)}") from None
    except LapjointError:
        raise
    except (TypeError, ValueError, AttributeError, KeyError) as error:  # values of other types than the schemas have
        raise LapjointError(f"{path}: cannot be read as USD: {' '.join(str(error).split())}") from None
    finally:
        del quiet


def _said(error: Any) -> str:
    """What usd-core has against a file: the last of its errors says where, and in which line."""
    try:
        return " ".join(str(error.args[-1].commentary if error.args else error).split())
    except UnicodeDecodeError:  # it quotes the file
        return "it is no text in UTF-8"


def check_layers(path: Path) -> None:
    """Refuse a file that refers to layers outside its folder, or to none that exist; none of these is opened then.
    Layers of a package (.usdz) are those that are in it."""
    from pxr import Sdf

    folder = path.resolve().parent
    waiting, seen = [str(path.resolve())], set()
    while waiting:
        own = waiting.pop()
        if own in seen:
            continue
        seen.add(own)
        layer = Sdf.Layer.FindOrOpen(own)
        if layer is None:
            raise LapjointError(f"{own}: cannot be read as USD")
        for prim in _prims(layer):
            if prim.HasInfo("clips"):  # layers that no list of dependencies has
                raise LapjointError(f"{own}: {prim.path}: has value clips, which lapjoint does not read")
        waiting += [_found(own, name, folder) for name in layer.GetCompositionAssetDependencies() if name]


def _found(own: str, name: str, folder: Path) -> str:
    """A layer that another one refers to."""
    package, _, inner = own.removesuffix("]").partition("[")
    if Path(package).suffix.lower() == ".usdz":
        place = os.path.normpath(os.path.join(os.path.dirname(inner), name))
        if "://" in name or os.path.isabs(place) or place.startswith(".."):
            raise LapjointError(f"{own}: refers to {name!r}, which is outside the package")
        return f"{package}[{place}]"
    found = (Path(own).parent / name).resolve()
    if "://" in name or not found.is_relative_to(folder):
        raise LapjointError(f"{own}: refers to {name!r}, which is outside the folder {folder}")
    if not found.exists():
        raise LapjointError(f"{own}: refers to {name!r}: there is no such file")
    check_file(found)
    return str(found)


def _prims(layer: Any) -> Iterator[Any]:
    """All prims that a layer has opinions on."""
    waiting = list(layer.rootPrims)
    while waiting:
        prim = waiting.pop()
        waiting.extend(prim.nameChildren)
        for variants in prim.variantSets:
            waiting.extend(variant.primSpec for variant in variants.variantList)
        yield prim


class _Reader:
    def __init__(self, stage: Any, notes: Notes) -> None:
        from pxr import Usd, UsdGeom, UsdPhysics

        self._physics, self._stage, self._notes = UsdPhysics, stage, notes
        self._unit = float(UsdGeom.GetStageMetersPerUnit(stage))
        self._mass_unit = float(UsdPhysics.GetStageKilogramsPerUnit(stage))
        for name, value in (("metersPerUnit", self._unit), ("kilogramsPerUnit", self._mass_unit)):
            if not (np.isfinite(value) and value > 0):
                raise notes.refuse("", f"{name} is {value}, expected a positive number")
        self._up = UP[str(UsdGeom.GetStageUpAxis(stage))]
        newer = getattr(UsdPhysics, "UsdPhysicsLoadStageFromPrimRange", None)
        self._parsed = (newer or UsdPhysics.LoadUsdPhysicsFromRange)(stage, ["/"])
        walk = list(Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies()))
        self._order = {str(prim.GetPath()): number for number, prim in enumerate(walk)}
        self._refuse_instancers([UsdGeom.PointInstancer(prim) for prim in walk if prim.IsA(UsdGeom.PointInstancer)])
        # Files of other programs may have places over time alone; exports have the start besides.
        is_own = any(given(prim, words.TIMESTEP) is not None for prim in self._prims(["Scene"]))
        self._time = Usd.TimeCode.Default() if is_own else Usd.TimeCode.EarliestTime()
        self._frames = UsdGeom.XformCache(self._time)
        self._shapes = usd_shapes.Shapes(stage, self._unit, notes)
        self._joints = usd_joints.Joints(stage, self._unit, self._mass_unit, notes)
        self._model = Model(notes.path.stem)
        self._link_of: dict[str, int] = {}
        self._labels: dict[tuple[frozenset[str], str], int] = {}
        self._apart = list(self._filtered())
        self._alone: set[str] = set()

    def read(self) -> Model:
        self._read_scene()
        self._read_bodies()
        self._read_shapes()
        self._sort_links()
        self._place_sensors()
        self._read_masses()
        self._read_joints()
        self._read_filters()
        if not any(link.motion is Motion.MOVING for link in self._model.links):
            raise self._notes.refuse("", "has no rigid body (UsdPhysics.RigidBodyAPI), expected at least one")
        return self._model

    def _all(self, kind: str) -> Iterator[Any]:
        """All objects of a kind."""
        kinds = self._parsed.get(getattr(self._physics.ObjectType, kind))
        return iter(kinds[1] if kinds else ())

    def _prims(self, kinds: Sequence[str]) -> list[Any]:
        return [self._stage.GetPrimAtPath(desc.primPath) for kind in kinds for desc in self._all(kind)]

    def _refuse_instancers(self, instancers: Sequence[Any]) -> None:
        """Refuse bodies or colliders of a point instancer, which usd-core passes over."""
        from pxr import Usd

        kinds = (self._physics.RigidBodyAPI, self._physics.CollisionAPI)
        for instancer in instancers:
            for prototype in instancer.GetPrototypesRel().GetTargets():
                prims = Usd.PrimRange(self._stage.GetPrimAtPath(prototype))
                if any(prim.HasAPI(kind) for prim in prims for kind in kinds):
                    text = "a point instancer of bodies or colliders, expected instances (instanceable prims)"
                    raise self._notes.refuse(str(instancer.GetPath()), text)

    def _note_others(self, prims: Sequence[Any]) -> None:
        """Note schemas of other programs, and motions over time, that prims of bodies, colliders and joints have."""
        from pxr import UsdGeom

        for prim in prims:
            known = prim.GetAppliedSchemas()
            for schema in prim.GetPrimTypeInfo().GetAppliedAPISchemas():
                if schema not in known:
                    self._notes.leave_out(str(prim.GetPath()), f"{schema} is for another program")
            if self._time.IsEarliestTime() and UsdGeom.Xformable(prim).TransformMightBeTimeVarying():
                self._notes.leave_out(str(prim.GetPath()), "its places over time, but the first")

    def _sorted(self, kinds: Sequence[str]) -> list[tuple[str, Any]]:
        """All objects of some kinds, in the order in which the stage has them."""
        found = [(kind, desc) for kind in kinds for desc in self._all(kind)]
        return sorted(found, key=lambda one: self._order.get(str(one[1].primPath), -1))

    def _length(self, value: Any) -> Array:
        return self._unit * vector(value)

    def _places(self, prims: Sequence[Any]) -> tuple[Array, Array]:
        """Where prims are in the world: metres, and z up."""
        found = [self._frames.GetLocalToWorldTransform(prim) for prim in prims]
        positions, turns, wrong = poses(found)
        for number, text in wrong.items():
            raise self._notes.refuse(str(prims[number].GetPath()), text)
        return rotation.rotate(self._up, self._unit * positions), rotation.multiply(self._up, turns)

    # ---- the scene and its links -----------------------------------------------------------------------------------

    def _read_scene(self) -> None:
        scenes = [desc for _, desc in self._sorted(["Scene"])]
        if len(scenes) > 1:
            self._notes.leave_out(str(scenes[1].primPath), f"all bodies are in the scene {scenes[0].primPath}")
        direction, magnitude = np.zeros(3), -np.inf
        if scenes:
            direction, magnitude = vector(scenes[0].gravityDirection), float(scenes[0].gravityMagnitude)
            set_model(self._model, own_values(self._stage.GetPrimAtPath(scenes[0].primPath)))
        if not direction.any():
            direction = rotation.rotate(rotation.conjugate(self._up), (0.0, 0.0, -1.0))
        size = 9.81 if not np.isfinite(magnitude) or magnitude < 0 else magnitude * self._unit
        self._model.gravity = size * rotation.rotate(self._up, direction / np.linalg.norm(direction))

    def _read_bodies(self) -> None:
        found = [desc for _, desc in self._sorted(["RigidBody"])]
        prims = [self._stage.GetPrimAtPath(desc.primPath) for desc in found]
        self._note_others(prims)
        links = self._add_links(prims)
        linear, angular = (
            rotation.rotate(self._up, np.array([getattr(desc, name) for desc in found], float).reshape(-1, 3))
            for name in ("linearVelocity", "angularVelocity")
        )
        for number, (desc, link) in enumerate(zip(found, links, strict=True)):
            if not desc.rigidBodyEnabled:
                link.motion = Motion.STATIC
            elif desc.kinematicBody:
                link.motion = Motion.KINEMATIC
            link.linear_velocity, link.angular_velocity = self._unit * linear[number], DEGREE * angular[number]
            if desc.startsAsleep:
                self._notes.leave_out(link.where, "it starts asleep")
        # Pairs of bodies can be ignored; colliders of all other pairs have labels of their own.
        self._alone = {path for pair in self._apart if not all(map(self._bodies_below, pair)) for path in pair}

    def _add_links(self, prims: Sequence[Any], motion: Motion = Motion.MOVING) -> list[Link]:
        """Links at prims, with what an export has written there."""
        added = []
        for prim, position, turn in zip(prims, *self._places(prims), strict=True):
            path, own = str(prim.GetPath()), own_values(prim)
            link = Link(path, position, turn, motion=motion, where=path)
            if "kind" in own:
                set_link(link, own)
            if "motionKind" in own:
                values, base = (np.array(own.get(name, []), float) for name in ("motionValues", "motionBase"))
                start = int(own.get("motionStart", 0))
                link.given_motion = GivenMotion(int(own["motionKind"]), values, start, base)
            self._link_of[path] = len(self._model.links)
            self._model.links.append(link)
            added.append(link)
        return added

    # ---- colliders -------------------------------------------------------------------------------------------------

    def _read_shapes(self) -> None:
        found = []
        for kind, desc in self._sorted(SHAPES):
            if not desc.collisionEnabled and self._is_sensor(desc, kind.removesuffix("Shape")):
                continue
            if desc.collisionEnabled:
                found.append((kind.removesuffix("Shape"), desc, self._stage.GetPrimAtPath(desc.primPath)))
            else:
                self._notes.leave_out(str(desc.primPath), "its collisions are disabled")
        if not found:
            return
        prims = [prim for _, _, prim in found]
        self._note_others([prim for _, desc, prim in found if desc.primPath != desc.rigidBody])
        places, turns = self._places(prims)
        links, shapes = [], []
        for kind, desc, prim in found:
            body = str(desc.rigidBody)
            link = self._model.links[self._link_of[body]] if body in self._link_of else self._static_link(prim)
            links.append(link)
            shapes.append(self._shapes.shape(kind, desc, link.motion is Motion.MOVING))
        # In the links' frames, all at once.
        back = rotation.conjugate(np.array([link.quaternion for link in links]))
        turns = rotation.multiply(back, turns)
        places = rotation.rotate(back, places - np.array([link.position for link in links]))
        places += rotation.rotate(turns, np.array([offset for _, offset, _ in shapes]))
        turns = rotation.multiply(turns, np.array([turn for _, _, turn in shapes]))
        materials = self._materials_of(prims)
        for row, (_, desc, prim) in enumerate(found):
            where = str(desc.primPath)
            collider = Collider(shapes[row][0], places[row], turns[row], materials[row], where=where)
            collider.relative_density = float(given(prim, words.RELATIVE_DENSITY, 1.0))
            groups = frozenset(str(group) for group in desc.collisionGroups)
            alone = where if self._alone and not self._alone.isdisjoint(_and_above(where)) else ""
            collider.label = self._labels.setdefault((groups, alone), len(self._labels))
            links[row].colliders.append(collider)

    def _is_sensor(self, desc: Any, kind: str) -> bool:
        """Whether a collider that collides with nothing is a sensor of an export; it is noted then, with its place in
        the world."""
        prim = self._stage.GetPrimAtPath(desc.primPath)
        above = prim.GetParent()
        own = own_values(above) if above else {}
        if own.get("kind") != "sensor":
            return False
        shape, offset, turn = self._shapes.shape(kind, desc, False)
        places, turns = self._places([prim])
        position = places[0] + rotation.rotate(turns[0], offset)
        sensor = LinkSensor(shape, WORLD, position, rotation.multiply(turns[0], turn), int(own["mask"]))
        sensor.name, sensor.where = str(own.get("name", "")), str(above.GetPath())
        self._model.sensors.append(sensor)
        return True

    def _place_sensors(self) -> None:
        """Sensors in the frames of what they are on."""
        for sensor in self._model.sensors:
            relation = self._stage.GetPrimAtPath(sensor.where).GetRelationship(words.ON)
            targets = relation.GetTargets() if relation else []
            if not targets:
                continue
            sensor.link = self._link_of[str(targets[0])]
            link = self._model.links[sensor.link]
            back = rotation.conjugate(link.quaternion)
            sensor.position = rotation.rotate(back, sensor.position - link.position)
            sensor.quaternion = rotation.multiply(back, sensor.quaternion)

    def _static_link(self, prim: Any) -> Link:
        """Of a collider that is on no body: a body that is not enabled, the static body of an export, or the world."""
        above = prim
        while above and given(above, words.KIND) is None and str(above.GetPath()) not in self._link_of:
            above = above.GetParent()
        path = str(above.GetPath()) if above else "/"
        if path in self._link_of:
            return self._model.links[self._link_of[path]]
        if above:
            return self._add_links([above], Motion.STATIC)[0]
        self._link_of[path] = len(self._model.links)
        self._model.links.append(Link("world", motion=Motion.STATIC, where="/"))
        return self._model.links[-1]

    def _materials_of(self, prims: Sequence[Any]) -> list[Material]:
        """Of colliders: those that they inherit from prims above them too."""
        from pxr import UsdShade

        made: dict[str, Material] = {"": Material()}
        found = []
        for material in UsdShade.MaterialBindingAPI.ComputeBoundMaterials(prims, "physics")[0]:
            path = str(material.GetPath()) if material else ""
            if path not in made:
                made[path] = self._material(material.GetPrim())
            found.append(made[path])
        return found

    def _material(self, prim: Any) -> Material:
        if not prim.HasAPI(self._physics.MaterialAPI):
            return Material()
        own, where = self._physics.MaterialAPI(prim), str(prim.GetPath())
        still, moving = float(own.GetStaticFrictionAttr().Get()), float(own.GetDynamicFrictionAttr().Get())
        if still != moving:
            self._notes.approximate(where, "there is one coefficient of friction: the dynamic one")
        try:
            return Material(
                friction=moving,
                restitution=float(own.GetRestitutionAttr().Get()),
                rolling_friction=float(given(prim, words.ROLLING_FRICTION, 0.0)),
                friction_combine=given(prim, words.FRICTION_COMBINE, "average"),
                restitution_combine=given(prim, words.RESTITUTION_COMBINE, "average"),
            )
        except LapjointError as error:
            raise self._notes.refuse(where, str(error)) from None

    def _sort_links(self) -> None:
        """Links in the order in which the stage has them, which is that of an exported scene."""
        links = self._model.links
        order = sorted(range(len(links)), key=lambda number: self._order.get(links[number].where, -1))
        self._model.links = [links[number] for number in order]
        place = {before: now for now, before in enumerate(order)}
        self._link_of = {path: place[number] for path, number in self._link_of.items()}

    # ---- masses ----------------------------------------------------------------------------------------------------

    def _read_masses(self) -> None:
        """By the standard's precedence, which usd-core knows; it asks for volumes."""
        from pxr import Gf

        scale, mass_unit = self._unit, self._mass_unit
        solids: dict[Any, tuple[float, Array]] = {}
        links, rows = [], []
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
                if collider.shape not in solids:
                    solids[collider.shape] = mass_properties(collider.shape)
                volume, inertia = solids[collider.shape]
                turn = rotation.to_matrix(collider.quaternion)
                found.volume = volume / scale**3
                found.inertia = Gf.Matrix3f(*(turn @ inertia @ turn.T / scale**5).ravel().tolist())
                found.localPos = Gf.Vec3f(*(collider.position / scale).tolist())
                return found

            prim = self._stage.GetPrimAtPath(path)
            for where in (path, *by_path):
                self._check_mass(self._stage.GetPrimAtPath(where))
            mass, diagonal, centre, axes = _all_given(prim) or self._physics.RigidBodyAPI(prim).ComputeMassProperties(
                information
            )
            if not mass > 0:
                raise self._notes.refuse(path, f"its mass is {mass}, expected a positive one")
            links.append(link)
            rows.append((mass, *diagonal, *centre, axes.GetReal(), *axes.GetImaginary()))
        table = np.array(rows, float).reshape(-1, 11)
        turns = rotation.to_matrix(table[:, 7:] / np.linalg.norm(table[:, 7:], axis=1, keepdims=True))
        inertias = (turns * table[:, None, 1:4]) @ turns.transpose(0, 2, 1) * (mass_unit * scale**2)
        for link, row, inertia in zip(links, table, inertias, strict=True):
            link.mass = Mass(float(row[0]) * mass_unit, scale * row[4:7], inertia)

    def _check_mass(self, prim: Any) -> None:
        """Refuse what usd-core would pass over. Zero is no mass of its own, by the standard."""
        if not prim.HasAPI(self._physics.MassAPI):
            return
        for name in ("mass", "density"):
            value = given(prim, f"physics:{name}", 0.0)
            if not (isfinite(value) and value >= 0):
                raise self._notes.refuse(str(prim.GetPath()), f"its {name} is {value}, expected a positive number")
        for name in ("centerOfMass", "diagonalInertia"):
            value = given(prim, f"physics:{name}")
            if value is not None and any(isnan(one) for one in value):
                raise self._notes.refuse(str(prim.GetPath()), f"its {name} is {value}, expected numbers")

    # ---- joints ----------------------------------------------------------------------------------------------------

    def _read_joints(self) -> None:
        found = []
        for kind, desc in self._sorted((*usd_joints.KINDS, *usd_joints.OTHERS)):
            if desc.jointEnabled:
                found.append((kind, desc))
            else:
                self._notes.leave_out(str(desc.primPath), "a joint that is not enabled")
        if not found:
            return
        self._note_others([self._stage.GetPrimAtPath(desc.primPath) for _, desc in found])
        along = np.array([TURNS[desc.axis.name if kind in usd_joints.WITH_AXIS else "X"] for kind, desc in found])
        ends = [self._ends([desc for _, desc in found], side, along) for side in (0, 1)]
        for row, (kind, desc) in enumerate(found):
            where = str(desc.primPath)
            for named in (desc.rel0, desc.rel1):
                if not named.isEmpty and not self._stage.GetPrimAtPath(named):
                    raise self._notes.refuse(where, f"joins {named}, which does not exist")
            other, one = ((end[0][row], end[1][row], end[2][row]) for end in ends)
            if one[0] == other[0] == WORLD:
                raise self._notes.refuse(where, "joins nothing that moves")
            sign = 1.0  # body 1 moves relative to body 0
            if one[0] == WORLD:
                one, other, sign = other, one, -1.0
            (a, anchor_a, turn_a), (b, anchor_b, turn_b) = one, other
            joint, touching = self._joints.joint(kind, desc, sign), bool(desc.collisionEnabled)
            self._model.joints.append(
                LinkJoint(joint, a, b, anchor_a, turn_a, anchor_b, turn_b, collide=touching, name=where, where=where)
            )

    def _ends(self, found: Sequence[Any], side: int, along: Array) -> tuple[list[int], Array, Array]:
        """Of joints, on one of their sides: the links, WORLD where these do not move, and the frames in the world."""
        links = self._model.links
        numbers = [self._link_of.get(str(getattr(desc, f"body{side}")), WORLD) for desc in found]
        origins = np.array([np.zeros(3) if n == WORLD else links[n].position for n in numbers])
        attitudes = np.array([self._up if n == WORLD else links[n].quaternion for n in numbers])
        places = self._unit * np.array([tuple(getattr(desc, f"localPose{side}Position")) for desc in found], float)
        turns = quaternions(getattr(desc, f"localPose{side}Orientation") for desc in found)
        moving = [WORLD if n != WORLD and links[n].motion is Motion.STATIC else n for n in numbers]
        anchors = origins + rotation.rotate(attitudes, places)
        return moving, anchors, rotation.multiply(rotation.multiply(attitudes, turns), along)

    # ---- filters ---------------------------------------------------------------------------------------------------

    def _filtered(self) -> Iterator[tuple[str, str]]:
        """Pairs of paths, of bodies or colliders, that must not touch."""
        for _, desc in self._sorted(("RigidBody", "Articulation", *SHAPES)):
            for other in desc.filteredCollisions:
                yield str(desc.primPath), str(other)

    def _read_filters(self) -> None:
        made = self._model
        table = self._physics.CollisionGroup.ComputeCollisionGroupTable(self._stage)
        labels = list(self._labels)
        made.may_touch = np.ones((max(1, len(labels)),) * 2, bool)
        for i, (groups, _) in enumerate(labels):
            for k, (others, _) in enumerate(labels):
                allowed = all(table.IsCollisionEnabled(one, other) for one in groups for other in others)
                made.may_touch[i, k] = allowed
        bits = [self._bits(groups) for groups, _ in labels]
        made.bits = [one for one in bits if one is not None] if None not in bits else None
        for pair in self._apart:
            one, other = (self._bodies_below(path) for path in pair)
            if one and other:
                made.ignored += [(a, b) for a in one for b in other if a != b]
                continue
            rows, columns = (
                [n for n, (_, path) in enumerate(labels) if f"{path}/".startswith(f"{top}/")] for top in pair
            )
            made.may_touch[np.ix_(rows, columns)] = made.may_touch[np.ix_(columns, rows)] = False

    def _bits(self, groups: frozenset[str]) -> tuple[int, int] | None:
        """Group and mask that an export has written of a collision group."""
        if not groups:
            return 1, ALL_GROUPS
        prims = [self._stage.GetPrimAtPath(path) for path in groups]
        found = [(given(prim, words.GROUP), given(prim, words.MASK)) for prim in prims]
        return (int(found[0][0]), int(found[0][1])) if len(found) == 1 and None not in found[0] else None

    def _bodies_below(self, path: str) -> list[int]:
        """Links of a body, of an articulation, or of all below a path."""
        if path in self._link_of:
            return [self._link_of[path]]
        return [n for name, n in self._link_of.items() if name.startswith(path + "/")]


def _and_above(path: str) -> list[str]:
    """A path and those of all prims above it."""
    return [path, *(path[:end] for end, letter in enumerate(path) if letter == "/" and end)]


def _all_given(prim: Any) -> tuple[float, Any, Any, Any] | None:
    """Mass, moments, centre and axes of a body that has all of them: nothing follows from its colliders then."""
    mass, centre = given(prim, "physics:mass", 0.0), given(prim, "physics:centerOfMass")
    moments, axes = given(prim, "physics:diagonalInertia"), given(prim, "physics:principalAxes")
    if not mass > 0 or centre is None or moments is None or axes is None:
        return None
    if not (all(map(isfinite, centre)) and any(moments) and axes.GetLength() > 0):
        return None
    return mass, moments, centre, axes
