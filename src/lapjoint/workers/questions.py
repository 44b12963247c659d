"""Questions that the server asks the workers between two steps, in parts that fit into any message.

A question has a name and arrays, its answer has arrays. Whoever adds one adds a function to `ANSWERS`, and calls `ask`
on the server's side. Nothing of the next step depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.packing import pack_arrays, unpack_arrays
from ..engines import Engine
from ..errors import WorkerError
from .engine_states import Send, part_size
from .messages import AnswerPart, Ask, Bytes, Ids, WorkerFailure
from .readings import ANSWERS as READINGS

Arrays = dict[str, NDArray[Any]]
Answer = Callable[[Engine, Arrays], Arrays]
"""What a worker's engine answers to the arrays of a question."""

ANSWERS: dict[str, Answer] = {**READINGS}
"""Every question that a worker can answer, by name."""


def _to_bytes(arrays: Arrays) -> Bytes:
    return np.concatenate([np.frombuffer(part, np.uint8) for part in pack_arrays(arrays)])


class Answers:
    """The worker's side: joins a question that arrives in parts, and returns its answer part by part."""

    def __init__(self, engine: Engine, own: Mapping[str, Callable[[Arrays], Arrays]] | None = None) -> None:
        """`own`: what the worker answers by itself, by name."""
        self._engine, self._own = engine, own or {}
        self._question = self._answer = np.empty(0, np.uint8)

    def part(self, command: Ask) -> AnswerPart:
        if len(command.data):
            if command.start == 0:
                self._question = np.empty(command.size, np.uint8)
            self._question[command.start : command.start + len(command.data)] = command.data
            if not command.is_last:
                return AnswerPart()
            arrays, _ = unpack_arrays(self._question)
            own = self._own.get(command.what)
            self._answer = _to_bytes(own(arrays) if own else ANSWERS[command.what](self._engine, arrays))
            self._question = self._question[:0]
        size, part = len(self._answer), self._answer[command.answer_start : command.answer_stop]
        if command.answer_stop >= size:
            self._answer = self._answer[:0]
        return AnswerPart(part, size)


# ---- the server's side ---------------------------------------------------------------------------------------------


@dataclass
class Question:
    """What one worker is asked."""

    what: str
    arrays: Arrays
    reset: Ids = field(default_factory=lambda: np.empty(0, np.int32))
    """Bodies that were blended after the last step: the worker looks up their states first."""
    activate: Ids = field(default_factory=lambda: np.empty(0, np.int32))
    """Bodies whose states the answer needs, though they are not active: see Ask."""


def ask(send: Send, questions: Sequence[Question | None], body_count: int) -> list[Arrays | None]:
    """The answer of every worker that is asked something. WorkerError if one does not answer; it is replaced in the
    next step."""
    step = part_size(body_count)
    data = [None if one is None else _to_bytes(one.arrays) for one in questions]
    answers: list[list[Bytes]] = [[] for _ in questions]
    sizes = [0] * len(questions)

    def send_all(commands: Sequence[Ask | None]) -> None:
        for worker, answer in enumerate(send(commands)):
            if isinstance(answer, AnswerPart):
                answers[worker].append(answer.data)
                sizes[worker] = answer.size or sizes[worker]
            elif commands[worker] is not None:
                text = answer.title if isinstance(answer, WorkerFailure) else f"worker {worker} does not answer"
                raise WorkerError(f"{text}; it is replaced in the next step")

    longest = max((len(mine) for mine in data if mine is not None), default=0)
    for start in range(0, longest, step):
        commands: list[Ask | None] = []
        for one, mine in zip(questions, data, strict=True):
            if one is None or mine is None or start >= len(mine):
                commands.append(None)
                continue
            part = Ask(one.what, data=mine[start : start + step], start=start, size=len(mine), answer_stop=step)
            if part.is_last:
                part.reset, part.activate = one.reset, one.activate
            commands.append(part)
        send_all(commands)
    start = step
    while start < max(sizes, default=0):
        send_all([Ask(answer_start=start, answer_stop=start + step) if size > start else None for size in sizes])
        start += step
    found: list[Arrays | None] = []
    for worker, (one, parts) in enumerate(zip(questions, answers, strict=True)):
        try:
            found.append(None if one is None else unpack_arrays(np.concatenate(parts))[0])
        except ValueError as error:
            raise WorkerError(f"worker {worker} has answered with what is no answer: {error}") from None
    return found
