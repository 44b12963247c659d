"""Tight coupling: every body has one worker, its owner, and constraints between owners are solved with all others,
within the step. docs/coupling.md has the mathematics; interface.py the server's engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...algorithms import ConstraintGraph, Membership
from ...algorithms.exchange import RoundPlan
from ...algorithms.ownership import choose_migrations, cut_share
from ...arrays.state import Arrays, PartState
from ...engines import Contacts, EngineState, join_states
from ...engines.exchange import exchange_room, round_bytes
from ...errors import WorkerError
from ...scene.titles import body_titles
from ...workers.messages import ExchangeCommand, Neighbours, StepCommand, StepReply, WorkerFailure
from ...workers.runtimes import Runtime
from ..profile import StepProfile
from ..weights import OverlapWeights
from .base import Decision, Meanwhile, Migration, ServerWork, Situation
from .interface import Interface

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

MIGRATE_EVERY = 10
"""Steps from one search for bodies that should migrate to the next."""


class Tight:
    """Owners follow contacts and loads; bodies migrate with their contact cache, or stacks would give way."""

    name: ClassVar[str] = "tight"

    def __init__(self, now: Situation) -> None:
        self.weights = OverlapWeights.none()
        self._interface = Interface(now.scene, now.params, owners(now.membership))
        self.cut_share = 0.0
        """Share of constraints that are between workers, when it was last counted."""
        now.loads.note_repartition(now.membership, now.step_count)

    @property
    def interface(self) -> Ids:
        return self._interface.bodies.copy()

    @property
    def owner(self) -> Ids:
        """The worker of every body; a copy."""
        return self._interface.owner.copy()

    @staticmethod
    def exchange_room(body_count: int) -> int:
        return exchange_room(body_count)

    # ---- before the step ---------------------------------------------------------------------------------------------

    def decide(self, now: Situation, runtime: Runtime, profile: StepProfile) -> Decision:
        """Line 12, with owners in place of overlap."""
        with profile.phase("balance"):
            states = runtime.states
            now.loads.estimate(now.membership, now.replies, now.params.iterations or 1, now.step_count)
            self._choose_owners(now, states, profile)
            migration = self._choose_interface(now, states)
            profile.cut_share = self.cut_share
            if now.params.validate:
                self._validate(now.membership, now.graph, now.commands.removed)
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

    def _choose_interface(self, now: Situation, states: Array) -> Migration | None:
        """Choose the interface between the owners of this step. Returns the migration that it needs, if any."""
        interface, membership, removed = self._interface, now.membership, now.commands.removed
        owner, contacts, migration = owners(membership), now.graph.contacts, None
        moved = np.flatnonzero(owner != interface.owner).astype(np.int32)
        if len(moved):
            migration = Migration(moved, interface.owner[moved], owner[moved], interface.take_cache(moved))
            interface.set_owner(owner)
            contacts = np.concatenate([contacts, now.detection.detector.find_lost(moved, membership)])
        interface.choose(contacts, now.step_count, removed)
        interface.change_members(states)
        return migration

    def present(self, now: Situation) -> Membership:
        return now.membership

    def neighbours(self, now: Situation) -> list[Neighbours]:
        return [Neighbours()] * now.membership.worker_count

    @staticmethod
    def mail_room(body_count: int, params: Params) -> int:
        return 0

    def migrated(self, cache: EngineState) -> None:
        self._interface.merge_cache(cache)

    def _validate(self, membership: Membership, graph: ConstraintGraph, removed: Ids) -> None:
        """Raise AssertionError unless every body has one worker, the server's engine has both bodies of every
        constraint between workers, and the loads are right."""
        counts = membership.worker_counts()
        assert (counts == 1).all(), f"body {np.flatnonzero(counts != 1)[0]} has {counts[counts != 1][0]} workers"
        edges = graph.edges[~np.isin(graph.edges, removed).any(axis=1)]
        present = np.isin(membership.uncovered(edges), self._interface.bodies)
        assert present.all(), "a constraint between workers is not in the server's engine"
        load = membership.rate * membership.counted_costs()
        assert np.array_equal(load, membership.load), f"loads are {membership.load}, counted {load}"

    # ---- the step, and after it --------------------------------------------------------------------------------------

    def commands(self, now: Situation) -> list[StepCommand]:
        if now.membership.worker_count > 1:
            return now.commands.build(now.membership, self.weights, ExchangeCommand)
        (command,) = now.commands.build(now.membership, self.weights)
        command.rounds = now.params.rounds  # which it takes alone
        return [command]

    def server_work(self, now: Situation, runtime: Runtime) -> ServerWork:
        if now.membership.worker_count == 1:
            return Meanwhile()
        return Exchange(self._interface, self.cut_share, now, runtime)

    def merge(self, now: Situation, runtime: Runtime, profile: StepProfile) -> None:
        """Count what the exchange took. There is nothing to merge: every body has one worker."""
        interface, replies = self._interface, profile.replies
        if len(replies) < 2:
            interface.contacts = Contacts.none()
            profile.rounds = replies[0].rounds
            return
        result = interface.result
        profile.rounds, profile.residual = result.rounds, result.residual
        profile.interface_count = len(interface.bodies)
        profile.exchange_bytes = round_bytes(len(replies), len(interface.bodies), result.rounds)
        workers_begin_s = max(reply.begin_cpu_s for reply in replies)
        profile.server_ms += 1e3 * (interface.exchange_cpu_s + max(0.0, interface.begin_cpu_s - workers_begin_s))
        profile.contacts_between = interface.contacts

    def invalidate(self) -> None:
        """Every decision is made from the situation alone."""

    def note_repartition(self, now: Situation) -> None:
        now.loads.note_repartition(now.membership, now.step_count, self.cut_share)

    # ---- state -------------------------------------------------------------------------------------------------------

    def state(self) -> PartState:
        interface = self._interface
        arrays: Arrays = {"interface": interface.bodies, "needed_at": interface.needed_at}
        arrays |= {f"contacts/{name}": array for name, array in vars(interface.contacts).items()}
        arrays |= {f"engine/{name}": array for name, array in vars(interface.engine_state()).items()}
        return PartState(arrays, {"cut_share": self.cut_share})

    def restore(self, state: PartState, now: Situation) -> Contacts | None:
        interface = self._interface
        self.cut_share = state.values["cut_share"]
        interface.set_owner(owners(now.membership))
        interface.needed_at[:] = state.arrays["needed_at"]
        interface.contacts = _contacts_of(state)
        if now.commands.known.any():  # else the workers have acted on nothing, and start from the states
            interface.restore_engine(EngineState(**state.under("engine")))
            interface.bodies = state.array("interface")
        return interface.contacts if len(now.replies) > 1 else None

    def contact_lists(self, state: PartState, replies: Sequence[StepReply], several: bool) -> list[Contacts]:
        return [*(reply.contacts for reply in replies), *([_contacts_of(state)] if several else [])]

    def redistribute(self, now: Situation) -> None:
        self._interface.set_owner(owners(now.membership))
        self.cut_share = cut_share(self._interface.owner, now.graph.edges)
        self.note_repartition(now)

    def redistribute_states(
        self, now: Situation, saved: Mapping[str, PartState], states: Sequence[EngineState], table: Array
    ) -> EngineState:
        """The states of workers and server, joined: no two have the same body. The server keeps its new part."""
        between = EngineState(**saved["coupling"].under("engine"))
        nobody = np.zeros(len(between.body_ids), bool)  # bodies are the workers'
        everything = np.ones(len(between.points), bool), np.ones(len(between.joint_ids), bool)
        merged = join_states([*states, between.taken(nobody, *everything)])
        self._interface.choose(now.graph.contacts, now.step_count, now.commands.removed)
        self._interface.change_members(table)
        self._interface.merge_cache(merged)
        return merged


class Exchange:
    """The server's side of a step's exchange, run again until no worker fails. All take a failed step again: nothing
    has been written then, and they start from the states before it."""

    repeats_all = True

    def __init__(self, interface: Interface, share: float, now: Situation, runtime: Runtime) -> None:
        self._interface, self._cut_share, self._now, self._runtime = interface, share, now, runtime
        self._plan = RoundPlan.of(now.params)

    def begin(self, commands: Sequence[StepCommand], again: bool) -> Callable[[], None]:
        """Put the interface into the commands; bodies that are out for good are not at it."""
        interface = self._interface
        interface.leave_out(self._now.commands.removed)
        owner = interface.owner[interface.bodies]
        forces: dict[int, Array] = {}
        for worker, command in enumerate(commands):
            assert isinstance(command, ExchangeCommand)
            command.interface = interface.bodies[owner == worker]
            command.jointed = interface.jointed_places(command.interface)
            forces |= zip(command.force_ids.tolist(), command.forces, strict=True)
        return partial(self._run, self._runtime.states[interface.bodies], forces, again)

    def _run(self, states: Array, forces: dict[int, Array], again: bool) -> None:
        self._interface.run_exchange(self._plan, self._cut_share, states, forces, self._runtime.links())
        if not self._interface.result.failed:  # the workers have had their last round, and finish
            self._now.detection.detector.prepare(self._now.membership)

    def failures(self) -> list[WorkerFailure]:
        interface, result = self._interface, self._interface.result
        if not result.failed:
            return []
        text = "answered within the step with numbers that are not finite"
        found = [WorkerFailure(worker, "not finite", text) for worker in result.not_finite]
        bodies = interface.bodies[list(result.lost)]
        for worker in np.unique(interface.owner[bodies]).tolist():
            own = bodies[interface.owner[bodies] == worker]
            text = f"{body_titles(self._now.scene, own)}: not finite in the server's engine"
            found.append(WorkerFailure(worker, "not finite", text, tuple(own.tolist())))
        if not found:
            raise WorkerError("the exchange of a step has ended, and no worker reports why")
        return found


def owners(membership: Membership) -> Ids:
    """The worker of every body, of a membership in which every body has one."""
    owner = np.zeros(membership.body_count, np.int32)
    for worker in range(1, membership.worker_count):
        owner[membership.column(worker)] = worker
    return owner


def _contacts_of(state: PartState) -> Contacts:
    """Of the last step, between workers."""
    return Contacts(**{field.name: state.array(f"contacts/{field.name}") for field in fields(Contacts)})
