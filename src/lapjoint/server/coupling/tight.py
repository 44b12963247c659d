"""Tight coupling: every body has one worker, its owner; constraints between owners are solved by both of
them, within every substep, without the server. docs/coupling.md has the method, native/substeps/between.h the workers'
side, native/bullet/ghosts.cpp how they choose who shares which bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...algorithms import ConstraintGraph
from ...algorithms.membership import column_of
from ...algorithms.ownership import choose_migrations, cut_share, owners
from ...arrays.growing import grown
from ...arrays.pages import trim
from ...arrays.state import PartState
from ...engines import EngineState, join_states
from ...engines.bullet import BulletEngine
from ...errors import WorkerError
from ...params import Params
from ...step_tables import StepTable
from ...workers.messages import NeighbourCommand, StepCommand, WorkerFailure
from ...workers.runtimes import Runtime
from ..last_contacts import fetch_contacts
from ..profile import StepProfile
from ..repartition import PlannedPartition, with_newer
from ..weights import OverlapWeights
from .base import Decision, Migration, OverlappedWork, ServerWork, StepContext
from .combined import combined_tables
from .structures import Structures
from .turns import check_turns, pair_turns

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

DECIDE_EVERY, MOST_APART = 50, 200
"""Steps from one choice of owners to the next: at first, and at most. More: the server has less to do, and loads are
less even."""
PLAN_AHEAD = 20
"""Steps from when a repartition is found to pay to when it takes effect: it is computed while workers take them."""
FEW = 0.002
"""Share of bodies that may migrate in one choice for the next to be twice as far away; else it is as near as at
first."""
MOST_INTERFACE = 4 << 20
"""Bytes of a worker's part of all interfaces that are solved at once."""
MESSAGE_HEAD = 64
"""Bytes of a message that are not about a body, at most."""
NOBODY = np.empty(0, np.int32)
VALUES = {"cut_share": "cut_share", "next_decision": "_next_decision", "apart": "_apart", "upward": "_upward"}
"""Of the state: their names there, and the attributes that have them."""


