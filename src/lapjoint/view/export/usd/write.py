"""A scene or a recording as a USD file: Xforms with time samples, and UsdPhysics, so that it opens as physics too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from pxr import Sdf, Tf

from ....errors import LapjointError
from ....files import usd_words as words
from ....scene import Scene
from ....system.shortage import reason_in
from ...draw.output import replacing
from ..frames import Frames
from .animation import add_animation
from .bodies import Materials, Shapes, add_bodies, add_sensors, add_statics
from .filters import add_filtered_pairs, add_filters, filters_of
from .joints import add_joints
from .layer import Prim, Types, add_prim, doubles, put, vec3f

SHAPES, ROOT = "_Shapes", "World"


def write_usd(frames: Frames, path: Path, on_body: Callable[[int, int], None] | None = None) -> None:
    """Write the file; its ending says whether it is text (.usda) or binary (.usdc, .usd). `on_body` is called with the
    number of bodies whose frames were written, and of all."""
    layer = Sdf.Layer.CreateAnonymous(".usda")
    with Sdf.ChangeBlock():
        _fill(layer, frames, on_body)
    # The ending of the part decides on the format; `.usd` is binary.
    ending = path.suffix.lower().replace(".usd", ".usdc") if path.suffix.lower() == ".usd" else path.suffix.lower()
    with replacing(path) as part:
        named = part.with_name(part.name + ending)
        try:
            if not layer.Export(str(named)):
                raise LapjointError(f"{path}: cannot be written")
            named.rename(part)
        except Tf.ErrorException as error:
            text = " ".join(str(error).split())
            raise LapjointError(f"{path}: cannot be written: {reason_in(text)}") from None
        finally:
            named.unlink(missing_ok=True)


def _fill(layer: Sdf.Layer, frames: Frames, on_body: Callable[[int, int], None] | None) -> None:
    scene = frames.scene
    _describe(layer, frames)
    classes = add_prim(layer, SHAPES, is_class=True)
    root = add_prim(layer, ROOT, "Xform")
    _add_physics_scene(root, scene)
    shapes = Shapes(classes, frames)
    scope, moving, still = (add_prim(root, name, "Scope") for name in ("Materials", "Bodies", "Statics"))
    bodies = add_bodies(moving, frames, shapes, Materials(scope, "body", scene.bodies, moving))
    statics = add_statics(still, scene, shapes, Materials(scope, "static", scene.statics, still))
    add_sensors(add_prim(root, "Sensors", "Scope"), scene, shapes, bodies, statics)
    add_joints(add_prim(root, "Joints", "Scope"), scene, bodies, frames.joint_count)
    add_filters(add_prim(root, "Groups", "Scope"), filters_of(scene, frames.body_count, bodies, statics))
    add_filtered_pairs(layer, scene, bodies, frames.body_count)
    if frames.is_moving:
        add_animation(layer, frames, bodies, [statics[k] for k in scene.kinematic_ids], on_body)


def _describe(layer: Sdf.Layer, frames: Frames) -> None:
    layer.defaultPrim = ROOT
    layer.documentation = f"{frames.scene.name}, written by lapjoint"
    for name, value in (("upAxis", "Z"), ("metersPerUnit", 1.0), ("kilogramsPerUnit", 1.0)):
        layer.pseudoRoot.SetInfo(name, value)
    if frames.is_moving:
        layer.timeCodesPerSecond = layer.framesPerSecond = frames.rate
        layer.startTimeCode, layer.endTimeCode = float(frames.time_codes[0]), float(frames.time_codes[-1])


def _add_physics_scene(root: Prim, scene: Scene) -> None:
    prim = add_prim(root, "PhysicsScene", "PhysicsScene")
    size = float(np.linalg.norm(scene.gravity))
    put(prim, "physics:gravityMagnitude", Types.Float, size)
    put(prim, "physics:gravityDirection", Types.Vector3f, vec3f(scene.gravity / size if size else (0, 0, -1)))
    put(prim, words.NAME, Types.String, scene.name, uniform=True)
    put(prim, words.TIMESTEP, Types.Double, scene.timestep, uniform=True)
    for name, value in (
        (words.ITERATIONS, scene.iterations),
        (words.GROWTH_DEPTH, scene.growth_depth),
        (words.SEARCH_DEPTH, scene.search_depth),
    ):
        put(prim, name, Types.Int, value, uniform=True)
    if scene.camera is not None:
        put(prim, words.CAMERA, Types.DoubleArray, doubles(np.array(scene.camera)), uniform=True)
