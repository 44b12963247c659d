"""Tight coupling: every body has one worker, its owner; constraints between owners are solved by both of
them, within every substep, without the server. docs/coupling.md has the method; native/substeps/between.h the workers'
side; shared_bodies.py who shares which bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...algorithms import Membership
from ...algorithms.membership import column_of
from ...algorithms.ownership import choose_migrations, cut_share
from ...arrays.state import PartState
from ...engines import EngineState, join_states
from ...engines.bullet import BulletEngine
from ...params import Params
from ...workers.messages import NeighbourCommand, Neighbours, StepCommand, WorkerFailure
from ...workers.runtimes import Runtime
from ..profile import StepProfile
from ..weights import OverlapWeights
from .base import Decision, Meanwhile, Migration, ServerWork, Situation
from .shared_bodies import SharedBodies

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

MIGRATE_EVERY = 10
"""Steps from one search for bodies that should migrate to the next."""
MOST_INTERFACE = 1 << 20
"""Bytes of a worker's part of the widest interface that is solved at once."""


class Tight:
    """Owners follow contacts and loads; bodies migrate with their contact cache, or stacks would give way."""

    name: ClassVar[str] = "tight"

    def __init__(self, now: Situation) -> None:
        self.weights = OverlapWeights.none()
        self._shared = SharedBodies(now.scene)
        self._owner = owners(now.membership)
        self._attempt = 0
        self.cut_share = 0.0
        """Share of constraints that are between workers, when it was last counted."""
        now.loads.note_repartition(now.membership, now.step_count)

    @property
    def interface(self) -> Ids:
        return self._shared.bodies

    @property
    def owner(self) -> Ids:
        """The worker of every body; a copy."""
        return self._owner.copy()

    # ---- before the step ---------------------------------------------------------------------------------------------

    def decide(self, now: Situation, runtime: Runtime, profile: StepProfile) -> Decision:
        """Line 12, with owners in place of overlap."""
        with profile.phase("balance"):
            now.loads.estimate(now.membership, now.replies, now.params.sweeps, now.step_count)
            self._choose_owners(now, runtime.states, profile)
            migration = self._choose_ghosts(now)
            profile.cut_share = self.cut_share
            if now.params.validate:
                self._validate(now)
        return Decision(now.repartition.wanted_count, migration)

    def _choose_owners(self, now: Situation, states: Array, profile: StepProfile) -> None:
        """Every so many steps: repartition the scene, or let bodies migrate to where they have most constraints."""
        membership, graph, loads, step_count = now.membership, now.graph, now.loads, now.step_count
        is_due = now.repartition.is_due(membership)
        if step_count % MIGRATE_EVERY and not is_due and not loads.is_time_to_look(step_count):
            return
        owner = owners(membership)
        self.cut_share = cut_share(owner, graph.edges)
        if step_count == 0:
            self.note_repartition(now)
        if is_due or loads.are_uneven(membership, step_count, self.cut_share):
            profile.divided = True
            now.repartition.assign(states, graph.contacts, membership)
            self.cut_share = cut_share(owners(membership), graph.edges)
            self.note_repartition(now)
        elif loads.may_migrate:
            upward = step_count // MIGRATE_EVERY % 2 == 0
            bodies, workers = choose_migrations(owner, graph.edges, membership.cost, membership.load, upward)
            owner[bodies] = workers
            if len(bodies):
                membership.assign(owner)

    def _choose_ghosts(self, now: Situation) -> Migration | None:
        """Choose who shares which bodies, between the owners of this step. Returns the migration it needs, if any."""
        owner, contacts, migration = owners(now.membership), now.graph.contacts, None
        moved = np.flatnonzero(owner != self._owner).astype(np.int32)
        if len(moved):
            contacts = np.concatenate([contacts, now.detection.detector.find_lost(moved, now.membership)])
            self._shared.forget(moved)
        is_same = now.detection.is_unchanged and not len(moved)
        self._shared.choose(owner, contacts, now.commands.removed, now.step_count, is_same)
        if len(moved):
            migration = Migration(moved, self._owner[moved], owner[moved])
        self._owner = owner
        return migration

    def present(self, now: Situation) -> Membership:
        return self._shared.present(now.membership, now.commands.removed)

    def neighbours(self, now: Situation) -> list[Neighbours]:
        return self._shared.neighbours(self._owner, now.membership.worker_count, now.commands.removed)

    @staticmethod
    def mail_room(body_count: int, params: Params) -> int:
        return max(MOST_INTERFACE, body_count * BulletEngine.mail_bytes(params.precision))

    def _validate(self, now: Situation) -> None:
        """Raise AssertionError unless every body has one owner, every constraint between workers has its bodies in both
        of them, and the loads are right."""
        membership, graph, removed = now.membership, now.graph, now.commands.removed
        counts = membership.worker_counts()
        assert (counts == 1).all(), f"body {np.flatnonzero(counts != 1)[0]} has {counts[counts != 1][0]} workers"
        edges = graph.edges[~np.isin(graph.edges, removed).any(axis=1)]
        present = self.present(now)
        for a, b in membership.uncovered(edges).tolist():
            for worker in self._owner[[a, b]].tolist():
                shared = present.has(a, worker) and present.has(b, worker)
                assert shared, f"worker {worker} does not have both bodies {a} and {b}, which touch or are jointed"
        load = membership.rate * membership.counted_costs()
        assert np.array_equal(load, membership.load), f"loads are {membership.load}, counted {load}"

    # ---- the step, and after it --------------------------------------------------------------------------------------

    def commands(self, now: Situation) -> list[StepCommand]:
        if now.membership.worker_count == 1:
            return now.commands.build(now.membership, self.weights)
        return now.commands.build(self.present(now), self.weights, NeighbourCommand)

    def server_work(self, now: Situation, runtime: Runtime) -> ServerWork:
        return Meanwhile() if now.membership.worker_count == 1 else WithNeighbours(self, now)

    def next_attempt(self) -> int:
        self._attempt += 1
        return self._attempt

    def merge(self, now: Situation, runtime: Runtime, profile: StepProfile) -> None:
        """Count. There is nothing to merge: every body has one worker."""
        if len(profile.replies) < 2:
            return
        profile.interface_count = len(self._shared.bodies)
        profile.exchanges = max(reply.exchanges for reply in profile.replies)
        profile.exchange_bytes = sum(reply.sent_bytes for reply in profile.replies)

    def invalidate(self) -> None:
        """Every decision is made from the situation alone."""

    def note_repartition(self, now: Situation) -> None:
        now.loads.note_repartition(now.membership, now.step_count, self.cut_share)

    # ---- state -------------------------------------------------------------------------------------------------------

    def state(self) -> PartState:
        shared = self._shared
        return PartState({"ghosts": shared.keys, "needed_at": shared.needed_at}, {"cut_share": self.cut_share})

    def restore(self, state: PartState, now: Situation) -> None:
        self.cut_share = state.values["cut_share"]
        self._owner = owners(now.membership)
        self._shared.restore(state.array("ghosts"), state.array("needed_at"))

    def redistribute(self, now: Situation) -> None:
        self._owner = owners(now.membership)
        self._shared.choose(self._owner, now.graph.contacts, now.commands.removed, now.step_count)
        self.cut_share = cut_share(self._owner, now.graph.edges)
        self.note_repartition(now)

    def redistribute_states(
        self, now: Situation, saved: Mapping[str, PartState], states: Sequence[EngineState], table: Array
    ) -> EngineState:
        """The states of all workers, joined: of what two of them have, the owner's."""
        owner, bits = np.zeros(now.scene.body_count, np.int32), saved["membership"].arrays["bits"]
        for worker in range(len(states)):
            owner[column_of(bits, worker)] = worker
        return join_states([own_part(state, owner, worker) for worker, state in enumerate(states)])


