"""What travels between machines that share no memory: a message and the states that go with it, as bytes.

Numbers arrive to the last bit. An engine that works in float32 makes states that float32 holds exactly; they travel so.
"""

from __future__ import annotations

import struct
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..messages import StepCommand, StepReply, array_bytes, pack, unpack

Array = NDArray[np.float64]
Ids = NDArray[np.int32]
Message = TypeVar("Message", bound="StepCommand | StepReply")

PARTS = 5
_HEAD = struct.Struct(f"<{2 + PARTS}q")
ROOM = 256  # for the head of a packed message and the padding of its arrays


def join(number: int, kind: int, *parts: bytes) -> bytes:
    """One parcel of up to five parts."""
    sizes = [len(part) for part in parts] + [0] * (PARTS - len(parts))
    return b"".join((_HEAD.pack(number, kind, *sizes), *parts))


def split(parcel: bytes) -> tuple[int, int, list[memoryview]]:
    """Number, kind and parts of a parcel."""
    number, kind, *sizes = _HEAD.unpack_from(parcel)
    view, parts, place = memoryview(parcel), [], _HEAD.size
    for size in sizes:
        parts.append(view[place : place + size])
        place += size
    return number, kind, parts


def message_to_bytes(message: StepCommand | StepReply) -> bytes:
    buffer = bytearray(array_bytes(message) + ROOM)
    return bytes(memoryview(buffer)[: pack(message, memoryview(buffer))])


def message_from_bytes(kind: type[Message], part: memoryview) -> Message:
    return unpack(kind, part)


def rows_to_bytes(rows: Array) -> bytes:
    """Rows of numbers, in four bytes each where that loses nothing, else in eight; the first byte says which."""
    if rows.size == 0:
        return b""
    with np.errstate(over="ignore"):
        narrow = rows.astype(np.float32)
    kept: NDArray[Any] = narrow if np.array_equal(narrow, rows) else np.ascontiguousarray(rows, np.float64)
    return bytes([kept.itemsize]) + kept.tobytes()


def rows_from_bytes(part: memoryview, width: int) -> Array:
    """Rows of `width` numbers."""
    if len(part) == 0:
        return np.empty((0, width))
    numbers = np.frombuffer(part[1:], np.float32 if part[0] == 4 else np.float64)
    return numbers.reshape(-1, width).astype(np.float64)


def ids_to_bytes(ids: Ids) -> bytes:
    return np.ascontiguousarray(ids, np.int32).tobytes()


def ids_from_bytes(part: memoryview) -> Ids:
    return np.frombuffer(part, np.int32)
