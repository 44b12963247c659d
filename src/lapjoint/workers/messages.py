"""What server and workers say to each other: one dataclass per message, arrays only, no transport."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, fields
from math import prod
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
    in_rounds: Ids = _array(np.int32)
    """One number if the step is taken in rounds with the server, else none."""
    rounds: Ids = _array(np.int32)
    """One number if a step is taken in rounds alone: the most of them."""
    interface: Ids = _array(np.int32)
    """In rounds: active bodies that have joints or contacts with bodies of other workers."""
    held: Ids = _array(np.int32)
    """Those of them, by their places, that have joints with bodies of other workers."""
    recall: Ids = _array(np.int32)
    """With `memory_part`: only what is about these bodies is told. Where there is `memory`, it is added: bodies leave
    and come in first, and what is known of others stays."""
    memory_part: NDArray[np.int64] = _array(np.int64)
    """If there are two numbers, the worker takes no step. Without `memory`, it tells the bytes of its memory from the
    first to the second. With it, these are bytes of a memory to take over, from the first on; the second is its size.
    """
    memory: NDArray[np.uint8] = _array(np.uint8)


@dataclass
class StepReply:
    """Worker to server: the step is done."""

    contact_bodies: Ids = _array(np.int32, 2)
    """Contacts of the step, as in engines.Contacts."""
    contact_point_count: Ids = _array(np.int32)
    contact_depth: Array = _array(np.float64)
    measures: Array = _array(np.float64)
    """CPU time of the step [s], residual [m/s], active bodies, CPU time of what was prepared before the step [s],
    groups of bodies that a direct solver left to sweeps, rounds of a step in rounds that was taken alone, CPU time of
    the step before its rounds [s]."""
    memory: NDArray[np.uint8] = _array(np.uint8)
    """The part of the worker's memory that was asked for."""
    memory_size: NDArray[np.int64] = _array(np.int64)
    """Bytes of the whole memory, if a part was asked for."""


@dataclass(frozen=True)
class WorkerFailure:
    """What a runtime has in place of a reply where a worker did not take its step."""

    worker: int
    kind: str
    """gone (its process ended, its node is lost), hung (no answer in time), failed (an exception), or not finite."""
    text: str
    """What happened: how it ended, how long it was waited for, or the worker's traceback."""
    body_ids: tuple[int, ...] = ()
    """Bodies that are known to be the cause: those with states that are not finite."""

    @property
    def title(self) -> str:
        """All of it, the worker named."""
        if self.kind == "not finite":
            return f"worker {self.worker}: {self.text}"
        verb = {"gone": "is gone: ", "hung": "hangs: ", "failed": "failed:\n"}[self.kind]
        return f"worker {self.worker} {verb}{self.text}"


MESSAGES = (StepCommand, StepReply)
Message = TypeVar("Message", bound="StepCommand | StepReply")

# Name, type and shape of a row of each message's arrays, and the head: how many rows each has.
_LAYOUT: dict[type, list[tuple[str, Any, Any]]] = {
    kind: [(f.name, np.dtype(f.metadata["dtype"]), f.metadata["shape"]) for f in fields(kind)] for kind in MESSAGES
}
_HEAD: dict[type, struct.Struct] = {kind: struct.Struct(f"{len(_LAYOUT[kind])}q") for kind in MESSAGES}


def _padded(size: int) -> int:
    return -(-size // 8) * 8


def array_bytes(message: StepCommand | StepReply) -> int:
    """Bytes of a message's arrays."""
    return sum(getattr(message, name).nbytes for name, _, _ in _LAYOUT[type(message)])


def pack(message: StepCommand | StepReply, buffer: memoryview) -> int:
    """Write a message into a buffer; returns the bytes used. Raises ValueError where it does not fit."""
    kind = type(message)
    head = _HEAD[kind]
    arrays, size = [], head.size
    for name, dtype, _ in _LAYOUT[kind]:
        array = getattr(message, name)
        if len(array):
            array = np.ascontiguousarray(array, dtype)
            size += _padded(array.nbytes)
        arrays.append(array)
    if size > len(buffer):
        raise ValueError(f"a {kind.__name__} of {size} bytes does not fit into {len(buffer)}")
    head.pack_into(buffer, 0, *map(len, arrays))
    place = head.size
    for array in arrays:
        if len(array):
            buffer[place : place + array.nbytes] = array.data.cast("B")
            place += _padded(array.nbytes)
    return size


def unpack(kind: type[Message], buffer: memoryview) -> Message:
    """Read a message out of a buffer. It keeps a copy of its own, which its arrays share."""
    layout, head = _LAYOUT[kind], _HEAD[kind]
    rows = head.unpack_from(buffer)
    sizes = [count * dtype.itemsize * prod(shape) for count, (_, dtype, shape) in zip(rows, layout, strict=True)]
    data = np.array(buffer[head.size : head.size + sum(map(_padded, sizes))])
    values, place = {}, 0
    for (name, dtype, shape), count, size in zip(layout, rows, sizes, strict=True):
        values[name] = data[place : place + size].view(dtype).reshape(count, *shape)
        place += _padded(size)
    return kind(**values)
