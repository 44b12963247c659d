"""Bodies as prims: bodies that move, static and kinematic ones. Each is an instance of its shape's class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pxr import Gf, Sdf, Vt

from ....arrays import rotation
from ....files import usd_words as words
from ....scene import Material, Scene
from ....scene.materials import COMBINE_RULES
from ....scene.motions import GivenMotion
from ...draw.colors import to_linear
from ...draw.renderer import STATIC_COLOR
from ..frames import Frames
from .layer import Prim, Types, add_prim, doubles, numbered, place, put, quatf, relate, vec3f

Array = NDArray[np.float64]
BODY = ("PhysicsRigidBodyAPI", "PhysicsMassAPI", "MaterialBindingAPI")
NEARLY_DIAGONAL = 1e-12


def principal_axes(inertia: Array) -> tuple[Array, Array]:
    """Principal moments (n, 3) and the quaternions (n, 4) of the axes that they are about."""
    moments = np.diagonal(inertia, axis1=1, axis2=2).copy()
    turns = np.tile(rotation.IDENTITY, (len(inertia), 1))
    beside = np.abs(inertia - moments[:, :, None] * np.eye(3)).max(axis=(1, 2))
    skew = np.flatnonzero(beside > NEARLY_DIAGONAL * moments.sum(axis=1))
    if len(skew):
        moments[skew], axes = np.linalg.eigh(inertia[skew])
        axes[np.linalg.det(axes) < 0, :, 0] *= -1
        turns[skew] = rotation.from_matrix(axes)
    return moments, turns


def materials_of(table: Any) -> tuple[list[Material], NDArray[np.int64]]:
    """The distinct materials of bodies or static bodies, without damping, and whose each one's is."""
    names = ("friction", "restitution", "rolling_friction", "friction_combine", "restitution_combine")
    columns = np.stack([np.asarray(getattr(table, name), float) for name in names], axis=1)
    rows, which = np.unique(columns, axis=0, return_inverse=True)
    found = [
        Material(*row[:3], friction_combine=COMBINE_RULES[int(row[3])], restitution_combine=COMBINE_RULES[int(row[4])])
        for row in rows.tolist()
    ]
    return found, which.reshape(-1)


def add_bodies(
    parent: Prim, frames: Frames, shapes: Sequence[Any], seen: Sequence[Any], materials: Sequence[Any]
) -> list[Any]:
    """All bodies; their paths. Shapes are paths by the shapes' numbers, those that are only seen for bodies that came
    later, and materials are paths by the bodies' numbers."""
    scene, bodies = frames.scene, frames.scene.bodies
    count = scene.body_count
    states, moments, turns = scene.states, *principal_axes(bodies.inertia)
    turned = (turns != rotation.IDENTITY).any(axis=1)
    moves = (states[:, 7:] != 0).any(axis=1)
    paths = []
    for i in range(count):
        prim = _add_instance(parent, numbered("body", i, count, scene.body_names.get(i, "")))
        paths.append(prim.path)
        place(prim, states[i, :3], states[i, 3:7])
        _color(prim, frames.colors[0, i])
        if i >= frames.body_count:
            _refer(prim, seen[bodies.shape_id[i]])
            continue
        _refer(prim, shapes[bodies.shape_id[i]], BODY)
        put(prim, "physics:mass", Types.Float, float(bodies.mass[i]))
        put(prim, "physics:diagonalInertia", Types.Float3, vec3f(moments[i]))
        if turned[i]:
            put(prim, "physics:principalAxes", Types.Quatf, quatf(turns[i]))
        if moves[i]:
            put(prim, "physics:velocity", Types.Vector3f, vec3f(states[i, 7:10]))
            put(prim, "physics:angularVelocity", Types.Vector3f, vec3f(np.degrees(states[i, 10:])))
        relate(prim, "material:binding:physics", [materials[i]])
        put(prim, words.KIND, Types.Token, "body", uniform=True)
        if i in scene.body_names:
            put(prim, words.NAME, Types.String, scene.body_names[i], uniform=True)
        for name, kind, value, missing in (
            (words.LABEL, Types.Int, int(bodies.label[i]), 0),
            (words.HIT_IMPULSE, Types.Double, float(bodies.hit_impulse[i]), np.inf),
            (words.LINEAR_DAMPING, Types.Double, float(bodies.linear_damping[i]), 0.0),
            (words.ANGULAR_DAMPING, Types.Double, float(bodies.angular_damping[i]), 0.0),
        ):
            if value != missing:
                put(prim, name, kind, value, uniform=True)
    return paths


def add_statics(parent: Prim, scene: Scene, shapes: Sequence[Any], materials: Sequence[Any]) -> list[Any]:
    """All static bodies, kinematic ones among them; their paths."""
    statics, count = scene.statics, scene.static_count
    color, paths = to_linear(STATIC_COLOR), []
    for i in range(count):
        motion = scene.motions.get(i)
        prim = _add_instance(parent, numbered("static", i, count))
        paths.append(prim.path)
        _refer(prim, shapes[statics.shape_id[i]], BODY[2:] if motion is None else (BODY[0], BODY[2]))
        place(prim, statics.position[i], statics.quaternion[i])
        _color(prim, color)
        relate(prim, "material:binding:physics", [materials[i]])
        put(prim, words.KIND, Types.Token, "static" if motion is None else "kinematic", uniform=True)
        if statics.surface_velocity[i].any():
            put(prim, words.SURFACE_VELOCITY, Types.DoubleArray, doubles(statics.surface_velocity[i]), uniform=True)
        if motion is not None:
            _add_motion(prim, motion)
    return paths


def _add_motion(prim: Prim, motion: GivenMotion) -> None:
    put(prim, "physics:kinematicEnabled", Types.Bool, True)
    put(prim, words.MOTION_KIND, Types.Int, motion.kind, uniform=True)
    put(prim, words.MOTION_START, Types.Int64, motion.start, uniform=True)
    put(prim, words.MOTION_BASE, Types.DoubleArray, doubles(motion.base), uniform=True)
    if len(motion.values):
        put(prim, words.MOTION_VALUES, Types.DoubleArray, doubles(motion.values), uniform=True)


def _add_instance(parent: Prim, name: str) -> Prim:
    prim = add_prim(parent, name, "Xform")
    prim.SetInfo("instanceable", True)
    return prim


def _refer(prim: Prim, shape: Any, apis: Sequence[str] = ()) -> None:
    prim.referenceList.prependedItems = [Sdf.Reference("", shape)]
    if apis:
        listed = Sdf.TokenListOp()
        listed.prependedItems = list(apis)
        prim.SetInfo("apiSchemas", listed)


def _color(prim: Prim, color: NDArray[Any]) -> None:
    value = Vt.Vec3fArray([Gf.Vec3f(*np.asarray(color, float).tolist())])
    put(prim, "primvars:displayColor", Types.Color3fArray, value).SetInfo("interpolation", "constant")