class WithNeighbours:
    """What the server does while the workers take a step together: it prepares the next detection. All take a failed
    step again: nothing has been written then."""

    repeats_all = True

    def __init__(self, coupling: Tight, now: Situation) -> None:
        self._coupling, self._now = coupling, now

    def begin(self, commands: Sequence[StepCommand], again: bool) -> Callable[[], None] | None:
        """Number the attempt, and tell the workers whom they share bodies with; those that are out for good are not
        among them."""
        now, coupling = self._now, self._coupling
        attempt, worker_count = coupling.next_attempt(), now.membership.worker_count
        for command, mine in zip(commands, coupling.neighbours(now), strict=True):
            assert isinstance(command, NeighbourCommand)
            command.attempt, command.worker_count, command.neighbours = attempt, worker_count, mine
        return None if again else self._prepare

    def _prepare(self) -> None:
        self._now.detection.detector.prepare(self._now.membership)

    def failures(self) -> list[WorkerFailure]:
        return []


def own_part(state: EngineState, owner: Ids, worker: int) -> EngineState:
    """Of a worker's engine state, its own bodies, and the contacts and joints whose first own body is its own: of what
    two workers have, one has it so."""

    def is_own(ends: Ids) -> NDArray[np.bool_]:
        first = np.where(ends[:, 0] >= 0, ends[:, 0], ends[:, 1])
        return np.asarray(owner[first] == worker)

    return state.taken(owner[state.body_ids] == worker, is_own(state.point_bodies), is_own(state.joint_bodies))


def owners(membership: Membership) -> Ids:
    """The worker of every body, of a membership in which every body has one."""
    owner = np.zeros(membership.body_count, np.int32)
    for worker in range(1, membership.worker_count):
        owner[membership.column(worker)] = worker
    return owner
