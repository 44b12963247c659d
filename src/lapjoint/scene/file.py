"""A scene in one file: a NumPy .npz (uncompressed zip of .npy arrays) plus a JSON description. No pickle.

The bytes depend on the scene alone, so equal scenes have equal files.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.checks import as_rows, inertia_rows, integer_rows, positive_rows, unit_quaternions
from ..arrays.columns import Columns
from ..errors import LapjointError
from .joints import KINDS
from .scene import Scene
from .shapes import (
    Box,
    Capsule,
    Compound,
    ConvexHull,
    Cylinder,
    Part,
    Plane,
    Sphere,
    StaticShape,
    TriangleMesh,
)

FORMAT = "lapjoint scene"
VERSION = 1
TABLES = ("bodies", "statics", "joints")
PLAIN_SHAPES = {kind.__name__: kind for kind in (Sphere, Box, Capsule, Cylinder, Plane)}


def describe_scene(scene: Scene) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Everything that a scene is, as a description for JSON and arrays by name."""
    arrays: dict[str, NDArray[Any]] = {}
    description = {
        "format": FORMAT,
        "version": VERSION,
        "name": scene.name,
        "timestep": scene.timestep,
        "iterations": scene.iterations,
        "growth_depth": scene.growth_depth,
        "search_depth": scene.search_depth,
        "camera": scene.camera,
        "shapes": [_describe(shape, f"shape/{i}", arrays) for i, shape in enumerate(scene.shapes)],
        "body_names": {str(body_id): name for body_id, name in scene.body_names.items()},
    }
    arrays["gravity"] = scene.gravity
    arrays["ignored"] = np.concatenate([np.empty((0, 2), np.int32), *scene._ignored])
    for table in TABLES:
        for name, column in getattr(scene, table).to_arrays().items():
            arrays[f"{table}/{name}"] = column
    return description, arrays


def scene_bytes(scene: Scene) -> bytes:
    """The file's content."""
    description, arrays = describe_scene(scene)
    text = json.dumps(description, sort_keys=True).encode()
    arrays["description"] = np.frombuffer(text, np.uint8)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(arrays[name]), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(name + ".npy"), content.getvalue())  # a fixed date: equal bytes
    return buffer.getvalue()


def save_scene(scene: Scene, path: Path) -> Path:
    try:
        path.write_bytes(scene_bytes(scene))
    except OSError as error:
        raise LapjointError(f"{path}: cannot be written: {error.strerror or error}") from None
    return path


def load_scene(path: Path) -> Scene:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LapjointError(f"{path}: {error.strerror or error}") from None
    return parse_scene(content, str(path))


