"""Bodies as prims: bodies that move, static and kinematic ones. Each is an instance of its shape's class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pxr import Gf, Sdf, Vt

from ....arrays import rotation
from ....files import usd_words as words
from ....scene import Scene
from ....scene.motions import GivenMotion
from ....scene.sensors import IN_WORLD
from ...draw.colors import to_linear
from ...draw.renderer import STATIC_COLOR
from ..filters import exported_sensors
from ..frames import Frames
from ..tables import materials_of, principal_axes
from .layer import Prim, Types, add_apis, add_prim, doubles, numbered, place, put, quatf, relate, vec3f
from .materials import add_material
from .shapes import GEOMETRY, add_shape

Array = NDArray[np.float64]
BINDING = "MaterialBindingAPI"
APIS = {
    "shape": ("PhysicsRigidBodyAPI", "PhysicsMassAPI", BINDING),
    "static": (BINDING,),
    "seen": (),
    "sensor": (),
}
KINDS = {"shape": "body", "static": "static", "sensor": "sensor"}


class Shapes:
    """The classes of shapes that bodies, static bodies, and bodies that are only seen refer to."""

    def __init__(self, parent: Prim, frames: Frames) -> None:
        self._parent, self._frames, scene = parent, frames, frames.scene
        self._made: dict[tuple[str, int], Any] = {}
        places = np.concatenate([scene.bodies.position, scene.statics.position, np.zeros((1, 3))])
        self._extent = 4 * max(5.0, float(np.abs(places).max()))
        self.moments, self.axes = principal_axes(scene.bodies.inertia)
        self.like: dict[int, int] = {}
        """Of each shape the body whose mass its class has: others have theirs only where it differs."""

    def of_body(self, body: int) -> Any:
        shape_id = int(self._frames.scene.bodies.shape_id[body])
        if body >= self._frames.body_count:
            return self._reference("seen", shape_id)
        self.like.setdefault(shape_id, body)
        return self._reference("shape", shape_id)

    def of_sensor(self, number: int) -> Any:
        return self._reference("sensor", int(self._frames.scene.sensors.shape_id[number]))

    def of_static(self, number: int) -> Any:
        return self._reference("static", int(self._frames.scene.statics.shape_id[number]))

    def _reference(self, role: str, shape_id: int) -> Any:
        if (role, shape_id) not in self._made:
            scene = self._frames.scene
            name, apis = numbered(role, shape_id, len(scene.shapes)), APIS[role]
            prim = add_shape(
                self._parent, name, scene.shapes[shape_id], self._extent, apis=apis, collides=role != "seen"
            )
            if role in KINDS:
                put(prim, words.KIND, Types.Token, KINDS[role], uniform=True)
            if role == "sensor":
                # A collider that collides with nothing, and is not drawn.
                put(prim, "purpose", Types.Token, "guide", uniform=True)
                put(prim.nameChildren[GEOMETRY], "physics:collisionEnabled", Types.Bool, False)
            if role == "shape":
                # A body is where its centre of mass is, and has its axes.
                put(prim, "physics:centerOfMass", Types.Point3f, Gf.Vec3f(0.0))
                put(prim, "physics:principalAxes", Types.Quatf, Gf.Quatf(1.0))
                body = self.like[shape_id]
                put(prim, "physics:mass", Types.Float, float(scene.bodies.mass[body]))
                put(prim, "physics:diagonalInertia", Types.Float3, vec3f(self.moments[body]))
            self._made[role, shape_id] = Sdf.Reference("", prim.path)
        return self._made[role, shape_id]


class Materials:
    """Materials of one table's bodies. The most common is bound for all, the others for those that have them."""

    def __init__(self, scope: Prim, name: str, table: Any, bodies: Prim) -> None:
        found, self._which = materials_of(table)
        self._prims = [add_material(scope, numbered(name, k, len(found)), one) for k, one in enumerate(found)]
        self._common = int(np.bincount(self._which).argmax()) if len(self._which) else -1
        if self._common >= 0:
            add_apis(bodies, [BINDING])
            relate(bodies, "material:binding:physics", [self._prims[self._common].path])

    def bind(self, prim: Prim, number: int) -> None:
        which = self._which[number]
        if which != self._common:
            relate(prim, "material:binding:physics", [self._prims[which].path])


