"""Tight coupling: every body has one worker, its owner; constraints between owners are solved by both of
them, within every substep, without the server. docs/coupling.md has the method; native/substeps/between.h the workers'
side; shared_bodies.py who shares which bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...algorithms import ConstraintGraph, Membership
from ...algorithms.membership import column_of
from ...algorithms.ownership import choose_migrations, cut_share
from ...arrays.state import PartState
from ...engines import CONTACT_MARGIN, EngineState, join_states
from ...engines.bullet import BulletEngine
from ...params import Params
from ...scene import STATE_SIZE
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
REACH = 0.1
"""In length units: how far a body may move before who shares it is chosen anew. More: more ghosts, fewer choices."""
MOST_INTERFACE = 4 << 20
"""Bytes of a worker's part of all interfaces that are solved at once."""


class Tight:
    """Owners follow contacts and loads; bodies migrate with their contact cache, or stacks would give way."""

    name: ClassVar[str] = "tight"

    def __init__(self, now: Situation) -> None:
        self.weights = OverlapWeights.none()
        room = self.mail_room(now.scene.body_count, now.params) - 16  # a message has a head
        self._shared = SharedBodies(now.scene, now.params.joints, room)
        self._owner = owners(now.membership)
        unit = now.params.length_unit or 1.0
        self._reach, self._radius = REACH * unit, now.scene.bounding_radii()
        self._finder = now.algorithms.PairFinder(now.scene, CONTACT_MARGIN * unit + self._reach)
        self._chosen_at: Array = np.empty((0, STATE_SIZE))  # states when ghosts were chosen; none: choose anew
        self._removed = now.commands.removed  # then
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
        """Line 12, with owners in place of overlap. Between two decisions workers find all contacts themselves: those
        of bodies that were near each other, and no body has moved far since."""
        migration, states = None, runtime.states
        if self._is_due(now, states):
            with profile.phase("detect"):
                now.detection.set_contacts([reply.contact_bodies for reply in now.replies])
            with profile.phase("balance"):
                now.loads.estimate(now.membership, now.replies, now.params.sweeps, now.step_count)
                self._choose_owners(now, states, profile)
                migration = self._choose_ghosts(now, states)
        profile.cut_share = self.cut_share
        if now.params.validate:
            now.detection.update(runtime, now.membership, now.replies)  # finds every contact between workers
            self._validate(now)
        return Decision(now.repartition.wanted_count, migration)

    def _is_due(self, now: Situation, states: Array) -> bool:
        """Whether it is time to choose anew."""
        if now.step_count % MIGRATE_EVERY == 0 or now.repartition.is_due(now.membership):
            return True
        if now.loads.is_time_to_look(now.step_count) or not np.array_equal(self._removed, now.commands.removed):
            return True
        if len(self._chosen_at) == 0 or self._owner.max(initial=0) >= now.membership.worker_count:
            return True
        return now.algorithms.any_moved(self._radius, states, self._chosen_at, self._reach)

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

    def _choose_ghosts(self, now: Situation, states: Array) -> Migration | None:
        """Choose who shares which bodies, between the owners of now. Returns the migration it needs, if any."""
        owner, before = owners(now.membership), self._owner
        near = self._finder.find(states, now.membership)
        self._shared.choose(owner, near, now.commands.removed)
        self._owner, self._chosen_at, self._removed = owner, np.array(states), now.commands.removed
        moved = np.flatnonzero(owner != before).astype(np.int32)
        return Migration(moved, before[moved], owner[moved]) if len(moved) else None

    def graph(self, now: Situation) -> ConstraintGraph:
        now.detection.set_contacts([reply.contact_bodies for reply in now.replies])
        return now.graph

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
        self._chosen_at = self._chosen_at[:0]

    def note_repartition(self, now: Situation) -> None:
        now.loads.note_repartition(now.membership, now.step_count, self.cut_share)

    # ---- state -------------------------------------------------------------------------------------------------------

    def state(self) -> PartState:
        return PartState({"ghosts": self._shared.keys, "chosen_at": self._chosen_at}, {"cut_share": self.cut_share})

    def restore(self, state: PartState, now: Situation) -> None:
        self.cut_share = state.values["cut_share"]
        self._owner = owners(now.membership)
        self._shared.set_keys(state.array("ghosts"))
        self._chosen_at, self._removed = state.array("chosen_at"), now.commands.removed

    def redistribute(self, now: Situation) -> None:
        self._owner = owners(now.membership)
        self.cut_share = cut_share(self._owner, now.graph.edges)
        self.note_repartition(now)

    def redistribute_states(
        self, now: Situation, saved: Mapping[str, PartState], states: Sequence[EngineState], table: Array
    ) -> EngineState:
        """The states of all workers, joined: of what two of them have, the owner's."""
        self._choose_ghosts(now, table)
        owner, bits = np.zeros(now.scene.body_count, np.int32), saved["membership"].arrays["bits"]
        for worker in range(len(states)):
            owner[column_of(bits, worker)] = worker
        return join_states([own_part(state, owner, worker) for worker, state in enumerate(states)])


class WithNeighbours:
    """What the server does while the workers take a step together: nothing. All take a failed step again: nothing has
    been written then."""

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
        return None

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
