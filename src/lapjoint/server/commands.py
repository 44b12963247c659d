"""CommandBuilder: the command of every worker for a step, from the membership and what was set between two steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..algorithms import Membership
from ..algorithms.command_lists import CommandLists
from ..algorithms.membership import WORD, column_of, resized
from ..arrays.checks import as_rows
from ..arrays.state import Arrays, PartState
from ..scene import STATE_SIZE, Scene
from ..scene.content import checked_ids
from ..scene.living import LivingScene
from ..scene.serialize import added_since
from ..workers.codec import array_bytes
from ..workers.messages import Motions, StepCommand, StepReply
from .drives import Drives
from .weights import OverlapWeights

Ids = NDArray[np.int32]
Bits = NDArray[np.uint64]
ListCommands = Callable[[Membership, Bits, Ids, Ids], CommandLists]
"""See algorithms/command_lists.py."""
NOBODY = np.empty(0, np.int32)


class CommandBuilder:
    """Keeps what the workers have acted on and what is asked for between two steps; builds commands from both."""

    def __init__(self, scene: LivingScene, worker_count: int, command_lists: ListCommands) -> None:
        self._scene, self._command_lists = scene, command_lists
        self._known, self._known_as_of = _fixed(np.zeros((scene.body_count, -(-worker_count // WORD)), np.uint64)), -1
        self._counted, self._known_count = self._known, 0
        self._extent = scene.extent  # that the workers know of
        self._breaks: list[Ids] = []
        self._released: list[tuple[int, int]] = []
        self._tells_all_broken = False
        self.motions: Motions | None = None
        """Of kinematic bodies that move otherwise than the scene has it."""
        self._tells_motions = False
        self.inside: Ids | None = None
        """Who is inside of sensors before the next step, where workers find who enters and leaves in it."""
        self.drives = Drives(scene)
        """What drives are to do, and turns of counted angles."""
        self._tells_all_drives = False
        self.forces: dict[int, NDArray[np.float64]] = {}
        """Force and torque of the next step on each body that has any."""
        self._reset = NOBODY
        self._set: set[int] = set()
        self._iterations: int | None = None
        self.change_count = 0
        """Grows with every step, and with everything between two steps that changes who is where."""

    @property
    def known(self) -> Bits:
        """Membership bits that the workers have acted on: an array that is replaced, and never written to."""
        return self._known

    @known.setter
    def known(self, bits: Bits) -> None:
        self._known, self._known_as_of = _fixed(bits), -1

    @property
    def known_count(self) -> int:
        """How many bodies any worker has, of those that they know of; counted where that has changed."""
        if self._counted is not self._known:
            self._counted, self._known_count = self._known, int(self._known.any(axis=1).sum())
        return self._known_count

    def knows(self, membership: Membership) -> bool:
        """Whether the workers have acted on all of the membership. That takes no look at the bodies where nothing has
        changed since the last commands."""
        return self._known_as_of == membership.change_count or np.array_equal(self._known, membership.bits)

    def validate(self, membership: Membership) -> None:
        """Raise AssertionError if the bits have changed and the membership has not counted it."""
        if self._known_as_of == membership.change_count:
            wrong = np.flatnonzero((self._known != membership.bits).any(axis=1))
            assert len(wrong) == 0, f"body {wrong[0]} has other workers than were known, but no change was counted"

    def set_worker_count(self, worker_count: int) -> None:
        """Add workers, which have acted on nothing, or drop the last ones."""
        self.known = resized(self.known, worker_count)
        self.change_count += 1
        self._tells_all_broken = self._tells_motions = self._tells_all_drives = True

    @property
    def broken(self) -> Ids:
        """Joints that hold nothing any more, ascending."""
        return np.flatnonzero(~self._scene.joint_alive).astype(np.int32)

    def break_joints(self, joint_ids: Ids) -> None:
        """Have these joints broken in every worker, from the next step on."""
        self._breaks.append(joint_ids)

    def add_bodies(self) -> None:
        """The scene has more bodies, which no worker knows of yet."""
        more = self._scene.body_count - len(self.known)
        self.known = np.concatenate([self.known, np.zeros((more, self.known.shape[1]), np.uint64)])
        self.change_count += 1

    def release(self, rows: slice) -> None:
        """Have the workers give back the memory of bodies that are gone."""
        self._released.append((rows.start, rows.stop))

    def set_motions(self, motions: Motions) -> None:
        """Have kinematic bodies move so in every worker, from the next step on."""
        self.motions, self._tells_motions = motions, True

    def remove(self, body_ids: Ids) -> None:
        """Of these bodies, which are gone, nothing is asked any more."""
        self.change_count += 1
        gone = set(body_ids.tolist())
        self._set -= gone
        for body in gone & self.forces.keys():
            del self.forces[body]

    def reset(self, overlap: Ids) -> None:
        """Have these bodies, which were blended after the last step, start from the blend."""
        self._reset = overlap

    def set_from_table(self, body_ids: Ids) -> None:
        """Have these bodies start from their states in the table, which were changed."""
        self._set.update(body_ids.tolist())
        self.change_count += 1

    @property
    def set_ids(self) -> Ids:
        """Bodies whose states were changed since the last step, ascending."""
        return np.array(sorted(self._set), np.int32)

    def set_iterations(self, iterations: int) -> None:
        """Send the workers another number of sweeps with their next commands."""
        self._iterations = iterations

    def add_forces(self, scene: Scene, body_ids: ArrayLike, forces: ArrayLike, torques: ArrayLike | None) -> None:
        ids = checked_ids(scene, body_ids, "bodies.add_forces")

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

    def build(
        self, membership: Membership, weights: OverlapWeights, kind: type[StepCommand] = StepCommand
    ) -> list[StepCommand]:
        """One command per worker. A body's slot for a worker is its place in the list of weights."""
        reset = self._reset
        self.change_count += 1
        if self._set:
            reset = np.union1d(reset, sorted(self._set)).astype(np.int32)
        lists = self._lists(membership, reset, weights.worker)
        bodies, told = weights.rows, self._told()
        commands = []
        for w in range(membership.worker_count):
            slot = lists.slots[w]
            command = kind(lists.deactivate[w], lists.activate[w], lists.reset[w], bodies[slot], slot, **told)
            if self.forces:
                pushed = [body for body in sorted(self.forces) if membership.has(body, w)]
                command.force_ids = np.array(pushed, np.int32)
                command.forces = np.array([self.forces[body] for body in pushed]).reshape(-1, 6)
            command.iterations = self._iterations
            commands.append(command)
        self.forces.clear()
        self._set.clear()
        self._reset, self._iterations = NOBODY, None
        return commands

    def _lists(self, membership: Membership, reset: Ids, worker: Ids) -> CommandLists:
        """What brings workers from the bits that they know to those of the membership, which they know then. Where none
        have changed, only the bodies that are reset are looked at."""
        if self._known_as_of == membership.change_count:
            part = membership.part(reset)
            lists = self._command_lists(part, part.bits, np.arange(len(reset), dtype=np.int32), worker)
            return lists._replace(reset=[reset[places] for places in lists.reset])
        lists = self._command_lists(membership, self._known, reset, worker)
        self._known, self._known_as_of = _fixed(membership.bits.copy()), membership.change_count
        return lists

    def _told(self) -> dict[str, Any]:
        """What all workers are told: what the scene has more, which joints have broken, and which motions and targets
        were set, since they were told."""
        told: dict[str, Any] = {}
        if self._extent != self._scene.extent:
            told["added"], self._extent = added_since(self._scene, self._extent), self._scene.extent
        if self._tells_all_broken:
            told |= {"broken": self.broken, "sets_broken": True}
        elif self._breaks:
            told["broken"] = np.concatenate(self._breaks)
        if self.inside is not None:
            told |= {"senses": True, "inside": self.inside}
        if self._released:
            told["released"] = np.array(self._released, np.int32)
        if self._tells_motions:
            told["motions"] = self.motions
        targets = self.drives.all_targets() if self._tells_all_drives else self.drives.changed_targets()
        if targets is not None:
            told["joint_targets"] = targets
        self.drives.note_told()
        self._tells_all_drives = False
        self._breaks, self._released, self._tells_all_broken, self._tells_motions = [], [], False, False
        return told

    def rebuild(self, membership: Membership, command: StepCommand, worker: int, iterations: int) -> StepCommand:
        """The whole command of a fresh worker that takes another's place: all its bodies, and what `command` had for
        the other in this step."""
        full = replace(command, deactivate=NOBODY, reset=NOBODY, iterations=iterations, **self._all_told())
        full.activate = membership.active(worker)
        word, bit = worker // WORD, np.uint64(1 << (worker % WORD))
        known = self.known.copy()
        known[:, word] = known[:, word] & ~bit | membership.bits[:, word] & bit
        self.known = known
        here = np.isin(command.overlap, full.activate)
        full.overlap, full.slot = command.overlap[here], command.slot[here]
        return full

    def repeat(self, membership: Membership, command: StepCommand, worker: int) -> StepCommand:
        """The command of a worker that has executed `command` and takes the same step again."""
        word, bit = worker // WORD, np.uint64(1 << (worker % WORD))
        out = np.flatnonzero(column_of(self.known, worker) & ~membership.column(worker)).astype(np.int32)
        if len(out):
            known = self.known.copy()
            known[out, word] &= ~bit
            self.known = known
        reset = membership.active(worker)
        return replace(command, deactivate=out, activate=NOBODY, reset=reset, **self._all_told())

    def _all_told(self) -> dict[str, Any]:
        """What a command has for a worker that is fresh, or may know of other joints that broke: in steps that it takes
        again."""
        return {
            "broken": self.broken,
            "sets_broken": True,
            "motions": self.motions,
            "joint_targets": self.drives.all_targets(),
        }

    # ---- state -------------------------------------------------------------------------------------------------------

    def state(self) -> PartState:
        arrays: Arrays = {
            "known": self.known,
            "set": np.array(sorted(self._set), np.int32),
            "broken": self.broken,
            "force_ids": np.array(list(self.forces), np.int32),
            "forces": np.array(list(self.forces.values())).reshape(-1, 6),
        }
        return PartState(arrays, {"iterations": self._iterations})

    def restore(self, state: PartState) -> None:
        self.restore_without_workers(state)
        self.known = state.array("known")
        self._set = set(state.arrays["set"].tolist())
        self.change_count += 1

    def restore_without_workers(self, state: PartState) -> None:
        """Restore what does not depend on the number of workers."""
        self._iterations, self._tells_all_broken, self._tells_all_drives = state.values["iterations"], True, True
        ids, rows = state.arrays["force_ids"], state.array("forces")
        self.forces = dict(zip(ids.tolist(), rows, strict=True))


def _fixed(bits: Bits) -> Bits:
    """A view that cannot be written to, so that whoever keeps it has what was known then."""
    view = bits.view()
    view.flags.writeable = False
    return view


def count_bytes(commands: Sequence[StepCommand], replies: Sequence[StepReply]) -> int:
    """Bytes that a step's messages stand for: their arrays, and the states that workers read and write for them."""
    rows = sum(len(command.activate) + len(command.reset) + len(command.overlap) for command in commands)
    arrays = sum(array_bytes(command) for command in commands) + sum(array_bytes(reply) for reply in replies)
    return arrays + 8 * STATE_SIZE * rows
