"""A worker's memory on its way to the server and back: what its engine holds, in parts that fit into a message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from ..arrays.packing import pack_arrays, unpack_arrays
from ..engines import EngineState
from ..errors import WorkerError
from .messages import StepCommand, StepReply

Bytes = NDArray[np.uint8]
Step = Callable[[Sequence[StepCommand]], Sequence[object]]
"""Runtime.step."""


def to_bytes(memory: EngineState) -> Bytes:
    return np.concatenate([np.frombuffer(part, np.uint8) for part in pack_arrays(vars(memory))])


def from_bytes(data: Bytes) -> EngineState:
    arrays, _ = unpack_arrays(data)
    return EngineState(**{field.name: arrays[field.name] for field in fields(EngineState)})


class MemoryParts:
    """The worker's side: tells a memory part by part, and puts one together that comes in parts."""

    def __init__(self) -> None:
        self._data: Bytes = np.empty(0, np.uint8)

    def tell(self, part: NDArray[np.int64], memory: Callable[[], EngineState]) -> StepReply:
        """A part of the memory, which is asked for with the first."""
        start, stop = part.tolist()
        if start == 0:
            self._data = to_bytes(memory())
        size, told = len(self._data), self._data[start:stop]
        if stop >= size:
            self._data = self._data[:0]
        return StepReply(memory=told, memory_size=np.array([size], np.int64))

    def take(self, part: NDArray[np.int64], data: Bytes) -> EngineState | None:
        """The memory, once its last part is there."""
        start, size = part.tolist()
        if start == 0:
            self._data = np.empty(size, np.uint8)
        self._data[start : start + len(data)] = data
        if start + len(data) < size:
            return None
        whole, self._data = self._data, self._data[:0]
        return from_bytes(whole)


# ---- the server's side ---------------------------------------------------------------------------------------------


def part_size(body_count: int) -> int:
    """Bytes that fit into any message of a worker."""
    return 2048 * (1 + body_count)


def read_memories(step: Step, worker_count: int, body_count: int) -> list[Bytes]:
    """The memory of every worker, between two steps."""
    size, start = part_size(body_count), 0
    parts: list[list[Bytes]] = [[] for _ in range(worker_count)]
    whole = 1
    while start < whole:
        bounds = np.array([start, start + size], np.int64)
        replies = _replies(step([StepCommand(memory_part=bounds) for _ in range(worker_count)]))
        for mine, reply in zip(parts, replies, strict=True):
            mine.append(reply.memory)
        start, whole = start + size, max(int(reply.memory_size[0]) for reply in replies) if start == 0 else whole
    return [np.concatenate(mine) for mine in parts]


def give_memories(step: Step, memories: Sequence[Bytes], body_count: int) -> None:
    """Have every worker go on from a memory; whatever it had before is gone. Who has which bodies then is said by the
    first command, for runtimes that keep it in mind."""
    size = part_size(body_count)
    held = [from_bytes(data).body_ids for data in memories]
    for start in range(0, max(map(len, memories)), size):
        commands = [
            StepCommand(
                activate=ids if start == 0 else ids[:0],
                memory_part=np.array([start, len(data)], np.int64),
                memory=data[start : start + size],
            )
            for data, ids in zip(memories, held, strict=True)
        ]
        _replies(step(commands))  # where a memory has ended before others: nothing is told of nothing


def _replies(answers: Sequence[object]) -> list[StepReply]:
    replies = [answer for answer in answers if isinstance(answer, StepReply)]
    if len(replies) < len(answers):
        failed = next(answer for answer in answers if not isinstance(answer, StepReply))
        raise WorkerError(f"a worker could not tell or take over its memory: {failed}")
    return replies
