"""Tight coupling, the server's part: constraints between workers, solved with the workers' own within the step.

Every body has one worker, its owner. Joints and contacts between bodies of different owners are in an engine of the
server's, which mirrors the bodies at this interface. docs/coupling.md has the mathematics.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...algorithms import Membership
from ...algorithms.exchange import RoundPlan, RoundResult
from ...engines import Contacts, EngineState, RoundEngine, make_engine
from ...engines.exchange import Links, round_bytes
from ...errors import LapjointError, WorkerError
from ...params import Params
from ...scene import WORLD, Scene
from ...scene.titles import body_titles
from ...workers.messages import StepCommand, StepReply, WorkerFailure
from ...workers.runtimes import Runtime
from ..detect import merge_contacts
from ..profile import StepProfile

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

LINGER = 10
"""Steps that a body stays in the server's engine after its last constraint between workers."""

SMALL_CUT = 0.25
"""Where a smaller share of the contacts is between workers, the server sweeps once a round: as good, and less to do."""


class TightCoupling:
    """`owner` is the worker of every body."""

    def __init__(self, scene: Scene, params: Params, membership: Membership) -> None:
        engine = make_engine(scene, params)
        if not isinstance(engine, RoundEngine):
            raise LapjointError(f"coupling is tight, which the engine {params.engine} does not have")
        self.engine = engine
        self.scene, self.body_count = scene, scene.body_count
        self._joints = np.stack([scene.joints.body_a, scene.joints.body_b], axis=1)
        self._joints = self._joints[self._joints[:, 1] != WORLD]
        self.owner: Ids = np.zeros(scene.body_count, np.int32)
        self._is_held = np.zeros(scene.body_count, bool)  # has a joint with a body of another owner
        self.set_owner(owners(membership))
        self.engine.set_owners(self.owner)
        self.interface: Ids = np.empty(0, np.int32)
        """Bodies that the server mirrors, ascending."""
        self._leaving = self._entering = self.interface
        self.needed_at = np.full(scene.body_count, -LINGER - 1, np.int64)
        """Step in which each body last had a constraint between workers."""
        self.result = RoundResult(0, 0.0)
        """Of the last step."""
        self.contacts = Contacts.none()
        """Between workers, of the last step."""
        self.cut_share = 0.0
        """Share of constraints that are between workers, when it was last counted."""
        self.cpu_s = 0.0
        """CPU time of the server in the rounds of the last step [s], and before them, while the workers begin too."""
        self.begin_cpu_s = 0.0

    def set_owner(self, owner: Ids) -> None:
        """Other owners; none of the bodies that have another one is in the server's engine."""
        self.owner[:] = owner
        a, b = self._joints.T
        self._is_held[:] = False
        self._is_held[self._joints[owner[a] != owner[b]]] = True

    def held_places(self, bodies: Ids) -> Ids:
        """Which of these have a joint with a body of another owner, by their places."""
        return np.flatnonzero(self._is_held[bodies]).astype(np.int32)

    def choose_interface(self, contacts: Ids, step_count: int, removed: Ids) -> None:
        """Mirror whatever has a joint or a contact with a body of another owner, and what lately had one."""
        self.needed_at[self._is_held] = step_count
        a, b = contacts[contacts[:, 1] >= 0].T
        apart = self.owner[a] != self.owner[b]
        self.needed_at[a[apart]] = self.needed_at[b[apart]] = step_count
        wanted = self.needed_at >= step_count - LINGER
        wanted[removed] = False
        wanted_ids = np.flatnonzero(wanted).astype(np.int32)
        if np.array_equal(wanted_ids, self.interface):
            self._leaving = self._entering = self.interface[:0]
            return
        self._leaving = np.setdiff1d(self.interface, wanted_ids, assume_unique=True)
        self._entering = np.setdiff1d(wanted_ids, self.interface, assume_unique=True)
        self.interface = wanted_ids

    def rounds_of(
        self,
        commands: Sequence[StepCommand],
        params: Params,
        runtime: Runtime,
        afterwards: Callable[[], None] | None,
    ) -> Rounds | None:
        """The rounds of a step. One worker takes them alone, and is told how many."""
        if len(commands) > 1:
            return Rounds(self, params, runtime, afterwards)
        assert params.rounds is not None
        commands[0].rounds = np.array([params.rounds], np.int32)
        return None

    def recall(self, has_moved: NDArray[np.bool_], moved: Ids) -> EngineState:
        """What the server remembers of bodies that change owners; they leave its engine until it has the new ones."""
        memory = self.engine.state().about(has_moved)
        self.leave_out(moved)
        return memory

    def remember(self, memory: EngineState) -> None:
        """Take over what was remembered of constraints that are between workers now."""
        mirrored = np.zeros(self.body_count, bool)
        mirrored[self.interface] = True
        self.engine.merge_cache(memory.between(self.owner).part(mirrored))

    def change_members(self, states: Array) -> None:
        """Bring the server's engine up to what was chosen."""
        if len(self._leaving):
            self.engine.deactivate(self._leaving)
        if len(self._entering):
            self.engine.activate(self._entering, states[self._entering])
        self._leaving = self._entering = self.interface[:0]

    def leave_out(self, bodies: Ids) -> None:
        """These are not mirrored any more."""
        gone = np.intersect1d(bodies, self.interface)
        if len(gone):
            self.engine.deactivate(gone)
            self.interface = np.setdiff1d(self.interface, gone)

    def take_rounds(self, plan: RoundPlan, states: Array, forces: dict[int, Array], links: Links) -> None:
        """The server's part of a step, while the workers take theirs. `states` are the interface's before the step."""
        start = time.thread_time()
        engine, interface = self.engine, self.interface
        pushed = np.intersect1d(interface, list(forces)).astype(np.int32) if forces else interface[:0]
        with suppress(LapjointError):  # what this engine refuses, that of the owner refuses too, and says so
            engine.set_states(interface, states)
            if len(pushed):
                rows = np.array([forces[body] for body in pushed.tolist()])
                engine.add_forces(pushed, rows[:, :3], rows[:, 3:])
        engine.begin_step(interface)
        self.begin_cpu_s = time.thread_time() - start
        owner = self.owner[interface]
        links.rows = [np.flatnonzero(owner == worker).astype(np.int32) for worker in range(len(links.downs))]
        if self.cut_share < SMALL_CUT and not self._is_held.any():
            plan = replace(plan, server_sweeps=1)
        start = time.thread_time()
        self.result = engine.run_rounds(plan, links)
        self.cpu_s = time.thread_time() - start - links.worker_cpu_s()
        for worker in self.result.late:
            links.give_up(worker)
        if self.result.failed:
            engine.abandon_step()
        else:
            engine.finish_step(moves=False)
            self.contacts = engine.contacts()

    def failures(self) -> list[WorkerFailure]:
        """What is wrong with the rounds of the last step, if no worker says it of itself."""
        if not self.result.failed:
            return []
        text = "answered with anything but numbers within the step"
        found = [WorkerFailure(worker, "not finite", text) for worker in self.result.not_finite]
        bodies = self.interface[list(self.result.lost)]
        for worker in np.unique(self.owner[bodies]).tolist():
            own = bodies[self.owner[bodies] == worker]
            text = f"{body_titles(self.scene, own)}: not finite in the server's engine"
            found.append(WorkerFailure(worker, "not finite", text, tuple(own.tolist())))
        if not found:
            raise WorkerError("the rounds of a step have ended, and no worker says why")
        return found

    def count(self, profile: StepProfile, replies: Sequence[StepReply], bits: NDArray[np.uint64]) -> None:
        """Take note of the last step."""
        if len(replies) < 2:
            self.contacts = Contacts.none()
            profile.rounds = int(replies[0].measures[5])
            return
        profile.rounds, profile.residual = self.result.rounds, self.result.residual
        profile.interface_count = len(self.interface)
        messages = profile.count_bytes
        in_rounds = round_bytes(len(replies), len(self.interface), self.result.rounds)
        profile.count_bytes = lambda: messages() + in_rounds
        workers_begin_s = max(float(reply.measures[6]) for reply in replies)
        profile.server_ms += 1e3 * (self.cpu_s + max(0.0, self.begin_cpu_s - workers_begin_s))
        profile.find_contacts = partial(self.all_contacts, replies, bits)

    def all_contacts(self, replies: Sequence[StepReply], bits: NDArray[np.uint64]) -> Contacts:
        """The workers' and those between them."""
        between = StepReply(self.contacts.bodies, self.contacts.point_count, self.contacts.depth)
        return merge_contacts([*replies, between], bits)


