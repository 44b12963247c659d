"""A worker's side of messages to and from a server that may be on another machine: see remote.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...params import Params
from ...scene import STATE_SIZE, Scene
from ..messages import Command, OwnStates, RemoteCommand, RemoteReply, StepCommand
from ..worker import Worker
from .copies import Copies
from .remote import ALL, BORDER, activated_and_reset
from .shared import SharedMemory
from .watch import Tracker

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


class RemoteSide:
    """Takes what comes with commands, and adds what the server wants to the replies. `states` and `worker_states` are
    the worker's tables: the server's memory, or, with `copies` (copies.py), memory of its own."""

    def __init__(
        self, worker: Worker, scene: Scene, params: Params, states: SharedMemory, worker_states: SharedMemory,
        copies: Copies | None,
    ) -> None:  # fmt: skip
        self._worker, self._copies = worker, copies
        self._states_block, self._overlap_block = states, worker_states
        self._states, self._worker_states = table(states), table(worker_states)
        if copies is not None:
            self._tracker = Tracker(scene, params)
        self._watched = np.empty(0, np.int32)
        self._sent_own = np.empty(0, np.int32)

    def answer(self, message: RemoteCommand) -> RemoteReply:
        command, answer = message.command, RemoteReply()
        if command is not None:
            if self._copies is not None:
                self._make_room(command)
                self._take(command, message)
            answer.reply = self._worker.execute(command)
        if self._copies is None:
            return answer
        if isinstance(command, StepCommand):
            answer.overlap = self._worker_states[command.slot]
            if self._worker.has_stepped:
                own = self._worker.own_ids
                self._copies.write(OwnStates(self._worker.index, command.number, own, self._states[own]))
        if message.wants == ALL:
            self._add_all_states(answer)
        elif message.wants == BORDER:
            self._add_border_states(answer)
        return answer

    def _make_room(self, command: Command) -> None:
        """There may be more workers or bodies than before, and with them more slots."""
        if isinstance(command, StepCommand) and len(command.added):
            self._worker.extend(command.added)
            self._tracker.grow()
        if self._needs_room(self._states_block, np.concatenate(activated_and_reset(command))):
            self._states = table(self._states_block)
            self._worker.set_states(self._states)
        if isinstance(command, StepCommand) and self._needs_room(self._overlap_block, command.slot):
            self._worker_states = table(self._overlap_block)
            self._worker.set_worker_states(self._worker_states)

    @staticmethod
    def _needs_room(block: SharedMemory, rows: Ids) -> bool:
        """Whether a block was too small for these rows of states; it is not any more."""
        size = 8 * STATE_SIZE * (int(rows.max(initial=-1)) + 1)
        if size <= block.size:
            return False
        block.grow(2 * size)
        return True

    def _take(self, command: Command, message: RemoteCommand) -> None:
        """Put what came with a command where the worker reads it."""
        ids = np.concatenate(activated_and_reset(command))
        rows = np.concatenate([message.activated, message.reset])
        self._states[ids] = rows
        self._tracker.known(ids, rows)
        if message.watches_anew:
            self._watched = message.watched

    def _add_all_states(self, answer: RemoteReply) -> None:
        """Own bodies, if they are others than when they were last sent, and their states."""
        own = self._worker.own_ids
        answer.states = self._states[own]
        answer.has_bodies = not np.array_equal(own, self._sent_own)
        if answer.has_bodies:
            answer.bodies = own
        self._sent_own = own
        self._tracker.known(own, answer.states)

    def _add_border_states(self, answer: RemoteReply) -> None:
        """Which bodies have moved, and the states of those that are watched and of these."""
        self._tracker.known(self._watched, self._states[self._watched])
        own = self._worker.own_ids
        moved = self._tracker.moved(own, self._states[own])
        self._tracker.known(moved, self._states[moved])
        answer.bodies = moved
        answer.states = self._states[np.concatenate([self._watched, moved])]


def table(block: SharedMemory) -> Array:
    """A block as rows of states."""
    return block.array((block.size // (8 * STATE_SIZE), STATE_SIZE), float)
