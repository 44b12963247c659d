"""A scene or a recording as an animated glTF file, with the extensions for rigid bodies. Needs no package but NumPy."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....arrays import rotation
from ....scene import Scene
from ....scene.content import ignored_explicitly
from ....scene.sensors import IN_WORLD
from ...draw.colors import to_linear
from ...draw.output import replacing
from ...draw.renderer import STATIC_COLOR
from ..filters import exported_sensors, filters_in_use
from ..frames import Frames
from ..tables import materials_of, principal_axes
from .animation import Animation
from .colliders import Colliders
from .document import Document
from .joints import add_joints
from .looks import Looks

MAGIC, VERSION, JSON_CHUNK, BINARY_CHUNK = 0x46546C67, 2, 0x4E4F534A, 0x004E4942


def write_gltf(frames: Frames, path: Path, on_body: Callable[[int, int], None] | None = None) -> None:
    """Write the file; its ending says whether it is binary (.glb) or text with its buffer inside (.gltf). `on_body` is
    called with the number of bodies written, and of all."""
    document = _document(frames, on_body)
    whole, content = document.to_dict(frames.scene.name), document.buffer.content
    if content:
        whole["buffers"] = [{"byteLength": len(content)}]
    if path.suffix.lower() == ".glb":
        written = _binary(_json(whole), content)
    else:
        if content:
            text = base64.b64encode(content).decode()
            whole["buffers"][0]["uri"] = f"data:application/octet-stream;base64,{text}"
        written = _json(whole)
    with replacing(path) as part:
        part.write_bytes(written)


def _json(whole: dict[str, Any]) -> bytes:
    return json.dumps(whole, separators=(",", ":"), allow_nan=False).encode()


def _binary(text: bytes, content: bytes) -> bytes:
    text += b" " * (-len(text) % 4)
    chunks = [(JSON_CHUNK, text)] + ([(BINARY_CHUNK, content + bytes(-len(content) % 4))] if content else [])
    size = 12 + sum(8 + len(chunk) for _, chunk in chunks)
    pieces = [np.array([MAGIC, VERSION, size], "<u4").tobytes()]
    for kind, chunk in chunks:
        pieces += [np.array([len(chunk), kind], "<u4").tobytes(), chunk]
    return b"".join(pieces)


def _document(frames: Frames, on_body: Callable[[int, int], None] | None) -> Document:
    scene, document = frames.scene, Document()
    places = np.concatenate([scene.bodies.position, scene.statics.position, np.zeros((1, 3))])
    looks = Looks(document, 4 * max(5.0, float(np.abs(places).max())))
    colliders = Colliders(document, filters_in_use(scene, frames.body_count))
    animation = Animation(document, frames)
    bodies = _add_bodies(document, frames, colliders)
    statics = _add_statics(document, scene, colliders, looks)
    for i, node in enumerate(bodies):
        _show(frames, i, node, looks, animation)
        if on_body is not None and (i % 100 == 99 or i + 1 == len(bodies)):
            on_body(i + 1, len(bodies))
    add_joints(document, scene, bodies, frames.joint_count)
    _add_sensors(document, scene, colliders, bodies, statics)
    if frames.is_moving:
        animation.add_poses(bodies, frames.positions, frames.quaternions)
        kinematic = [statics[k] for k in scene.kinematic_ids]
        animation.add_poses(kinematic, frames.static_poses[:, :, :3], frames.static_poses[:, :, 3:])
    document.animations = animation.to_list()
    document.own = _settings(scene, bodies, frames.body_count)
    return document


def _settings(scene: Scene, bodies: list[int], count: int) -> dict[str, Any]:
    """What the extensions have no word for."""
    own: dict[str, Any] = {
        "name": scene.name,
        "gravity": scene.gravity.tolist(),
        "timestep": scene.timestep,
        "iterations": scene.iterations,
        "growthDepth": scene.growth_depth,
        "searchDepth": scene.search_depth,
    }
    if scene.camera is not None:
        own["camera"] = np.array(scene.camera, float).tolist()
    pairs = np.unique(np.sort(ignored_explicitly(scene), axis=1), axis=0)
    ignored = [[bodies[a], bodies[b]] for a, b in pairs.tolist() if b < count]
    return {**own, "ignored": ignored} if ignored else own


def _add_bodies(document: Document, frames: Frames, colliders: Colliders) -> list[int]:
    scene, table = frames.scene, frames.scene.bodies
    materials, which = materials_of(table)
    moments, axes = principal_axes(table.inertia)
    states, nodes = scene.states, []
    velocities = [rotation.rotate(rotation.conjugate(states[:, 3:7]), states[:, k : k + 3]) for k in (7, 10)]
    for i in range(scene.body_count):
        node = document.add_node(
            document.root,
            scene.body_names.get(i, f"body {i}"),
            position=states[i, :3],
            quaternion=states[i, 3:7],
        )
        nodes.append(node)
        if i >= frames.body_count:
            continue
        motion: dict[str, Any] = {
            "mass": float(table.mass[i]),
            "centerOfMass": [0.0, 0.0, 0.0],
            "inertiaDiagonal": moments[i].tolist(),
        }
        if (axes[i] != rotation.IDENTITY).any():
            motion["inertiaOrientation"] = np.roll(axes[i], -1).tolist()
        for name, velocity in zip(("linearVelocity", "angularVelocity"), velocities, strict=True):
            if velocity[i].any():
                motion[name] = velocity[i].tolist()
        document.rigid(node)["motion"] = motion
        document.note(node, kind="body", **_others(scene, i))
        shape = scene.shapes[table.shape_id[i]]
        colliders.add(node, shape, materials[which[i]], int(table.group[i]), int(table.mask[i]))
    return nodes


def _others(scene: Scene, i: int) -> dict[str, Any]:
    """What else a body has."""
    table = scene.bodies
    found = {
        "name": (scene.body_names.get(i), None),
        "label": (int(table.label[i]), 0),
        "hitImpulse": (float(table.hit_impulse[i]), np.inf),
        "hitSpeed": (float(table.hit_speed[i]), np.inf),
        "touchEvents": (bool(table.touch_events[i]), False),
        "linearDamping": (float(table.linear_damping[i]), 0.0),
        "angularDamping": (float(table.angular_damping[i]), 0.0),
    }
    return {name: value for name, (value, missing) in found.items() if value != missing}


def _add_statics(document: Document, scene: Scene, colliders: Colliders, looks: Looks) -> list[int]:
    table, nodes = scene.statics, []
    materials, which = materials_of(table)
    for i in range(scene.static_count):
        place, turn, shape = table.position[i], table.quaternion[i], scene.shapes[table.shape_id[i]]
        motion = scene.motions.get(i)
        node = document.add_node(
            document.root, f"{'static' if motion is None else 'kinematic'} {i}", position=place, quaternion=turn
        )
        nodes.append(node)
        document.note(node, kind="static" if motion is None else "kinematic")
        if table.surface_velocity[i].any():
            document.note(node, surfaceVelocity=table.surface_velocity[i].tolist())
        if motion is not None:
            document.rigid(node)["motion"] = {"isKinematic": True}
            base, values = motion.base.tolist(), motion.values.tolist()
            document.note(node, motion={"kind": motion.kind, "start": motion.start, "base": base, "values": values})
        colliders.add(node, shape, materials[which[i]], int(table.group[i]), int(table.mask[i]))
        looks.add(node, shape, "static", to_linear(STATIC_COLOR))
    return nodes


def _add_sensors(document: Document, scene: Scene, colliders: Colliders, bodies: list[int], statics: list[int]) -> None:
    table = scene.sensors
    for i in exported_sensors(scene):
        on = int(table.body[i])
        parent = document.root if on == IN_WORLD else bodies[on] if on >= 0 else statics[-1 - on]
        shape = scene.shapes[table.shape_id[i]]
        node = colliders.add_trigger(parent, shape, table.position[i], table.quaternion[i], int(table.mask[i]))
        name = table.names.get(i)
        document.note(node, kind="sensor", **({} if name is None else {"name": name}))
        document.nodes[node]["name"] = name or f"sensor {i}"


def _show(frames: Frames, i: int, node: int, looks: Looks, animation: Animation) -> None:
    """A body in the colours of its owners: a node for each, of which one is of some size at a time."""
    shape = frames.scene.shapes[frames.scene.bodies.shape_id[i]]
    owners: NDArray[np.int32] = frames.owners[:, i]
    used = np.unique(owners[frames.shown[:, i]])
    for owner in used.tolist():
        seen, scale = looks.add(node, shape, f"{frames.owner_name} {owner}", frames.palette[owner])
        shown = frames.shown[:, i] & (owners == owner)
        if not shown.all():
            animation.add_shown(seen, shown, scale)
            if not shown[0]:
                looks.hide(seen)
