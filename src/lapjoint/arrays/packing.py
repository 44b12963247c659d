"""Named arrays and a description as one run of bytes: no pickle, and they can be read in place.

The length of an index, the index in JSON, then the arrays, each at a multiple of 64 bytes.
"""

from __future__ import annotations

import functools
import json
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
    # Written by hand, for messages go this way several times a step: json takes three times as long for the entries.
    entries = ", ".join(f'["{name}", "{array.dtype.str}", {list(array.shape)}]' for name, array in arrays.items())
    index = f'{{"description": {json.dumps(description)}, "arrays": [{entries}]}}'.encode()
    head = len(index).to_bytes(8, "little") + index
    yield head + _padding(len(head))
    for array in arrays.values():
        if array.size:
            data = array if array.flags.c_contiguous else np.ascontiguousarray(array)
            yield data.data.cast("B")
            if padding := _padding(array.nbytes):
                yield padding


def unpack_arrays(data: Any) -> tuple[dict[str, NDArray[Any]], Any]:
    """Arrays and description; the arrays are the buffer's memory. ValueError where it is none of ours."""
    try:
        return _unpack(data)
    except (KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"no arrays and description: {type(error).__name__}: {error}") from None


def _unpack(data: Any) -> tuple[dict[str, NDArray[Any]], Any]:
    memory = memoryview(data).cast("B")
    length = int.from_bytes(memory[:8], "little")
    index = json.loads(bytes(memory[8 : 8 + length]))
    place, arrays = 8 + length, {}
    for name, kind, shape in index["arrays"]:
        place += -place % ALIGNMENT
        dtype = _number_type(kind)
        if type(name) is not str or type(shape) is not list:
            raise ValueError(f"array {name!r} has the shape {shape!r}")
        size = dtype.itemsize
        for rows in shape:
            if type(rows) is not int or rows < 0:
                raise ValueError(f"array {name} has the shape {shape}")
            size *= rows
        if size > max(0, len(memory) - place):
            raise ValueError(f"array {name} is cut off")
        arrays[name] = np.ndarray(shape, dtype, memory, place if size else 0)
        place += size
    return arrays, index["description"]


@functools.lru_cache
def _number_type(kind: str) -> np.dtype[Any]:
    """The type that an index names, of numbers alone: what else numpy reads out of a text is not ours."""
    if not _NUMBERS.fullmatch(kind):
        raise ValueError(f"an array of type {kind}, expected numbers")
    return np.dtype(kind)
