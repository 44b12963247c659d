"""The server's side of workers that may be on other machines: what goes to them, and where what comes back belongs.

It makes and reads parcels; how these travel is somebody else's business.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...params import Params
from ...scene import STATE_SIZE, Scene
from ..messages import StepCommand, StepReply
from .parcel import (
    ids_from_bytes,
    ids_to_bytes,
    join,
    message_from_bytes,
    message_to_bytes,
    rows_from_bytes,
    rows_to_bytes,
    split,
)
from .ray_worker import STATES, STEP, STEP_AND_BORDER, STEP_AND_STATES
from .watch import Watch

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


class RemoteWorker:
    """What the server keeps in mind of one worker."""

    def __init__(self, is_shared: bool) -> None:
        self.is_shared = is_shared
        """Whether the worker writes into the server's memory; then no states travel."""
        self.watched: Ids | None = None
        self.own = np.empty(0, np.int32)

    def pack(self, number: int, kind: int, command: StepCommand, states: Array, watched: Ids | None) -> bytes:
        """A command and the states that it speaks of. Whom to watch is said when it changes."""
        message = message_to_bytes(command)
        if self.is_shared:
            return join(number, kind, message)
        others = b""
        if watched is not None and not (self.watched is not None and np.array_equal(watched, self.watched)):
            self.watched = watched
            others = bytes(4) + ids_to_bytes(watched)  # not empty, even when nobody is watched
        rows = (rows_to_bytes(states[ids]) for ids in (command.activate, command.reset))
        return join(number, kind, message, *rows, others)

    def take_all(self, parts: Sequence[memoryview], states: Array) -> None:
        """States of all its own bodies; who they are is said when it changes."""
        if len(parts[2]) or not len(parts[3]):  # others than before, or none any more
            self.own = ids_from_bytes(parts[2])
        states[self.own] = rows_from_bytes(parts[3], STATE_SIZE)

    def take_some(self, parts: Sequence[memoryview], states: Array) -> tuple[Ids, Array]:
        """States of watched bodies and of those that have moved; also returns them."""
        assert self.watched is not None
        ids = np.concatenate([self.watched, ids_from_bytes(parts[2])])
        states[ids] = rows = rows_from_bytes(parts[3], STATE_SIZE)
        return ids, rows


