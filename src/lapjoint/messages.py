"""What server and workers say to each other: one dataclass per message, arrays only, no transport."""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Array = NDArray[np.float64]


def _array(dtype: Any, *shape: int) -> Any:
    """A field holding rows of `shape`; empty unless given."""
    return field(default_factory=lambda: np.empty((0, *shape), dtype), metadata={"dtype": dtype, "shape": shape})


@dataclass
class StepCommand:
    """Server to worker: change your active bodies, then take a step.

    States do not travel in the message: the worker reads the rows of bodies it activates or resets from the table of
    states, and writes its results where the server looks for them.
    """

    deactivate: Ids = _array(np.int32)
    """Bodies to take out first."""
    activate: Ids = _array(np.int32)
    """Bodies to put in, with their states in the table."""
    reset: Ids = _array(np.int32)
    """Active bodies to set back to their states in the table: those that were blended after the last step."""
    overlap: Ids = _array(np.int32)
    """Active bodies that other workers have too: their new states go into `slot` of the worker states."""
    slot: Ids = _array(np.int32)
    force_ids: Ids = _array(np.int32)
    """Active bodies with an external force and torque in this step."""
    forces: Array = _array(np.float64, 6)
    iterations: Ids = _array(np.int32)
    """One number if the sweeps per step change from this step on, else none."""


@dataclass
class StepReply:
    """Worker to server: the step is done."""

    contact_bodies: Ids = _array(np.int32, 2)
    """Contacts of the step, as in engines.Contacts."""
    contact_point_count: Ids = _array(np.int32)
    contact_depth: Array = _array(np.float64)
    measures: Array = _array(np.float64)
    """CPU time [s], residual [m/s]."""


MESSAGES = (StepCommand, StepReply)
Message = TypeVar("Message", bound="StepCommand | StepReply")


def array_bytes(message: Any) -> int:
    """Bytes of a message's arrays."""
    return sum(int(getattr(message, column.name).nbytes) for column in fields(message))


def pack(message: Any, buffer: memoryview) -> int:
    """Write a message into a buffer; returns the bytes used. Raises ValueError where it does not fit."""
    arrays = [np.ascontiguousarray(getattr(message, f.name), f.metadata["dtype"]) for f in fields(message)]
    head = np.array([len(a) for a in arrays], np.int64)
    size = head.nbytes + sum(-(-a.nbytes // 8) * 8 for a in arrays)
    if size > len(buffer):
        raise ValueError(f"a {type(message).__name__} of {size} bytes does not fit into {len(buffer)}")
    buffer[: head.nbytes] = head.tobytes()
    place = head.nbytes
    for array in arrays:
        if array.nbytes:
            buffer[place : place + array.nbytes] = array.reshape(-1).view(np.uint8).data
        place += -(-array.nbytes // 8) * 8
    return size


def unpack(kind: type[Message], buffer: memoryview) -> Message:
    """Read a message out of a buffer, copied."""
    layout: tuple[Field[Any], ...] = fields(kind)
    rows: list[int] = np.frombuffer(buffer, np.int64, len(layout)).tolist()
    place = 8 * len(layout)
    values: dict[str, NDArray[Any]] = {}
    for column, count in zip(layout, rows, strict=True):
        shape: tuple[int, ...] = (count, *column.metadata["shape"])
        array = np.frombuffer(buffer, column.metadata["dtype"], int(np.prod(shape)), place).reshape(shape).copy()
        values[column.name] = array
        place += -(-array.nbytes // 8) * 8
    return kind(**values)