class Rounds:
    """The rounds of one step, taken as often as it takes until no worker fails."""

    def __init__(
        self, tight: TightCoupling, params: Params, runtime: Runtime, afterwards: Callable[[], None] | None
    ) -> None:
        """`afterwards` is for when the workers have had their last round."""
        self._tight, self._runtime, self._afterwards = tight, runtime, afterwards
        self._plan = RoundPlan.of(params)

    def prepare(self, commands: Sequence[StepCommand], removed: Ids) -> Callable[[], None]:
        """Have the workers step in rounds, and say which of their bodies are at the interface; bodies that are out for
        good are not. Returns what the server has to do while they step."""
        tight = self._tight
        tight.leave_out(removed)
        owner = tight.owner[tight.interface]
        forces: dict[int, Array] = {}
        for worker, command in enumerate(commands):
            command.in_rounds = np.ones(1, np.int32)
            command.interface = tight.interface[owner == worker]
            command.held = tight.held_places(command.interface)
            forces |= zip(command.force_ids.tolist(), command.forces, strict=True)
        states = self._runtime.states[tight.interface]

        def take() -> None:
            tight.take_rounds(self._plan, states, forces, self._runtime.links())
            if self._afterwards is not None and not tight.result.failed:
                self._afterwards()

        return take

    def failures(self) -> list[WorkerFailure]:
        """See TightCoupling."""
        return self._tight.failures()


def owners(membership: Membership) -> Ids:
    """The worker of every body, of a membership in which every body has one."""
    owner = np.zeros(membership.body_count, np.int32)
    for worker in range(1, membership.worker_count):
        owner[membership.column(worker)] = worker
    return owner