class RemoteStates:
    """The table of states, kept up to date as far as somebody needs it."""

    def __init__(self, scene: Scene, params: Params, table: Array) -> None:
        self.table = table
        self.workers: list[RemoteWorker] = []
        self.number = 0
        """Of the last parcels."""
        self.is_complete = True
        """Whether all rows are of the last step."""
        self.byte_count = 0
        """Of all parcels of the last step, both ways."""
        self._was_wanted = False
        self._kind = STEP
        self._takes_step = True
        self.needs_all = False
        self._exact = np.ones(scene.body_count, bool)
        self._watch = Watch(scene, params) if params.detect == "workers" else None

    def set_worker(self, index: int, is_shared: bool) -> None:
        """A fresh and empty worker at this place, or at the end of the list."""
        self.workers[index : index + 1] = [RemoteWorker(is_shared)]
        if self._watch is not None:
            self._watch.set_worker(index)

    def set_worker_count(self, worker_count: int) -> None:
        """Those at the end have left."""
        del self.workers[worker_count:]
        if self._watch is not None:
            self._watch.set_worker_count(worker_count)

    @property
    def is_telling(self) -> bool:
        """Whether any worker is where it cannot write into the server's memory."""
        return not all(worker.is_shared for worker in self.workers)

    def want(self) -> None:
        """Somebody looks at all states. Who did so after the last step will do so after the next: they come with it."""
        self._was_wanted = True

    def must_know_more(self, commands: Sequence[StepCommand | None]) -> bool:
        """Whether a worker is to be given a body of which the server knows only about where it is."""
        given = [ids for command in commands if command is not None for ids in (command.activate, command.reset)]
        return not self.is_complete and not all(self._exact[ids].all() for ids in given)

    def pack(self, commands: Sequence[StepCommand | None]) -> list[bytes]:
        """A parcel for every worker that has a command."""
        self.number += 1
        watched: Sequence[Ids | None] = [None] * len(self.workers)
        self._kind = STEP
        # Messages about memories change no state: none comes back with them, or what was set since would be lost.
        self._takes_step = not any(command is not None and len(command.memory_part) for command in commands)
        if self._watch is not None:
            self._watch.note(commands)
            if self._takes_step and self.is_telling and len(self.workers) > 1:
                self._kind = STEP_AND_BORDER
                watched = self._watch.watched(self.table)
        if self._takes_step:
            self._kind = STEP_AND_STATES if self._was_wanted else self._kind
            self._was_wanted = False
        parcels = [
            b"" if command is None else worker.pack(self.number, self._kind, command, self.table, ids)
            for worker, command, ids in zip(self.workers, commands, watched, strict=True)
        ]
        self.byte_count = sum(map(len, parcels))
        return parcels

    def unpack(
        self, commands: Sequence[StepCommand | None], answers: Sequence[bytes], worker_states: Array
    ) -> list[StepReply | None]:
        """Replies; states go where the server looks for them. `needs_all` says if those that came are too few."""
        self.byte_count += sum(map(len, answers))
        self.needs_all = is_fast = False
        if not self._takes_step:
            return [message_from_bytes(StepReply, split(answer)[2][0]) if answer else None for answer in answers]
        self.is_complete = not self.is_telling or self._kind == STEP_AND_STATES
        self._exact[:] = self.is_complete
        if self._watch is not None and self._kind == STEP_AND_BORDER:
            here = self._watch.known_without([w for w, worker in enumerate(self.workers) if not worker.is_shared])
            self._exact[here] = True
            is_fast = self._watch.is_fast(here, self.table[here])
        replies: list[StepReply | None] = []
        for worker, command, answer in zip(self.workers, commands, answers, strict=True):
            if command is None or not answer:
                replies.append(None)
                continue
            parts = split(answer)[2]
            replies.append(message_from_bytes(StepReply, parts[0]))
            if worker.is_shared:
                self._check_overlap(command.overlap, worker_states[command.slot])
                continue
            overlap = rows_from_bytes(parts[1], STATE_SIZE)
            worker_states[command.slot] = overlap
            self._check_overlap(command.overlap, overlap)
            if self._kind == STEP_AND_STATES:
                worker.take_all(parts, self.table)
            elif self._kind == STEP_AND_BORDER:
                ids, rows = worker.take_some(parts, self.table)
                self._exact[ids] = True
                is_fast |= self._watch is not None and self._watch.is_fast(ids, rows)
        if self._watch is not None and is_fast and not self.needs_all:
            # Those it may have met on its way: are they known?
            self.needs_all = not all(self._exact[ids].all() for ids in self._watch.watched(self.table))
        return replies

    def _check_overlap(self, ids: Ids, states: Array) -> None:
        """Where an overlap body will be is known only after the blend; all states are needed if that is far away."""
        if self._watch is not None and self._kind == STEP_AND_BORDER and not self.needs_all:
            self.needs_all = self._watch.is_fast(ids, states)

    def ask(self) -> list[bytes]:
        """Parcels that ask for all states."""
        self.number += 1
        parcels = [b"" if worker.is_shared else join(self.number, STATES) for worker in self.workers]
        self.byte_count += sum(map(len, parcels))
        return parcels

    def take(self, answers: Sequence[bytes]) -> None:
        """What they answered."""
        self.is_complete, self.needs_all = True, False
        self._exact[:] = True
        self.byte_count += sum(map(len, answers))
        for worker, answer in zip(self.workers, answers, strict=True):
            if answer:
                worker.take_all(split(answer)[2], self.table)
