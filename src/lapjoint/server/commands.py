"""From membership to messages: what each worker has to be told before a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..algorithms import Membership
from ..algorithms.command_lists import CommandLists
from ..algorithms.membership import WORD, resized
from ..arrays.checks import as_rows, integer_rows
from ..errors import LapjointError
from ..scene import STATE_SIZE, Scene
from ..workers.messages import StepCommand, StepReply, array_bytes

Ids = NDArray[np.int32]
ListCommands = Callable[[Membership, NDArray[np.uint64], Ids, Ids], CommandLists]
"""See algorithms/command_lists.py."""


def checked_bodies(scene: Scene, body_ids: ArrayLike, what: str) -> Ids:
    """Numbers of bodies of the scene, or an error that says which is none."""
    ids = integer_rows("body", body_ids, np.size(body_ids), what)
    for body in ids[(ids < 0) | (ids >= scene.body_count)]:
        raise LapjointError(f"{what}: body {body} does not exist, the scene has {scene.body_count} bodies")
    return ids.astype(np.int32)


class CommandBuilder:
    """Remembers what the workers know, and tells them what is new."""

    def __init__(self, body_count: int, worker_count: int, command_lists: ListCommands) -> None:
        self._worker_count = worker_count
        self._command_lists = command_lists
        self.known = np.zeros((body_count, -(-worker_count // 64)), np.uint64)
        """Membership bits that the workers have acted on."""
        self._reset = np.empty(0, np.int32)
        self._moved: set[int] = set()
        self.forces: dict[int, NDArray[np.float64]] = {}
        """Force and torque of the next step on each body that has any."""
        self._iterations = np.empty(0, np.int32)
        self._removed = np.empty(0, np.int32)

    def set_worker_count(self, worker_count: int) -> None:
        """There are more workers, which know nothing, or fewer."""
        self._worker_count = worker_count
        self.known = resized(self.known, worker_count)

    @property
    def removed(self) -> Ids:
        """Bodies that are out for good."""
        return self._removed

    def remove(self, body_ids: Ids) -> None:
        """Take these bodies out of every worker's engine for good, whatever the membership says."""
        self._removed = np.union1d(self._removed, body_ids).astype(np.int32)

    def reset(self, overlap: Ids) -> None:
        """These bodies were blended after the last step; they start from the blend."""
        self._reset = overlap

    def move(self, body_ids: Ids) -> None:
        """These bodies were given other states in the table; they start from these."""
        self._moved.update(body_ids.tolist())

    def set_iterations(self, iterations: int) -> None:
        """Tell the workers with their next command."""
        self._iterations = np.array([iterations], np.int32)

    def add_forces(self, scene: Scene, body_ids: ArrayLike, forces: ArrayLike, torques: ArrayLike | None) -> None:
        ids = checked_bodies(scene, body_ids, "add_forces")

        def title(row: int) -> str:
            return scene.body_title(ids[row])

        both = np.concatenate(
            [
                as_rows("force", forces, len(ids), (3,), title),
                as_rows("torque", np.zeros(3) if torques is None else torques, len(ids), (3,), title),
            ],
            axis=1,
        )
        for body, push in zip(ids.tolist(), both, strict=True):
            self.forces[body] = self.forces.get(body, 0.0) + push

    def build(self, membership: Membership, overlap: Ids, offset: Ids, worker: Ids) -> list[StepCommand]:
        """One command per worker. `offset` and `worker` list the workers of each overlap body; a body's slot for a
        worker is its place in that list."""
        if self._moved:
            self._reset = np.union1d(self._reset, sorted(self._moved)).astype(np.int32)
            self._moved.clear()
        wanted = self.wanted(membership)
        activate, deactivate, reset, slots = self._command_lists(wanted, self.known, self._reset, worker)
        bodies = np.repeat(overlap, np.diff(offset))
        commands = []
        for w in range(self._worker_count):
            slot = slots[w]
            if len(self._removed):
                slot = slot[~np.isin(bodies[slot], self._removed)]
            command = StepCommand(deactivate[w], activate[w], reset[w], bodies[slot], slot)
            if self.forces:
                pushed = [body for body in sorted(self.forces) if wanted.has(body, w)]
                command.force_ids = np.array(pushed, np.int32)
                command.forces = np.array([self.forces[body] for body in pushed]).reshape(-1, 6)
            command.iterations = self._iterations
            commands.append(command)
        self.known = wanted.bits.copy()
        self.forces.clear()
        self._iterations = self._iterations[:0]
        return commands

    def rebuild(self, membership: Membership, command: StepCommand, worker: int, iterations: int) -> StepCommand:
        """The whole command of a fresh worker that takes another's place: all its bodies, and what `command` told the
        other for this step."""
        full = replace(command, deactivate=command.deactivate[:0], reset=command.reset[:0])
        full.activate = self.wanted(membership).active(worker)
        full.iterations = np.array([iterations], np.int32)
        self.known[self._removed, worker // WORD] &= ~np.uint64(1 << (worker % WORD))
        here = np.isin(command.overlap, full.activate)
        full.overlap, full.slot = command.overlap[here], command.slot[here]
        return full

    def repeat(self, membership: Membership, command: StepCommand, worker: int) -> StepCommand:
        """What a worker is told that has done what `command` says and is to take the same step again."""
        wanted, bit = self.wanted(membership), np.uint64(1 << (worker % WORD))
        known = self.known[:, worker // WORD]
        out = np.flatnonzero((known & bit != 0) & ~wanted.column(worker)).astype(np.int32)
        known[out] &= ~bit
        return replace(command, deactivate=out, activate=out[:0], reset=wanted.active(worker))

    def wanted(self, membership: Membership) -> Membership:
        """The membership, without bodies that are out for good."""
        if not len(self._removed):
            return membership
        wanted = membership.copy()
        wanted.bits[self._removed] = 0
        return wanted


def count_bytes(commands: Sequence[StepCommand], replies: Sequence[StepReply]) -> int:
    """Bytes that a step's messages stand for: their arrays, and the states that workers are told to read and write."""
    rows = sum(len(command.activate) + len(command.reset) + len(command.overlap) for command in commands)
    arrays = sum(array_bytes(command) for command in commands) + sum(array_bytes(reply) for reply in replies)
    return arrays + 8 * STATE_SIZE * rows