def parse_scene(content: bytes, source: str) -> Scene:
    """A scene from a file's content; `source` is what errors call it."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        description = json.loads(arrays["description"].tobytes())
        if description["format"] != FORMAT:
            raise KeyError("format")
    except Exception as error:  # whatever NumPy, zipfile and json make of a foreign or torn file
        raise LapjointError(f"{source}: not a lapjoint scene file ({error})") from None
    if description.get("version") != VERSION:
        raise LapjointError(f"{source}: scene file version {description.get('version')}, this lapjoint reads {VERSION}")
    try:
        for table in TABLES:
            for name in (name for name in arrays if name.startswith(f"{table}/")):
                if arrays[name].dtype.kind == "f" and np.isnan(arrays[name]).any():
                    raise KeyError(name)
        scene = restore_scene(description, arrays)
        _check(scene)
    except (KeyError, TypeError, IndexError, AttributeError, AssertionError) as error:
        raise LapjointError(f"{source}: damaged scene file (missing or wrong {error})") from None
    except ValueError as error:
        raise LapjointError(f"{source}: damaged scene file ({error})") from None
    return scene


def _check(scene: Scene) -> None:
    """What is checked when things are added to a scene, and engines rely on."""
    for name, columns in (("body", scene.bodies), ("static body", scene.statics)):

        def title(row: int, name: str = name) -> str:
            return f"{name} {row}"

        count = len(columns)
        integer_rows("shape number", columns.shape_id, count, title, 0, len(scene.shapes) - 1)
        as_rows("position", columns.position, count, (3,), title)
        unit_quaternions(columns.quaternion, count, title)
        as_rows("surface", np.stack([columns.friction, columns.restitution, columns.rolling_friction], 1), count, (3,))
    bodies, joints = scene.bodies, scene.joints
    scene.bounding_radii()  # every body's shape can move
    positive_rows("mass", bodies.mass, len(bodies), scene.body_title)
    inertia_rows(bodies.inertia, len(bodies), scene.body_title)
    as_rows("velocity", np.concatenate([bodies.linear_velocity, bodies.angular_velocity], 1), len(bodies), (6,))
    integer_rows("joint kind", joints.kind, len(joints), None, 0, len(KINDS) - 1)
    scene.check_joint_bodies(joints.body_a, joints.body_b, lambda row: f"joint {row}")
    for frame in (joints.frame_a, joints.frame_b):
        as_rows("anchor", frame[:, :3], len(joints), (3,), "joint")
        unit_quaternions(frame[:, 3:], len(joints), lambda row: f"joint {row}")
    if (joints.lower > joints.upper).any() or not set(scene.body_names) <= set(range(len(bodies))):
        raise ValueError("limits or names")


def restore_scene(description: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Scene:
    """The scene that describe_scene described; its tables are these arrays, where they fit."""
    scene = Scene(
        description["name"],
        gravity=arrays["gravity"],
        timestep=description["timestep"],
        iterations=description["iterations"],
        growth_depth=description["growth_depth"],
        search_depth=description["search_depth"],
    )
    camera = description["camera"]
    scene.camera = None if camera is None else (tuple(camera[0]), tuple(camera[1]))
    scene.shapes = [_shape(entry, arrays) for entry in description["shapes"]]
    scene._shape_ids = {shape: i for i, shape in enumerate(scene.shapes)}
    for table in TABLES:
        columns: Columns = getattr(scene, table)
        values = {name: arrays[f"{table}/{name}"] for name in columns}
        columns.adopt(values)
    scene.body_names = {int(body_id): name for body_id, name in description["body_names"].items()}
    scene._body_ids = {name: body_id for body_id, name in scene.body_names.items()}
    if len(arrays["ignored"]):
        scene.ignore(arrays["ignored"][:, 0], arrays["ignored"][:, 1])
    return scene


def _describe(shape: StaticShape, key: str, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """A shape as JSON; its large arrays go beside it under `key`."""
    kind = type(shape).__name__
    if kind in PLAIN_SHAPES:
        return {"kind": kind, **vars(shape)}
    if isinstance(shape, ConvexHull):
        arrays[f"{key}/points"] = shape.points
        return {"kind": kind, "key": key}
    if isinstance(shape, TriangleMesh):
        arrays[f"{key}/vertices"], arrays[f"{key}/triangles"] = shape.vertices, shape.triangles
        return {"kind": kind, "key": key}
    assert isinstance(shape, Compound)
    parts = [
        {
            "shape": _describe(part.shape, f"{key}/{i}", arrays),
            "position": part.position,
            "quaternion": part.quaternion,
        }
        for i, part in enumerate(shape.parts)
    ]
    return {"kind": kind, "parts": parts}


def _shape(entry: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> StaticShape:
    entry = dict(entry)
    kind = entry.pop("kind")
    if kind in PLAIN_SHAPES:
        return PLAIN_SHAPES[kind](**entry)
    if kind == "ConvexHull":
        return ConvexHull(arrays[f"{entry['key']}/points"])
    if kind == "TriangleMesh":
        return TriangleMesh(arrays[f"{entry['key']}/vertices"], arrays[f"{entry['key']}/triangles"])
    if kind == "Compound":
        parts = [
            Part(_shape(part["shape"], arrays), tuple(part["position"]), tuple(part["quaternion"]))  # type: ignore[arg-type]
            for part in entry["parts"]
        ]
        return Compound(tuple(parts))
    raise KeyError(f"shape {kind}")
