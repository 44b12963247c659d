"""Engine states on their way between server and workers, in parts that fit into any message.

Between two steps the server reads the workers' engine states for a checkpoint, writes them to resume one, and transfers
the contact cache of bodies that change owners.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ..arrays.packing import pack_arrays, unpack_arrays
from ..engines import EngineState
from ..engines.state import OF_ALL
from ..errors import WorkerError
from .messages import Bytes, Command, Ids, Migrate, ReadState, StatePart, WorkerFailure, WriteState

Send = Callable[[Sequence[Command | None]], Sequence[object]]
"""Runtime.step."""
Mask = NDArray[np.bool_]


OPTIONAL = ("islands", "still_steps", "passed_bodies", "passed_numbers", "passed_impulses", *OF_ALL)
"""Arrays that are left out where they are empty."""


def to_bytes(state: EngineState) -> Bytes:
    arrays = {name: array for name, array in vars(state).items() if len(array) or name not in OPTIONAL}
    return np.concatenate([np.frombuffer(part, np.uint8) for part in pack_arrays(arrays)])


def from_bytes(data: Bytes) -> EngineState:
    arrays, _ = unpack_arrays(data)
    names = [field.name for field in fields(EngineState) if field.name in arrays or field.name not in OPTIONAL]
    return EngineState(**{name: arrays[name] for name in names})


class StateParts:
    """The worker's side: returns a state part by part, and joins one that arrives in parts."""

    def __init__(self) -> None:
        self._data: Bytes = np.empty(0, np.uint8)

    def read(self, command: ReadState, take: Callable[[], EngineState]) -> StatePart:
        """A part of the state, which is taken with the first."""
        if command.start == 0:
            self._data = to_bytes(take())
        size, part = len(self._data), self._data[command.start : command.stop]
        if command.stop >= size:
            self._data = self._data[:0]
        return StatePart(part, size)

    def write(self, command: WriteState | Migrate) -> EngineState | None:
        """The state, once its last part is there."""
        start, data = command.start, command.data
        if len(data) == 0:
            return None  # a state that has ended before those of other workers
        if start == 0:
            self._data = np.empty(command.size, np.uint8)
        self._data[start : start + len(data)] = data
        if start + len(data) < command.size:
            return None
        whole, self._data = self._data, self._data[:0]
        return from_bytes(whole)


# ---- the server's side ---------------------------------------------------------------------------------------------


def part_size(body_count: int) -> int:
    """Bytes that fit into any message of a worker."""
    return 2048 * (1 + body_count)


def read_states(send: Send, worker_count: int, body_count: int) -> list[Bytes]:
    """The engine state of every worker, between two steps. WorkerError if one does not answer."""
    every = [np.empty(0, np.int32)] * worker_count
    return _read(send, every, body_count, lambda answers: _all_parts(answers, "return"))


def read_caches(send: Send, bodies: Sequence[Ids], body_count: int) -> list[Bytes]:
    """What each worker has cached of these of its bodies; empty for a worker without any, and for one that does not
    answer, which is replaced in the next step."""
    asked = [ids if len(ids) else None for ids in bodies]
    return _read(send, asked, body_count, lambda answers: [a if isinstance(a, StatePart) else None for a in answers])


def _read(
    send: Send,
    bodies: Sequence[Ids | None],
    body_count: int,
    parts_of: Callable[[Sequence[object]], Sequence[StatePart | None]],
) -> list[Bytes]:
    """States about these bodies, one of each worker, empty where there are none or not all parts came."""
    step, start, largest = part_size(body_count), 0, 1
    read: list[list[Bytes]] = [[] for _ in bodies]
    sizes = [0] * len(bodies)
    while start < largest:
        answers = send([None if ids is None else ReadState(ids, start, start + step) for ids in bodies])
        for worker, part in enumerate(parts_of(answers)):
            if part is not None:
                read[worker].append(part.data)
                sizes[worker] = max(sizes[worker], part.size)
        start, largest = start + step, max(sizes)
    states = [np.concatenate(parts) if parts else np.empty(0, np.uint8) for parts in read]
    return [data if len(data) == size else data[:0] for data, size in zip(states, sizes, strict=True)]


def write_states(send: Send, states: Sequence[Bytes], body_count: int) -> None:
    """Restore an engine state in every worker; whatever it had before is dropped. Which bodies are active then is in
    the first part, for runtimes that keep track of it."""
    step = part_size(body_count)
    active = [from_bytes(data).body_ids for data in states]
    for start in range(0, max(map(len, states)), step):
        commands = [
            WriteState(ids if start == 0 else ids[:0], data[start : start + step], start, len(data))
            for data, ids in zip(states, active, strict=True)
        ]
        _all_parts(send(commands), "take over")


@dataclass(frozen=True)
class WorkerChange:
    """Bodies that leave a worker and that enter it, and a mask of all that it has afterwards."""

    leaving: Ids
    entering: Ids
    has: Mask

    @property
    def is_none(self) -> bool:
        return len(self.leaving) == len(self.entering) == 0


def write_migration(send: Send, cache: EngineState, changes: Sequence[WorkerChange], body_count: int) -> None:
    """Have the workers deactivate and activate migrating bodies, and merge what is cached of their contacts and joints:
    of those that have a body of the worker, the other one is perhaps a ghost there."""
    step = part_size(body_count)
    data = [np.empty(0, np.uint8) if change.is_none else to_bytes(cache.about(change.has)) for change in changes]
    for start in range(0, max(map(len, data), default=0), step):
        commands: list[Command | None] = []
        for mine, change in zip(data, changes, strict=True):
            part = mine[start : start + step]
            migrate = Migrate(change.leaving, change.entering, part, start, len(mine))
            if not migrate.is_last:
                migrate = Migrate(data=part, start=start, size=len(mine))
            commands.append(migrate if len(part) else None)
        send(commands)


def _all_parts(answers: Sequence[object], verb: str) -> list[StatePart]:
    parts = [answer for answer in answers if isinstance(answer, StatePart)]
    if len(parts) < len(answers):
        failed = next(answer for answer in answers if not isinstance(answer, StatePart))
        why = failed.summary if isinstance(failed, WorkerFailure) else "a worker does not answer"
        raise WorkerError(f"not all workers could {verb} their engine's state: {why}")
    return parts