class Tight:
    """Owners follow contacts and loads; bodies migrate with their contact cache, or stacks would give way."""

    name: ClassVar[str] = "tight"

    def __init__(self, now: StepContext) -> None:
        self.weights = OverlapWeights.none()
        room = self.mail_room(now.scene.body_count, now.params) - MESSAGE_HEAD
        self._structures = Structures(now.scene, now.params.substeps.joints, room)
        self._owner = owners(now.membership)
        self.turns: Ids = np.empty((0, 0), np.int32)
        """When pairs of workers sweep what is between them, (workers, workers)."""
        self._ghosts: dict[int, Ids] = {}
        self._interface: Ids | None = None  # all of them, once counted
        self._must_choose = True
        self._next_decision, self._apart, self._upward = 0, DECIDE_EVERY // 2, True
        self._attempt = 0
        self._planned: PlannedPartition | None = None
        self.cut_share = 0.0
        """Share of constraints that are between workers, when it was last counted."""
        now.loads.note_repartition(now.membership, now.step_count)

    @property
    def interface(self) -> Ids:
        return self._all_ghosts().copy()

    def _all_ghosts(self) -> Ids:
        if self._interface is None:
            self._interface = np.unique(np.concatenate([NOBODY, *self._ghosts.values()]))
        return self._interface

    @property
    def owner(self) -> Ids:
        """The worker of every body; a copy."""
        return self._owner.copy()

    @property
    def planned(self) -> PlannedPartition | None:
        """The next partition, if there is to be one."""
        return self._planned

    # ---- before the step ---------------------------------------------------------------------------------------------

    def most_steps(self, now: StepContext) -> int:
        return max(1, self._next_decision - now.step_count)

    def needs_contacts(self, now: StepContext, step_count: int) -> bool:
        return step_count >= self._next_decision

    def decide(self, now: StepContext, runtime: Runtime, profile: StepProfile) -> Decision:
        """Line 12, with owners in place of overlap. Between two decisions workers find all contacts themselves, and
        choose among themselves who has which ghosts."""
        migration = None
        is_blind = now.repartition.blind is not None
        if self._is_due(now):
            with profile.phase("detect"):
                self._fetch_contacts(now, runtime)
                now.detection.set_contacts([reply.contacts.bodies for reply in now.replies])
            with profile.phase("balance"):
                now.loads.estimate(now.membership, now.replies, now.params.sweeps)
                self._choose_owners(now, runtime, profile)
                migration = self._migration(now)
                self._choose_turns(now)
            few = migration is None or len(migration.bodies) <= FEW * int(now.scene.alive.sum())
            self._apart = min(2 * self._apart, MOST_APART) if few else DECIDE_EVERY
            self._next_decision = now.loads.next_look(now.step_count, now.step_count + self._apart)
            if self._planned is not None:
                self._next_decision = now.step_count + PLAN_AHEAD
            if is_blind:
                self._next_decision = now.step_count + 1
            now.detection.fold()
            trim()  # of what was needed to decide: 250 bytes of a body
        profile.cut_share = self.cut_share
        if now.params.validate:
            now.detection.update(runtime, now.membership, now.replies)  # finds every contact between workers
            self._validate(now)
        return Decision(now.repartition.wanted_count, migration)

    def _fetch_contacts(self, now: StepContext, runtime: Runtime) -> None:
        """Those of the last step are here where a decision was to follow it, not where somebody wants one now. Without
        a worker that is gone, it goes without: by joints, and by what is near."""
        with suppress(WorkerError):
            fetch_contacts(now.replies, runtime.step, now.params.workers, now.scene.body_count)

    def _is_due(self, now: StepContext) -> bool:
        """Whether it is time to decide anew."""
        return now.step_count >= self._next_decision or now.repartition.is_due(now.membership)

    def _choose_owners(self, now: StepContext, runtime: Runtime, profile: StepProfile) -> None:
        """Repartition the scene, begin to plan that, or let bodies migrate to where they have most constraints."""
        membership, graph, loads, step_count = now.membership, now.graph, now.loads, now.step_count
        owner = owners(membership)
        self.cut_share = cut_share(owner, graph.edges)
        if loads.has_just_begun(step_count):
            self.note_repartition(now)
        planned, self._planned = self._planned, None
        if now.repartition.is_due(membership):
            now.repartition.assign(runtime.states, graph.contacts, membership)
            self._note_new_owners(now, profile)
        elif planned is not None:
            membership.assign(with_newer(planned.partition(), membership))
            self._note_new_owners(now, profile)
        elif loads.has_waited(step_count) and loads.are_uneven(membership, self.cut_share):
            self._planned = PlannedPartition.from_now(now.scene, runtime.states, graph.contacts, membership)
        elif loads.may_migrate:
            bodies, workers = choose_migrations(owner, graph.edges, membership.cost, membership.load, self._upward)
            self._upward = not self._upward
            owner[bodies] = workers
            if len(bodies):
                membership.assign(owner)

    def _note_new_owners(self, now: StepContext, profile: StepProfile) -> None:
        profile.divided = True
        self.cut_share = cut_share(owners(now.membership), now.graph.edges)
        self.note_repartition(now)

    def _migration(self, now: StepContext) -> Migration | None:
        """What has to migrate for the owners of now, if anything."""
        owner, before = owners(now.membership), self._owner
        self._owner = owner
        moved = np.flatnonzero((owner != before) & now.commands.known.any(axis=1)).astype(np.int32)
        self._must_choose |= not np.array_equal(owner, before)
        return Migration(moved, before[moved], owner[moved]) if len(moved) else None

    def _choose_turns(self, now: StepContext) -> None:
        before, self.turns = self.turns, pair_turns(self._owner, now.graph.edges, now.membership.worker_count)
        # Who has another turn chooses ghosts anew, and cannot do so without the others.
        self._must_choose |= not np.array_equal(before, self.turns)

    def graph(self, now: StepContext) -> ConstraintGraph:
        now.detection.set_contacts([reply.contacts.bodies for reply in now.replies])
        return now.graph

    @staticmethod
    def mail_room(body_count: int, params: Params) -> int:
        return max(MOST_INTERFACE, MESSAGE_HEAD + body_count * BulletEngine.mail_bytes(params.precision))

    def _validate(self, now: StepContext) -> None:
        """Raise an error unless every body has one owner, pairs of a turn have no worker in common, and the loads are
        right."""
        membership = now.membership
        counts, wanted = membership.worker_counts(), now.scene.alive.astype(int)
        for body in np.flatnonzero(counts != wanted):
            raise AssertionError(f"body {body} has {counts[body]} workers, expected {wanted[body]}")
        check_turns("turns", self.turns)
        load = membership.rate * membership.counted_costs()
        assert np.array_equal(load, membership.load), f"loads are {membership.load}, counted {load}"

    def _validate_ghosts(self, now: StepContext) -> None:
        """After a step, raise AssertionError unless every constraint between workers, as it began, had its bodies in
        both of them, and every ghost was another worker's."""
        edges = now.graph.edges[now.scene.alive[now.graph.edges].all(axis=1)]  # some may have left within the step
        for a, b in edges[self._owner[edges[:, 0]] != self._owner[edges[:, 1]]].tolist():
            for worker, other in ((self._owner[a], b), (self._owner[b], a)):
                has = other in self._ghosts.get(int(worker), NOBODY)
                assert has, f"worker {worker} does not have both bodies {a} and {b}, which touch or are jointed"
        for worker, ghosts in self._ghosts.items():
            own = ghosts[self._owner[ghosts] == worker]
            assert len(own) == 0, f"worker {worker} has its own bodies {own} as ghosts"

    # ---- the step, and after it --------------------------------------------------------------------------------------

    def commands(self, now: StepContext) -> list[StepCommand]:
        if now.membership.worker_count == 1:
            return now.commands.build(now.membership, self.weights)
        return now.commands.build(now.membership, self.weights, NeighbourCommand)

    def server_work(self, now: StepContext, runtime: Runtime) -> ServerWork:
        return OverlappedWork() if now.membership.worker_count == 1 else WithNeighbours(self, now)

    def complete(self, now: StepContext, commands: Sequence[StepCommand], again: bool) -> None:
        """Number the attempt, and send the workers what they need of each other."""
        if len(self.turns) != now.membership.worker_count:
            self._choose_turns(now)
        changes = any(len(c.activate) or len(c.deactivate) or len(c.reset) for c in commands)
        whole = self._structures.narrow(self._owner)
        for worker, command in enumerate(commands):
            assert isinstance(command, NeighbourCommand)
            command.attempt, command.turns, command.whole = self._attempt + 1, self.turns[worker], whole
            command.choose = again or changes or self._must_choose
        self._attempt += max(command.steps for command in commands)
        self._must_choose = False

    def merge(self, now: StepContext, runtime: Runtime, profile: StepProfile) -> None:
        """Count. There is nothing to merge: every body has one worker."""
        if len(profile.replies) < 2:
            self._ghosts.clear()
            self._interface = None
            return
        for worker, reply in enumerate(profile.replies):
            if reply.has_ghosts:
                self._ghosts[worker] = reply.ghosts
                self._interface = None
        if len(self._ghosts) > len(profile.replies):
            self._ghosts = {w: ghosts for w, ghosts in self._ghosts.items() if w < len(profile.replies)}
            self._interface = None
        profile.interface_count = len(self._all_ghosts())
        if profile.series is None:
            raise WorkerError("a worker has answered without the measures of its steps")
        profile.exchanges = int(profile.series.exchanges[-1])
        profile.exchange_bytes = int(profile.series.sent_bytes.sum())
        if now.params.validate:
            self._validate_ghosts(now)

    def tables(self, now: StepContext) -> list[StepTable]:
        return combined_tables(now.replies)

    def add_bodies(self, workers: Ids) -> None:
        first = len(self._owner)
        self._owner = grown(self._owner, first + len(workers))
        self._owner[first:] = workers

    def note_changes(self) -> None:
        self._structures.note_changes()
        self._must_choose = True

    def invalidate(self) -> None:
        self._must_choose = True

    def note_repartition(self, now: StepContext) -> None:
        now.loads.note_repartition(now.membership, now.step_count, self.cut_share)

    # ---- state -------------------------------------------------------------------------------------------------------

    def state(self) -> PartState:
        """Without ghosts: they are chosen anew, and a step does not depend on when they were."""
        arrays = {"turns": self.turns}
        if self._planned is not None:
            planned = self._planned.partition()
            arrays["planned"] = np.concatenate([planned, self._owner[len(planned) :].clip(min=0)])
        return PartState(arrays, {name: getattr(self, place) for name, place in VALUES.items()})

    def restore(self, state: PartState, now: StepContext) -> None:
        for name, place in VALUES.items():
            setattr(self, place, state.values[name])
        self._owner = owners(now.membership)
        self.turns, self._must_choose = state.array("turns"), True
        planned = state.optional("planned")
        self._planned = None if planned is None else PlannedPartition(lambda: planned)

    def redistribute(self, now: StepContext) -> None:
        self._owner, self._planned = owners(now.membership), None
        self.cut_share = cut_share(self._owner, now.graph.edges)
        self._choose_turns(now)
        self.note_repartition(now)

    def redistribute_states(
        self, now: StepContext, saved: Mapping[str, PartState], states: Sequence[EngineState], table: Array
    ) -> EngineState:
        """The states of all workers, joined: of what two of them have, the owner's."""
        owner, bits = np.zeros(now.scene.body_count, np.int32), saved["membership"].arrays["bits"]
        for worker in range(len(states)):
            owner[column_of(bits, worker)] = worker
        return join_states([own_part(state, owner, worker) for worker, state in enumerate(states)])

    def part_of(self, state: EngineState, has_body: NDArray[np.bool_]) -> EngineState:
        """With contacts and joints that one of its bodies has with another worker's."""
        return state.about(has_body)


class WithNeighbours:
    """What the server does while the workers take steps together: it plans a repartition, if one is to come. All take
    failed steps again: nothing has been written then."""

    repeats_all = True

    def __init__(self, coupling: Tight, now: StepContext) -> None:
        self._coupling, self._now = coupling, now

    def begin(self, commands: Sequence[StepCommand], again: bool) -> Callable[[], None] | None:
        self._coupling.complete(self._now, commands, again)
        planned = self._coupling.planned
        return None if planned is None else planned.compute

    def failures(self) -> list[WorkerFailure]:
        return []


def own_part(state: EngineState, owner: Ids, worker: int) -> EngineState:
    """Of a worker's engine state, its own bodies, and the contacts and joints whose first own body is its own: of what
    two workers have, one has it so."""

    def is_own(ends: Ids) -> NDArray[np.bool_]:
        first = np.where(ends[:, 0] >= 0, ends[:, 0], ends[:, 1])
        return np.asarray(owner[first] == worker)

    return state.taken(owner[state.body_ids] == worker, is_own)
