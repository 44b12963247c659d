"""The server's side of workers that may be on other machines: the messages to them, and where what comes back belongs.

It makes and reads messages; how these travel is somebody else's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.growing import grown
from ...errors import WorkerError
from ...params import Params
from ...scene import Scene
from ..codec import from_bytes, to_bytes
from ..messages import Command, RemoteCommand, RemoteReply, Reply, StepCommand, StepReply, steps_of
from ..replies import check_step_reply
from .watch import Watch

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

NOBODY = np.empty(0, np.int32)
ALL, BORDER, NONE = "all", "border", ""
"""Which states come back: RemoteCommand.wants."""


class RemoteWorker:
    """What the server keeps of one worker."""

    def __init__(self, is_shared: bool) -> None:
        self.is_shared = is_shared
        """Whether the worker writes into the server's memory; then no states travel."""
        self.watched: Ids | None = None
        self.own = np.empty(0, np.int32)
        self.before = self.done = 0
        """Numbers of the commands to step whose results it had before the last one, and has now."""
        self._is_from_server: list[Ids] = []
        self._since: list[Ids] = []  # bodies that it was sent since the last command to step

    def pack(self, wants: str, command: Command, states: Array, watched: Ids | None) -> bytes:
        """A command and the states that it is about. Whom to watch is sent when it changes."""
        message = RemoteCommand(wants, command)
        if self.is_shared:
            return to_bytes(message)
        if watched is not None and not (self.watched is not None and np.array_equal(watched, self.watched)):
            self.watched = message.watched = watched
            message.watches_anew = True
        activate, reset = activated_and_reset(command)
        message.activated, message.reset = states[activate], states[reset]
        self._since += [activate, reset]
        if isinstance(command, StepCommand):
            self.before, self._is_from_server, self._since = self.done, self._since, []
        return to_bytes(message)

    def has_own(self, bodies: Ids) -> NDArray[np.bool_]:
        """Which of its bodies began the last step with states that nobody but this worker had."""
        return ~np.isin(bodies, np.concatenate([NOBODY, *self._is_from_server])) & (self.before > 0)

    def take_all(self, reply: RemoteReply, states: Array) -> None:
        """Take over the states of all its own bodies; who they are is sent when it changes."""
        if reply.has_bodies:
            self.own = reply.bodies
        states[self.own] = reply.states

    def take_some(self, reply: RemoteReply, states: Array) -> tuple[Ids, Array]:
        """Take over the states of watched bodies and of those that have moved; returns them too."""
        assert self.watched is not None
        ids = np.concatenate([self.watched, reply.bodies])
        states[ids] = reply.states
        return ids, reply.states