def add_bodies(parent: Prim, frames: Frames, shapes: Shapes, materials: Materials) -> list[Any]:
    """All bodies; their paths."""
    scene, bodies = frames.scene, frames.scene.bodies
    count, names = scene.body_count, scene.body_names
    states, colors = scene.states, frames.colors[0].astype(float).tolist()
    positions, quaternions = states[:, :3].tolist(), states[:, 3:7].tolist()
    references = [shapes.of_body(i) for i in range(count)]
    like = np.array([shapes.like.get(k, 0) for k in bodies.shape_id.tolist()], int)
    heavier = bodies.mass != bodies.mass[like]
    rounder = (shapes.moments != shapes.moments[like]).any(axis=1)
    turned = (shapes.axes != rotation.IDENTITY).any(axis=1)
    moves = (states[:, 7:] != 0).any(axis=1)
    more = _others(bodies)
    paths = []
    for i in range(count):
        prim = add_prim(parent, numbered("body", i, count, names.get(i, "")), "Xform")
        paths.append(prim.path)
        prim.referenceList.prependedItems = [references[i]]
        put(prim, "xformOp:translate", Types.Double3, Gf.Vec3d(*positions[i]))
        put(prim, "xformOp:orient", Types.Quatd, Gf.Quatd(*quaternions[i]))
        _color(prim, colors[i])
        if i >= frames.body_count:
            continue
        if heavier[i]:
            put(prim, "physics:mass", Types.Float, float(bodies.mass[i]))
        if rounder[i]:
            put(prim, "physics:diagonalInertia", Types.Float3, vec3f(shapes.moments[i]))
        if turned[i]:
            put(prim, "physics:principalAxes", Types.Quatf, quatf(shapes.axes[i]))
        if moves[i]:
            put(prim, "physics:velocity", Types.Vector3f, vec3f(states[i, 7:10]))
            put(prim, "physics:angularVelocity", Types.Vector3f, vec3f(np.degrees(states[i, 10:])))
        materials.bind(prim, i)
        if i in names:
            put(prim, words.NAME, Types.String, names[i], uniform=True)
        for name, kind, value in more.get(i, ()):
            put(prim, name, kind, value, uniform=True)
    return paths


def _others(bodies: Any) -> dict[int, list[tuple[str, Any, Any]]]:
    """What else bodies have that have it, by their numbers: name, type and value of attributes."""
    found: dict[int, list[tuple[str, Any, Any]]] = {}
    for name, kind, column, missing in (
        (words.LABEL, Types.Int, bodies.label, 0),
        (words.HIT_IMPULSE, Types.Double, bodies.hit_impulse, np.inf),
        (words.HIT_SPEED, Types.Double, bodies.hit_speed, np.inf),
        (words.TOUCH_EVENTS, Types.Bool, bodies.touch_events, False),
        (words.LINEAR_DAMPING, Types.Double, bodies.linear_damping, 0.0),
        (words.ANGULAR_DAMPING, Types.Double, bodies.angular_damping, 0.0),
    ):
        for i in np.flatnonzero(column != missing).tolist():
            found.setdefault(i, []).append((name, kind, column[i].item()))
    return found


def add_statics(parent: Prim, scene: Scene, shapes: Shapes, materials: Materials) -> list[Any]:
    """All static bodies, kinematic ones among them; their paths."""
    statics, count = scene.statics, scene.static_count
    color, paths = to_linear(STATIC_COLOR).tolist(), []
    for i in range(count):
        prim = add_prim(parent, numbered("static", i, count), "Xform")
        paths.append(prim.path)
        prim.referenceList.prependedItems = [shapes.of_static(i)]
        place(prim, statics.position[i], statics.quaternion[i])
        _color(prim, color)
        materials.bind(prim, i)
        if statics.surface_velocity[i].any():
            put(prim, words.SURFACE_VELOCITY, Types.DoubleArray, doubles(statics.surface_velocity[i]), uniform=True)
        if i in scene.motions:
            _add_motion(prim, scene.motions[i])
    return paths


def add_sensors(parent: Prim, scene: Scene, shapes: Shapes, bodies: Sequence[Any], statics: Sequence[Any]) -> None:
    """Sensors, where they are as the scene starts."""
    table, chosen = scene.sensors, exported_sensors(scene)
    for i in chosen:
        prim = add_prim(parent, numbered("sensor", i, len(table), table.names.get(i, "")), "Xform")
        prim.referenceList.prependedItems = [shapes.of_sensor(i)]
        position, turn, on = table.position[i], table.quaternion[i], int(table.body[i])
        if on != IN_WORLD:
            owner, row = (scene.bodies, on) if on >= 0 else (scene.statics, -1 - on)
            position = owner.position[row] + rotation.rotate(owner.quaternion[row], position)
            turn = rotation.multiply(owner.quaternion[row], turn)
            relate(prim, words.ON, [bodies[on] if on >= 0 else statics[-1 - on]])
        place(prim, position, turn)
        put(prim, words.MASK, Types.UInt, int(table.mask[i]), uniform=True)
        if i in table.names:
            put(prim, words.NAME, Types.String, table.names[i], uniform=True)


def _add_motion(prim: Prim, motion: GivenMotion) -> None:
    add_apis(prim, ["PhysicsRigidBodyAPI"])
    put(prim, "physics:kinematicEnabled", Types.Bool, True)
    put(prim, words.MOTION_KIND, Types.Int, motion.kind, uniform=True)
    put(prim, words.MOTION_START, Types.Int64, motion.start, uniform=True)
    put(prim, words.MOTION_BASE, Types.DoubleArray, doubles(motion.base), uniform=True)
    if len(motion.values):
        put(prim, words.MOTION_VALUES, Types.DoubleArray, doubles(motion.values), uniform=True)


def _color(prim: Prim, color: Sequence[float]) -> None:
    spec = put(prim, "primvars:displayColor", Types.Color3fArray, Vt.Vec3fArray(1, Gf.Vec3f(*color)))
    spec.SetInfo("interpolation", "constant")
