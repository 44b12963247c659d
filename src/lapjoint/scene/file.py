"""The file format of a scene: a NumPy .npz (uncompressed zip of .npy arrays) plus a JSON description. No pickle.

A scene is a description and arrays (scene/serialize.py); here is how these become bytes and back, and how shapes are
described. The bytes depend on the content alone, so equal scenes have equal files.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import LapjointError, shortened
from .archive import read_archive
from .fields import FIELD_ARRAYS
from .height_field import HeightField
from .materials import Material
from .motions import MOTION_ARRAYS
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
from .solids import Cone, Ellipsoid
from .tables import BODY_LAYOUT, JOINT_LAYOUT, SENSOR_LAYOUT, STATIC_LAYOUT

FORMAT = "lapjoint scene"
VERSION = 1
TABLES = {"bodies": BODY_LAYOUT, "statics": STATIC_LAYOUT, "joints": JOINT_LAYOUT}
_COLUMNS = "|".join(
    f"{table}/{column}" for table, layout in {**TABLES, "sensors": SENSOR_LAYOUT}.items() for column in layout
)
_MOTIONS = "|".join(f"motions/{name}" for name in MOTION_ARRAYS)
_FIELDS = "|".join(f"fields/{name}" for name in FIELD_ARRAYS)
_GLUED = r"glued/\d+/[a-z]+"
_MEMBER = re.compile(
    rf"description|gravity|ignored|{_COLUMNS}|{_MOTIONS}|{_FIELDS}|{_GLUED}"
    r"|(glued/\d+/)?shape(/\d+)+/(points|vertices|triangles|heights)"
)
"""Names of arrays that a scene can have."""
PLAIN_SHAPES = {kind.__name__: kind for kind in (Sphere, Box, Capsule, Cylinder, Ellipsoid, Cone, Plane)}


def pack_scene(description: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """The content of a scene file."""
    text = json.dumps({"format": FORMAT, "version": VERSION, **description}, sort_keys=True).encode()
    entries = {**arrays, "description": np.frombuffer(text, np.uint8)}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(entries):
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(entries[name]), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(name + ".npy"), content.getvalue())  # a fixed date: equal bytes
    return buffer.getvalue()


def unpack_scene(content: bytes, source: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Description and arrays from the content of a scene file; `source` is what errors call it."""
    try:
        arrays = read_archive(content, lambda name: _MEMBER.fullmatch(name) is not None)
        description = json.loads(arrays["description"].tobytes())
        if description["format"] != FORMAT:
            raise KeyError("format")
    except Exception as error:  # whatever NumPy, zipfile and json make of a foreign or torn file
        raise LapjointError(f"{source}: not a lapjoint scene file ({shortened(error)})") from None
    if description.get("version") != VERSION:
        version = shortened(description.get("version"))
        raise LapjointError(f"{source}: scene file version {version}, this lapjoint reads {VERSION}")
    return description, arrays


def describe_shape(shape: StaticShape, key: str, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """A shape as JSON; its large arrays are added to `arrays` under `key`."""
    kind = type(shape).__name__
    if kind in PLAIN_SHAPES:
        return {"kind": kind, **vars(shape)}
    if isinstance(shape, ConvexHull):
        arrays[f"{key}/points"] = shape.points
        return {"kind": kind, "key": key}
    if isinstance(shape, TriangleMesh):
        arrays[f"{key}/vertices"], arrays[f"{key}/triangles"] = shape.vertices, shape.triangles
        return {"kind": kind, "key": key}
    if isinstance(shape, HeightField):
        arrays[f"{key}/heights"] = shape.heights
        return {"kind": kind, "key": key, "spacing": shape.spacing}
    assert isinstance(shape, Compound)
    parts = [
        {
            "shape": describe_shape(part.shape, f"{key}/{i}", arrays),
            "position": part.position,
            "quaternion": part.quaternion,
            **_own_of(part),
        }
        for i, part in enumerate(shape.parts)
    ]
    return {"kind": kind, "parts": parts}


def _own_of(part: Part) -> dict[str, Any]:
    """What a part has of its own, and not from its body."""
    own = {
        "material": None if part.material is None else vars(part.material),
        "group": part.group,
        "mask": part.mask,
        "relative_density": None if part.relative_density == 1 else part.relative_density,
    }
    return {name: value for name, value in own.items() if value is not None}


def restore_shape(entry: dict[str, Any], arrays: dict[str, NDArray[Any]], trusted: bool = False) -> StaticShape:
    """The shape that `describe_shape` described. What is trusted is neither checked nor is its mass computed again."""
    entry = dict(entry)
    kind = entry.pop("kind")
    if kind in PLAIN_SHAPES:
        return PLAIN_SHAPES[kind](**entry)
    if kind == "ConvexHull":
        points = arrays[f"{entry['key']}/points"]
        return ConvexHull.centred(points) if trusted else ConvexHull(points)
    if kind == "TriangleMesh":
        return TriangleMesh(arrays[f"{entry['key']}/vertices"], arrays[f"{entry['key']}/triangles"])
    if kind == "HeightField":
        return HeightField(arrays[f"{entry['key']}/heights"], tuple(entry["spacing"]))
    if kind == "Compound":
        parts = [_restore_part(part, arrays, trusted) for part in entry["parts"]]
        # Not about its parts' centre again: a body may have its mass elsewhere.
        return Compound.centred(tuple(parts)) if parts else Compound(())
    raise KeyError(f"shape {kind}")


def _restore_part(entry: dict[str, Any], arrays: dict[str, NDArray[Any]], trusted: bool) -> Part:
    shape, place = (
        restore_shape(entry["shape"], arrays, trusted),
        (tuple(entry["position"]), tuple(entry["quaternion"])),
    )
    own = {name: entry[name] for name in ("group", "mask", "relative_density") if name in entry}
    material = Material(**entry["material"]) if "material" in entry else None
    return Part(shape, *place, material=material, **own)  # type: ignore[arg-type]
