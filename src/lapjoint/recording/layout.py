"""The layout of a recording: names, types and chunks of its arrays. docs/recording.md explains it."""

from __future__ import annotations

from dataclasses import fields

from ..step_tables import KEPT, StepTable

FORMAT = "lapjoint recording"
VERSION = 1
"""The second is of runs in which bodies or joints came or went: a reader of the first would take zeros for states."""
ROOT = "zarr.json"
PART = ".part"
"""At the end of a file's name while it is written."""
CHUNK_FRAMES = 32
BLOCK_BODIES = 4096
"""At most so many bodies in one chunk, so that a body's track does not need all bodies."""
LEAST_BLOCK_BODIES = 256
"""And at least so many, also of a scene that begins with few: it may become one of many."""

# One row per frame: name -> dtype and dimensions after the first. `states` and `first_worker` come in chunks of
# CHUNK_FRAMES frames.
FRAME_ARRAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "states": ("float32", ("body", "state")),
    "first_worker": ("uint16", ("body",)),
    "step_count": ("int64", ()),
    "time": ("float64", ()),
}

BODY_ARRAYS = tuple(name for name, (_, dimensions) in FRAME_ARRAYS.items() if "body" in dimensions)
KINEMATIC_POSES = "kinematic_poses"
"""Positions and quaternions of kinematic bodies, a row per frame: only of scenes with any."""

# Rows of all frames one after the other; those of frame i are offset[i] to offset[i + 1].
OVERLAP_OFFSET, INTERFACE_OFFSET, CONTACT_OFFSET = "overlap_offset", "interface_offset", "contact_offset"
OVERLAP_ARRAYS = {"overlap_body": "int32", "overlap_worker": "int32", "overlap_weight": "float64"}
INTERFACE_ARRAYS = {"interface_body": "int32"}
LIFE_OFFSET, GROWTH_OFFSET = "life_offset", "growth_offset"
LIFE_ARRAYS = {"life_step": "int32", "life_kind": "uint8", "life_number": "int32"}
"""Bodies and joints that came and went since the frame before, but for joints that broke: only where any did."""
LIFE_KINDS = ("body made", "body removed", "joint made", "joint removed")
GROWTH_ARRAYS = {"growth_byte": "uint8"}
"""What the scene has more than in the frame before, as bytes of `added_since`."""
CONTACT_ARRAYS = {"contact_bodies": "int32", "contact_point_count": "int32", "contact_depth": "float32"}

LIST_ROWS = {"contact_bodies": {"side": 2}}
"""Of these lists, where a row is several numbers: how many."""
DIMENSIONS = {2: "side", 3: "axis"}


def table_offset(kind: type[StepTable]) -> str:
    """The array that says which rows of a step table came with which frame; in a recording of runs that ask for it."""
    return f"{kind.row_name}_offset"


def table_arrays(kind: type[StepTable]) -> dict[str, str]:
    """Arrays of the columns of a step table, with their types: what was reported since the frame before."""
    return {f"{kind.row_name}_{one.name}": one.metadata["dtype"].name for one in fields(kind)}


for _kind in KEPT:
    for _column in fields(_kind):
        for _count in _column.metadata["shape"]:
            LIST_ROWS[f"{_kind.row_name}_{_column.name}"] = {DIMENSIONS[_count]: _count}

# One row per step, under profile/. A dimension is named where a value is several numbers. A recording lists those it
# has, so one more here is no new version.
PROFILE_ARRAYS: dict[str, tuple[str, str | None]] = {
    "step_count": ("int64", None),
    "phases_ms": ("float64", "phase"),
    "server_ms": ("float64", None),
    "residual": ("float64", None),
    "substeps": ("int64", None),
    "exchanges": ("int64", None),
    "interface_count": ("int64", None),
    "cut_share": ("float64", None),
    "overlap_count": ("int64", None),
    "activation_count": ("int64", None),
    "deactivation_count": ("int64", None),
    "divided": ("int64", None),
    "uncovered_count": ("int64", None),
    "byte_count": ("int64", None),
    "worker_body_count": ("int64", "worker"),
    "worker_contact_count": ("int64", "worker"),
    "worker_cpu_ms": ("float64", "worker"),
    "worker_prepare_ms": ("float64", "worker"),
}


def is_of_workers(name: str, count: int, worker_count: int) -> bool:
    """Whether a measure has a number for every worker: it follows their number."""
    return name.startswith("worker_") and count == worker_count


def chunk_file(*index: int) -> str:
    """The file of a chunk, within its array's directory."""
    return ".".join(["c", *map(str, index)])


def block_size(count: int) -> int:
    """Bodies per chunk: blocks as even as can be."""
    block_count = max(1, -(-count // BLOCK_BODIES))
    return max(min(LEAST_BLOCK_BODIES, BLOCK_BODIES), -(-count // block_count))
