"""A scene as a description and arrays, as bytes, and what was added to it as bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..arrays.packing import pack_arrays, unpack_arrays
from ..errors import LapjointError, shortened
from .check import check_scene
from .content import SceneContent, add_ignored, ignored_explicitly
from .field_functions import find_function
from .fields import FIELD_ARRAYS, pack_fields, unpack_fields
from .file import TABLES, describe_shape, pack_scene, restore_shape, unpack_scene
from .glue import pack_glued, unpack_glued
from .motions import MOTION_ARRAYS, pack_motions, unpack_motions
from .tables import MAY_BE_MISSING

Content = TypeVar("Content", bound=SceneContent)
Make = Callable[..., Content]
"""Scene, which is built on what is here."""
Extent = tuple[int, int, int]
"""Numbers of shapes, bodies and joints."""


def scene_to_bytes(scene: SceneContent) -> bytes:
    """The content of the file that `Scene.save` writes."""
    return pack_scene(*describe_scene(scene))


def scene_from_bytes(
    make: Make[Content], content: bytes, source: str, added: Iterable[NDArray[np.uint8]] = ()
) -> Content:
    """A scene from the content of its file; `source` is what errors call it. `added` is what was added to it since,
    piece by piece, as `added_since` returns it."""
    description, arrays = unpack_scene(content, source)
    try:
        _check_numbers(arrays)
        scene = restore_scene(make, description, arrays)
        for piece in added:
            _extend_checked(scene, piece)
        check_scene(scene)
    except (KeyError, TypeError, IndexError, AttributeError, AssertionError) as error:
        raise LapjointError(f"{source}: damaged scene file (missing or wrong {shortened(error)})") from None
    except (ValueError, OverflowError, RecursionError) as error:
        raise LapjointError(f"{source}: damaged scene file ({shortened(error)})") from None
    return scene


def describe_scene(scene: SceneContent) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Everything that the scene is, as a description for JSON and arrays by name."""
    arrays: dict[str, NDArray[Any]] = {}
    description = {
        "name": scene.name,
        "timestep": scene.timestep,
        "iterations": scene.iterations,
        "growth_depth": scene.growth_depth,
        "search_depth": scene.search_depth,
        "camera": scene.camera,
        "shapes": [describe_shape(shape, f"shape/{i}", arrays) for i, shape in enumerate(scene.shapes)],
        "body_names": {str(body_id): name for body_id, name in scene.body_names.items()},
    }
    arrays["gravity"] = scene.gravity
    arrays["ignored"] = ignored_explicitly(scene)
    for table_name in TABLES:
        for name, column in scene._table_arrays(table_name).items():
            arrays[f"{table_name}/{name}"] = column
    for name, value in MAY_BE_MISSING.items():
        if (arrays[name] == value).all():
            del arrays[name]
    scene.sensors.describe(description, arrays)
    if scene.glued:
        description["glued"] = pack_glued(scene.glued, arrays)
    if scene.motions:
        arrays |= {f"motions/{name}": array for name, array in pack_motions(scene.motions).items()}
    if scene.fields:
        arrays |= {f"fields/{name}": array for name, array in pack_fields(scene.fields).items()}
        description["field_names"] = [one.field.name for one in scene.fields if one.field is not None]
    return description, arrays


def restore_scene(
    make: Make[Content], description: dict[str, Any], arrays: dict[str, NDArray[Any]], trusted: bool = False
) -> Content:
    """The scene that `describe_scene` described; its tables are these arrays, where they fit. Nothing is checked but
    the shapes, and they are not either where the description is trusted."""
    scene = make(
        description["name"],
        gravity=arrays["gravity"],
        timestep=description["timestep"],
        iterations=description["iterations"],
        growth_depth=description["growth_depth"],
        search_depth=description["search_depth"],
    )
    camera = description["camera"]
    scene.camera = None if camera is None else (tuple(camera[0]), tuple(camera[1]))
    scene.shapes = [restore_shape(entry, arrays, trusted) for entry in description["shapes"]]
    scene._shape_ids = {shape: i for i, shape in enumerate(scene.shapes)}
    for table_name in TABLES:
        columns = scene._table(table_name)
        given = {name: arrays.get(f"{table_name}/{name}") for name in columns}
        count = len(arrays[f"{table_name}/{next(iter(columns))}"])
        for name in (name for name, column in given.items() if column is None):
            shape, dtype = TABLES[table_name][name]
            given[name] = np.full((count, *shape), MAY_BE_MISSING[f"{table_name}/{name}"], dtype)
        columns.adopt({name: column for name, column in given.items() if column is not None})
    scene.body_names = {int(body_id): name for body_id, name in description["body_names"].items()}
    scene._body_ids = {name: body_id for body_id, name in scene.body_names.items()}
    if "motions/ids" in arrays:
        scene.motions = unpack_motions({name: arrays[f"motions/{name}"] for name in MOTION_ARRAYS})
    if "fields/kinds" in arrays:
        references = description.get("field_references") if trusted else None
        scene.fields = unpack_fields(
            {name: arrays[f"fields/{name}"] for name in FIELD_ARRAYS},
            description["field_names"],
            lambda i: None if references is None else find_function(references[i]),
        )
    scene.sensors.restore(description, arrays)
    scene.glued = unpack_glued(description.get("glued", []), arrays, trusted)
    if len(arrays["ignored"]):
        add_ignored(scene, arrays["ignored"][:, 0], arrays["ignored"][:, 1])
    return scene


