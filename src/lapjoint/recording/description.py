"""What a recording's arrays say of themselves (`zarr.json`), for writing and for reading.

Read is what was written here and nothing else: Zarr knows codecs and data types that run the code of whoever wrote the
file. Every chunk ends with its CRC-32C, which is checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import google_crc32c
import numpy as np

LEVEL = 5
DATA_TYPES = ("uint8", "uint16", "int32", "int64", "uint64", "float32", "float64")
MOST_CHUNK_BYTES = 1 << 31
"""As much as Blosc takes."""


def describe_array(
    shape: Sequence[int], dtype: np.dtype[Any], chunk: Sequence[int], order: Sequence[int] | None, names: Sequence[str]
) -> bytes:
    """The content of an array's `zarr.json`. With `order` the axes of chunks are stored in that order."""
    content = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": 0 if dtype.kind in "iu" else 0.0,
        "codecs": _codecs(dtype, order),
        "dimension_names": list(names),
        "attributes": {},
    }
    return json.dumps(content).encode()


@dataclass(frozen=True)
class ArrayDescription:
    """What is to be known of an array to read it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunk: tuple[int, ...]
    order: list[int] | None
    """The order in which the axes of chunks are stored, where it is not their own."""


def read_description(text: bytes) -> ArrayDescription:
    """What an array's `zarr.json` says. Refuse, with a ValueError, an array that `describe_array` has not described."""
    content = json.loads(text)
    names = ("shape", "data_type", "chunk_grid", "codecs", "dimension_names")
    shape, data_type, grid, codecs, dimensions = (content[name] for name in names)
    chunk = grid["configuration"]["chunk_shape"]
    if data_type not in DATA_TYPES:
        raise ValueError(f"its data type is {data_type!r}")
    sizes = [*shape, *chunk]
    if len(shape) != len(chunk) or not all(isinstance(size, int) and 0 <= size < 1 << 62 for size in sizes):
        raise ValueError(f"its shape is {shape}, in chunks of {chunk}")
    dtype = np.dtype(data_type)
    if 0 in chunk or dtype.itemsize * float(np.prod(np.array(chunk, float))) > MOST_CHUNK_BYTES:
        raise ValueError(f"its chunks are {chunk}")
    if not shape:
        raise ValueError("it is one number, expected rows")
    if shape[2:] != chunk[2:]:  # chunks are cut along rows and columns alone
        raise ValueError(f"its shape is {shape}, in chunks of {chunk}")
    order = _order_of(codecs, len(chunk))
    expected = json.loads(describe_array(shape, dtype, chunk, order, dimensions))
    for name, value in expected.items():
        if content.get(name) != value:
            raise ValueError(f"its {name} is {content.get(name)!r}, expected {value!r}")
    if content.keys() != expected.keys():
        raise ValueError(f"it has {', '.join(sorted(content.keys() ^ expected.keys()))}")
    return ArrayDescription(tuple(shape), dtype.newbyteorder("<"), tuple(chunk), order)


def with_checksum(content: bytes) -> bytes:
    """A chunk as it is stored."""
    return content + int(google_crc32c.value(content)).to_bytes(4, "little")


def seal(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """A recording's attributes with their checksum."""
    plain: dict[str, Any] = json.loads(json.dumps(attributes))  # as a reader will have them
    return {**plain, "checksum": _checksum(plain)}


def is_whole(attributes: Mapping[str, Any]) -> bool:
    """Whether attributes are those that were sealed."""
    return bool(attributes.get("checksum") == _checksum(attributes))


def _checksum(attributes: Mapping[str, Any]) -> int:
    content = {name: value for name, value in attributes.items() if name != "checksum"}
    return int(google_crc32c.value(json.dumps(content, sort_keys=True).encode()))


def _codecs(dtype: np.dtype[Any], order: Sequence[int] | None) -> list[dict[str, Any]]:
    blosc = {"cname": "lz4", "clevel": LEVEL, "shuffle": "shuffle", "typesize": dtype.itemsize, "blocksize": 0}
    codecs: list[dict[str, Any]] = [
        {"name": "bytes", "configuration": {"endian": "little"}} if dtype.itemsize > 1 else {"name": "bytes"},
        {"name": "blosc", "configuration": blosc},
        {"name": "crc32c"},
    ]
    if order is not None:
        codecs.insert(0, {"name": "transpose", "configuration": {"order": list(order)}})
    return codecs


def _order_of(codecs: Sequence[Mapping[str, Any]], rank: int) -> list[int] | None:
    """The order in which the axes of chunks are stored, where it is not their own."""
    if not codecs or codecs[0].get("name") != "transpose":
        return None
    order = codecs[0]["configuration"]["order"]
    if not isinstance(order, list) or sorted(order) != list(range(rank)):
        raise ValueError(f"its axes are in the order {order}")
    return order