class RemoteStates:
    """The table of states, kept up to date as far as somebody needs it."""

    def __init__(self, scene: Scene, params: Params, table: Array) -> None:
        self._scene, self.table = scene, table
        self.workers: list[RemoteWorker] = []
        self.is_complete = True
        """Whether all rows are of the last step."""
        self.was_complete = True
        """Whether they were so before it."""
        self.keeps_all = False
        """Whether the server has all states sent with every step, for no other has copies of them."""
        self._put_back: set[int] = set()
        self.byte_count = 0
        """Of all messages of the last step, both ways."""
        self._was_wanted = False
        self._wants = NONE
        self._is_step = True
        self.needs_all = False
        self._exact = np.ones(scene.body_count, bool)
        # With tight coupling, workers find among themselves who may touch.
        watches = params.detect == "workers" and params.coupling != "tight"
        self._watch = Watch(scene, params) if watches else None

    def set_table(self, table: Array) -> None:
        """There are more bodies, whose states the server has. Workers are told of them with their next commands."""
        self.table, self._exact = table, grown(self._exact, len(table), True)
        if self._watch is not None:
            self._watch.grow()

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
    def is_remote(self) -> bool:
        """Whether any worker is where it cannot write into the server's memory."""
        return not all(worker.is_shared for worker in self.workers)

    def want(self) -> None:
        """Somebody looks at all states. Who did so after the last step will do so after the next: they come with it."""
        self._was_wanted = True

    def must_know_more(self, commands: Sequence[Command | None]) -> bool:
        """Whether a worker is sent a body of which the server knows only about where it is, or the server alone is to
        have all states."""
        if self.keeps_all and not self.is_complete:
            return True
        sent = [ids for command in commands if command is not None for ids in activated_and_reset(command)]
        if self._watch is None:
            return not self.is_complete and any(map(len, sent))
        return not self.is_complete and not all(self._exact[ids].all() for ids in sent)

    def pack(self, commands: Sequence[Command | None]) -> list[bytes]:
        """A message for every worker that has a command."""
        watched: Sequence[Ids | None] = [None] * len(self.workers)
        self._wants = NONE
        # Reading and writing engine states changes no state: none comes back, or what was set since would be lost.
        self._is_step = all(command is None or isinstance(command, StepCommand) for command in commands)
        if self._watch is not None:
            self._watch.note(commands)
            if self._is_step and self.is_remote and len(self.workers) > 1:
                self._wants = BORDER
                watched = self._watch.watched(self.table)
        if self._is_step:
            self._wants = ALL if self._was_wanted or self.keeps_all else self._wants
            self._was_wanted, self.was_complete = False, self.is_complete
        messages = [
            b"" if command is None else worker.pack(self._wants, command, self.table, ids)
            for worker, command, ids in zip(self.workers, commands, watched, strict=True)
        ]
        self.byte_count += sum(map(len, messages))
        return messages

    def unpack(
        self, commands: Sequence[Command | None], answers: Sequence[Any], worker_states: Array
    ) -> list[Reply | None]:
        """Return the replies; states are written where the server reads them. `needs_all` is set if too few came."""
        self.byte_count += sum(map(len, answers))
        self.needs_all = is_fast = False
        received = [_reply(worker, answer) if answer else None for worker, answer in enumerate(answers)]
        replies = [None if answer is None else answer.reply for answer in received]
        for worker, reply in enumerate(replies):
            if isinstance(reply, StepReply):
                try:
                    check_step_reply(reply, self._scene, steps_of(commands))
                except ValueError as error:
                    raise _senseless(worker, error) from None
        if not self._is_step:
            return replies
        self._put_back.clear()
        self.is_complete = not self.is_remote or self._wants == ALL
        if self._watch is not None:
            self._exact[:] = self.is_complete
        if self._watch is not None and self._wants == BORDER:
            here = self._watch.known_without([w for w, worker in enumerate(self.workers) if not worker.is_shared])
            self._exact[here] = True
            is_fast = self._watch.is_fast(here, self.table[here])
        for index, (command, answer) in enumerate(zip(commands, received, strict=True)):
            if answer is None or not isinstance(command, StepCommand):
                continue
            self.workers[index].done = command.number
            try:
                is_fast |= self._take(self.workers[index], command, answer, worker_states)
            except (ValueError, IndexError) as error:
                raise _senseless(index, error) from None
        if self._watch is not None and is_fast and not self.needs_all:
            # Those it may have met on its way: are they known?
            self.needs_all = not all(self._exact[ids].all() for ids in self._watch.watched(self.table))
        return replies

    def _take(self, worker: RemoteWorker, command: StepCommand, answer: RemoteReply, worker_states: Array) -> bool:
        """Take over the states that a worker has sent. Returns whether one of the bodies is fast."""
        if worker.is_shared:
            self._check_overlap(command.overlap, worker_states[command.slot])
            return False
        worker_states[command.slot] = answer.overlap
        self._check_overlap(command.overlap, answer.overlap)
        if self._wants == ALL:
            worker.take_all(answer, self.table)
        elif self._wants == BORDER:
            ids, rows = worker.take_some(answer, self.table)
            self._exact[ids] = True
            return self._watch is not None and self._watch.is_fast(ids, rows)
        return False

    def _check_overlap(self, ids: Ids, states: Array) -> None:
        """Where an overlap body will be is known only after the blend; all states are needed if that is far away."""
        if self._watch is not None and self._wants == BORDER and not self.needs_all:
            self.needs_all = self._watch.is_fast(ids, states)

    def go_back(self, worker: int, bodies: Ids, states: Array) -> None:
        """These are the states of a worker's bodies now."""
        self.table[bodies] = states
        self._put_back.add(worker)
        if self._watch is not None:
            self._exact[bodies] = True
        if len(self._put_back) == len(self.workers):
            self.is_complete = True
            self._exact[:] = True

    def ask(self) -> list[bytes]:
        """Messages that ask for all states."""
        request = to_bytes(RemoteCommand(ALL))
        messages = [b"" if worker.is_shared else request for worker in self.workers]
        self.byte_count += sum(map(len, messages))
        return messages

    def take(self, answers: Sequence[Any]) -> None:
        """Take over what they answered."""
        self.is_complete, self.needs_all = True, False
        if self._watch is not None:
            self._exact[:] = True
        self.byte_count += sum(map(len, answers))
        for index, answer in enumerate(answers):
            if answer:
                try:
                    self.workers[index].take_all(_reply(index, answer), self.table)
                except (ValueError, IndexError) as error:
                    raise _senseless(index, error) from None


def _reply(worker: int, answer: Any) -> RemoteReply:
    try:
        reply = from_bytes(answer)
    except ValueError as error:
        raise _senseless(worker, error) from None
    if not isinstance(reply, RemoteReply):
        raise _senseless(worker, f"a {type(reply).__name__}")
    return reply


def _senseless(worker: int, why: object) -> WorkerError:
    return WorkerError(f"worker {worker} has answered with what is no answer: {why}")


def activated_and_reset(command: Command) -> tuple[Ids, Ids]:
    """Bodies whose states a worker reads from the table to execute a command."""
    nobody = np.empty(0, np.int32)
    return getattr(command, "activate", nobody), getattr(command, "reset", nobody)
