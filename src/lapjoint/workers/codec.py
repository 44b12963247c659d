"""Messages as bytes, for every transport: shared memory and sockets. The layout is arrays/packing.py's.

A message is its arrays that are not empty, and a description: its name and its other fields. A message within another
one has its arrays under the name of its field; step tables, as fields have them, are described like messages.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.packing import pack_arrays, unpack_arrays
from ..engines import Contacts
from ..step_tables import TABLES, StepTable
from .messages import MESSAGES, Message, StepTimes

Arrays = dict[str, NDArray[Any]]

SIZE = 8
"""Bytes in front of a message in a buffer: how long it is."""
_KIND, _TABLES = "message", "tables"

KINDS: tuple[type[Any], ...] = (*MESSAGES, Contacts, *TABLES.values())
# Of each: its array fields with dtype, shape of a row and whether they may be narrowed; its other fields.
_ARRAYS = {
    kind: [(f.name, f.metadata["dtype"], f.metadata["shape"], f.metadata["narrow"]) for f in fields(kind) if f.metadata]
    for kind in KINDS
}
_VALUES = {kind: [(f.name, f.default) for f in fields(kind) if not f.metadata] for kind in KINDS}
_BY_NAME = {kind.__name__: kind for kind in KINDS}
# What a value may be, by its default: seconds may be a whole number, what may be missing is a count or a message.
_TYPES = {bool: bool, int: int, float: (int, float), str: str, tuple: tuple, type(None): (int, type(None), *MESSAGES)}
_WITHOUT_DEFAULT = {"int": int, "str": str, "StepTimes": StepTimes, "Contacts | None": (Contacts, type(None))}
_ALLOWED: dict[type[Any], dict[str, Any]] = {
    kind: {
        f.name: _WITHOUT_DEFAULT[str(f.type)] if f.default is MISSING else _TYPES[type(f.default)]
        for f in fields(kind)
        if not f.metadata
    }
    for kind in KINDS
}


def to_buffers(message: Message) -> list[Any]:
    """The message's bytes, one buffer after the other; arrays that lie in one piece are not copied."""
    arrays: Arrays = {}
    description = _describe(message, "", arrays)
    return list(pack_arrays(arrays, description))


def to_bytes(message: Message) -> bytes:
    return b"".join(to_buffers(message))


def from_bytes(data: Any) -> Any:
    """The message in a buffer; its arrays are the buffer's memory, where they were not narrowed. ValueError where it
    holds none."""
    arrays, description = unpack_arrays(data)
    try:
        return _restore(description, "", arrays)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"no message: {type(error).__name__}: {error}") from None


def write(message: Message, buffer: memoryview) -> int:
    """Write a message into a buffer; returns the bytes used. Raises ValueError where it does not fit."""
    parts = to_buffers(message)
    size = SIZE + sum(map(len, parts))
    if size > len(buffer):
        raise ValueError(f"a {type(message).__name__} of {size} bytes does not fit into {len(buffer)}")
    _write(parts, size, buffer)
    return size


def write_bytes(content: Any, buffer: memoryview) -> None:
    """Write a message that is bytes already into a buffer that is large enough."""
    _write([content], SIZE + len(content), buffer)


def _write(parts: list[Any], size: int, buffer: memoryview) -> None:
    place = SIZE
    for part in parts:
        buffer[place : place + len(part)] = part
        place += len(part)
    buffer[:SIZE] = (size - SIZE).to_bytes(SIZE, "little")


def read(buffer: memoryview) -> Any:
    """Read a message out of a buffer. It keeps a copy of its own, which its arrays share."""
    size = int.from_bytes(buffer[:SIZE], "little")
    return from_bytes(np.array(buffer[SIZE : SIZE + size]))


def read_bytes(buffer: memoryview) -> memoryview:
    """The bytes of the message in a buffer, in place."""
    return buffer[SIZE : SIZE + int.from_bytes(buffer[:SIZE], "little")]


def array_bytes(message: Message | StepTable) -> int:
    """Bytes of a message's arrays."""
    own = sum(int(getattr(message, name).nbytes) for name, *_ in _ARRAYS[type(message)])
    inner = [getattr(message, name) for name, _ in _VALUES[type(message)]]
    inner += getattr(message, _TABLES, ())
    return own + sum(array_bytes(value) for value in inner if type(value) in _ARRAYS)


def _describe(message: Message | StepTable, prefix: str, arrays: Arrays) -> dict[str, Any]:
    """The description of a message; its arrays are added to `arrays`."""
    kind = type(message)
    for name, dtype, _, narrow in _ARRAYS[kind]:
        array = getattr(message, name)
        if len(array):
            arrays[prefix + name] = _narrowed(array) if narrow else np.asarray(array, dtype)
    description: dict[str, Any] = {_KIND: kind.__name__}
    for name, default in _VALUES[kind]:
        value = getattr(message, name)
        if type(value) in _ARRAYS:
            description[name] = _describe(value, f"{prefix}{name}.", arrays)
        elif name == _TABLES and value:
            description[name] = [_describe(one, f"{prefix}{one.name}.", arrays) for one in value]
        elif value is not default:
            description[name] = value
    return description


def _restore(description: dict[str, Any], prefix: str, arrays: Arrays) -> Any:
    values = dict(description)
    kind = _BY_NAME[values.pop(_KIND)]
    for name, value in values.items():
        if isinstance(value, dict):
            values[name] = _restore(value, f"{prefix}{name}.", arrays)
        elif name == _TABLES:
            values[name] = tuple(_restore(one, f"{prefix}{_BY_NAME[one[_KIND]].name}.", arrays) for one in value)
        elif isinstance(value, list):
            values[name] = tuple(value)
        allowed = _ALLOWED[kind][name]
        if not isinstance(values[name], allowed) or (isinstance(values[name], bool) and allowed is not bool):
            raise ValueError(f"{name} of a {kind.__name__} is a {type(values[name]).__name__}")
    for name, dtype, shape, _ in _ARRAYS[kind]:
        array = arrays.get(prefix + name)
        if array is None:
            values[name] = np.empty((0, *shape), dtype)
        else:
            if array.ndim == 0 or array.shape[1:] != shape:
                raise ValueError(f"{name} of a {kind.__name__} has rows of {array.shape[1:]}, expected {shape}")
            if not np.can_cast(array.dtype, dtype):
                raise ValueError(f"{name} of a {kind.__name__} is of type {array.dtype}, expected {dtype}")
            values[name] = array.astype(dtype, copy=False)
    return kind(**values)


def _narrowed(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows of numbers in four bytes each where that loses nothing, else in eight. States of an engine that computes in
    float32 are such."""
    with np.errstate(over="ignore"):
        narrow = rows.astype(np.float32)
    return narrow if np.array_equal(narrow, rows) else np.asarray(rows, np.float64)