def scene_at(make: Make[Content], scene: SceneContent, extent: Extent) -> Content:
    """A scene as it was when it had this extent."""
    shapes, *counts = extent
    description, arrays = describe_scene(scene)
    for table_name, count in zip(("bodies", "joints"), counts, strict=True):
        arrays |= {name: array[:count] for name, array in arrays.items() if name.startswith(f"{table_name}/")}
    names = {key: name for key, name in description["body_names"].items() if int(key) < counts[0]}
    early = restore_scene(
        make, {**description, "shapes": description["shapes"][:shapes], "body_names": names}, arrays, True
    )
    early.fields = list(scene.fields)
    return early


def added_since(scene: SceneContent, extent: Extent) -> NDArray[np.uint8]:
    """What was added since the scene had this extent, as bytes for `extend_scene`."""
    arrays: dict[str, NDArray[Any]] = {}
    shapes, bodies, joints = extent
    added = [describe_shape(scene.shapes[i], f"shape/{i}", arrays) for i in range(shapes, len(scene.shapes))]
    names = {str(i): scene.body_names[i] for i in range(bodies, scene.body_count) if i in scene.body_names}
    for table_name, first in (("bodies", bodies), ("joints", joints)):
        for name, column in scene._table(table_name).views().items():
            value = MAY_BE_MISSING.get(f"{table_name}/{name}")
            if value is None or (column[first:] != value).any():
                arrays[f"{table_name}/{name}"] = column[first:]
    packed = pack_arrays(arrays, {"extent": extent, "shapes": added, "body_names": names})
    return np.frombuffer(b"".join(packed), np.uint8)


def extend_scene(scene: SceneContent, added: NDArray[np.uint8]) -> None:
    """Add what another scene, which began as this one, has more; what is here already is left as it is. Nothing is
    checked."""
    _extend(scene, *unpack_arrays(added.copy()), trusted=True)  # a message's memory is soon another's


def _extend_checked(scene: SceneContent, added: NDArray[np.uint8]) -> None:
    """Add what comes next to this very scene; `check_scene` has to follow. Errors as those of `restore_scene`."""
    arrays, description = unpack_arrays(added)
    if description["extent"] != list(scene.extent):
        raise ValueError(f"added to {description['extent']}, expected {list(scene.extent)}")
    for table_name in ("bodies", "joints"):
        columns = {f"{table_name}/{name}": shape for name, (shape, _) in TABLES[table_name].items()}
        count = len(arrays[next(iter(columns))])
        for name, shape in columns.items():
            if name in MAY_BE_MISSING and name not in arrays:
                arrays[name] = np.full((count, *shape), MAY_BE_MISSING[name])
            if arrays[name].shape != (count, *shape):
                raise KeyError(name)
    _check_numbers(arrays)
    before = len(scene.shapes)
    _extend(scene, arrays, description, trusted=False)
    if len(scene.shapes) != before + len(description["shapes"]):
        raise ValueError("shapes that are there already")


def _extend(scene: SceneContent, arrays: dict[str, NDArray[Any]], description: dict[str, Any], trusted: bool) -> None:
    shapes, *firsts = description["extent"]
    for entry in description["shapes"][len(scene.shapes) - shapes :]:
        scene._shape_id(restore_shape(entry, arrays, trusted))
    for table_name, first in zip(("bodies", "joints"), firsts, strict=True):
        columns = scene._table(table_name)
        there = len(columns) - first
        rows: dict[str, Any] = {}
        for name in columns:
            column = arrays.get(f"{table_name}/{name}")
            rows[name] = MAY_BE_MISSING[f"{table_name}/{name}"] if column is None else column[there:]
        columns.append(len(next(iter(rows.values()))), rows)
    scene.body_names |= {int(body_id): name for body_id, name in description["body_names"].items()}
    scene._body_ids |= {name: int(body_id) for body_id, name in description["body_names"].items()}


def _check_numbers(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse tables, with a KeyError, that have what is not a number."""
    for name in (name for name in arrays if name.partition("/")[0] in TABLES):
        if arrays[name].dtype.kind == "f" and np.isnan(arrays[name]).any():
            raise KeyError(name)
