"""Named arrays and a description as one run of bytes: no pickle, and they can be read in place.

The length of an index, the index in JSON, then the arrays, each at a multiple of 64 bytes.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 64
_NUMBERS = re.compile(r"[<>|=]?[biuf]\d{1,2}")


def _padding(size: int) -> bytes:
    return bytes(-size % ALIGNMENT)


def pack_arrays(arrays: Mapping[str, NDArray[Any]], description: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """The bytes, one buffer after the other; nothing large is copied that lies in one piece."""
    entries = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    index = json.dumps({"description": description, "arrays": entries}).encode()
    head = len(index).to_bytes(8, "little") + index
    yield head + _padding(len(head))
    for array in arrays.values():
        if array.size:
            yield np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            if padding := _padding(array.nbytes):
                yield padding


def unpack_arrays(data: Any) -> tuple[dict[str, NDArray[Any]], Any]:
    """Arrays and description; the arrays are the buffer's memory. ValueError, KeyError or TypeError where it is none
    of ours."""
    memory = np.frombuffer(data, np.uint8)
    length = int.from_bytes(memory[:8].tobytes(), "little")
    index = json.loads(memory[8 : 8 + length].tobytes())
    place, arrays = 8 + length, {}
    for name, kind, shape in index["arrays"]:
        place += -place % ALIGNMENT
        dtype = _number_type(kind)
        if any(type(rows) is not int or rows < 0 for rows in shape):
            raise ValueError(f"array {name} has the shape {shape}")
        size = dtype.itemsize * math.prod(shape)
        if size > max(0, len(memory) - place):
            raise ValueError(f"array {name} is cut off")
        arrays[name] = memory[place : place + size].view(dtype).reshape(shape)
        place += size
    return arrays, index["description"]


@functools.lru_cache
def _number_type(kind: str) -> np.dtype[Any]:
    """The type that an index names, of numbers alone: what else numpy reads out of a text is not ours."""
    if not _NUMBERS.fullmatch(kind):
        raise ValueError(f"an array of type {kind}, expected numbers")
    return np.dtype(kind)
