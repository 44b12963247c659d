"""Named arrays survive the way through bytes; bytes that are none of ours are refused, whatever they are."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapjoint.arrays.packing import pack_arrays, unpack_arrays

ARRAYS = {
    "floats": np.arange(6.0).reshape(2, 3),
    "none": np.empty((0, 3)),
    "flags": np.array([True, False]),
    "one": np.array(7, np.int32),
    "words": np.arange(3, dtype=np.uint64),
    "nothing": np.empty(0, np.uint8),
}


def packed(index: Any = None) -> bytes:
    """The arrays as bytes, with another index if one is given."""
    data = b"".join(pack_arrays(ARRAYS, {"of": "a test"}))
    if index is None:
        return data
    head = json.dumps(index).encode()
    length = int.from_bytes(data[:8], "little")
    front = len(head).to_bytes(8, "little") + head
    return front + bytes(-len(front) % 64) + data[8 + length + -(8 + length) % 64 :]


def test_arrays_come_back_as_they_were() -> None:
    arrays, description = unpack_arrays(packed())
    assert description == {"of": "a test"}
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert np.array_equal(arrays[name], array)


@pytest.mark.parametrize("kind", ["O", "V8", "S5", "M8", "f8,f8", "(2,)f8", "|,1", "a,", "f99", "", None, 8, ["f8"]])
def test_only_numbers_are_read(kind: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        unpack_arrays(packed({"description": None, "arrays": [["x", kind, [1]]]}))


@pytest.mark.parametrize("shape", [[-1], [10**12], [2**40, 2**40], [1.5], [True], ["1"], None, 1e400, 3, [[1]]])
def test_a_shape_that_cannot_be_is_refused(shape: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        unpack_arrays(packed({"description": None, "arrays": [["x", "<f8", shape]]}))


@given(st.integers(0, len(packed()) - 1), st.integers(0, 255), st.booleans())
def test_damaged_bytes_are_refused_or_read(place: int, byte: int, cut: bool) -> None:
    data = bytearray(packed())
    data[place] = byte
    try:
        arrays, _ = unpack_arrays(bytes(data[:place] if cut else data))
    except (ValueError, KeyError, TypeError):
        return
    assert sum(array.nbytes for array in arrays.values()) <= len(data)
