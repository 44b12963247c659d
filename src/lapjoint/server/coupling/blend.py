"""Blend, the paper's coupling: workers overlap, and an overlap body's state is the weighted mean of its workers'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...algorithms import Balance, ConstraintGraph, Membership
from ...algorithms.membership import WORD, resized, validate_weights
from ...arrays.state import PartState
from ...engines import EngineState, join_states
from ...params import Params
from ...step_tables import StepTable
from ...workers.messages import StepCommand
from ...workers.runtimes import Runtime
from ..loads import ESTIMATE_EVERY
from ..profile import StepProfile
from ..weights import OverlapWeights
from .base import Decision, OverlappedWork, ServerWork, StepContext
from .combined import combined_tables

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


class Blend:
    """The overlap follows the contacts by Algorithms 6 and 7; weights by geodesics; Algorithm 4 after the step."""

    name: ClassVar[str] = "blend"

    def __init__(self, now: StepContext) -> None:
        self.weights = OverlapWeights.none()
        self._is_settled = False  # nothing changed in the last step: if contacts stay, nothing will in the next
        self._may_be_open = False
        now.algorithms.assign_overlap(_growth_depth(now), now.graph, now.membership)
        self.note_repartition(now)
        self._weigh(now)

    @property
    def interface(self) -> Ids:
        return np.empty(0, np.int32)

    # ---- before the step ---------------------------------------------------------------------------------------------

    def decide(self, now: StepContext, runtime: Runtime, profile: StepProfile) -> Decision:
        with profile.phase("detect"):  # lines 10 and 11
            now.detection.update(runtime, now.membership, now.replies)
        now.commands.reset(self.weights.bodies)  # lines 7 to 9: they were blended after the last step
        with profile.phase("balance"):
            worker_count = self._balance(now, runtime, profile)
            self._share_met(now)
        with profile.phase("weigh"):
            if not self._is_settled:
                self._weigh(now)
        return Decision(worker_count)

    def _balance(self, now: StepContext, runtime: Runtime, profile: StepProfile) -> int:
        """Line 12: the overlap grows and is pruned as contacts come and go, or the scene is repartitioned. Returns how
        many workers there should be."""
        membership, graph, params = now.membership, now.graph, now.params
        # Where the last step changed nothing and contacts are as they were, it would change nothing again.
        self._is_settled = self._is_settled and now.detection.is_unchanged and not membership.must_wait.any()
        self._is_settled = self._is_settled and now.commands.knows(membership)
        if self._is_settled and not now.loads.is_time_to_look(now.step_count):
            return membership.worker_count
        self._is_settled = False
        if now.step_count % ESTIMATE_EVERY == 0:
            now.loads.estimate(membership, now.replies, now.params.sweeps)
        mode, before = Balance(params.blend.balance), membership.bits.copy()
        balance = partial(now.algorithms.balance, growth_depth=_growth_depth(now), graph=graph, membership=membership)
        worker_count, jointed = membership.worker_count, now.detection.jointed
        if now.repartition.is_due(membership) or (
            now.loads.is_time_to_look(now.step_count) and now.loads.are_uneven(membership)
        ):
            now.repartition.begin(runtime.states, graph.contacts, membership, partial(self._assign_overlap, now))
            profile.divided = True
        else:
            worker_count = now.repartition.end(membership)
            if worker_count != membership.worker_count:
                membership.set_worker_count(worker_count)
            balance(graph.contacts, mode=mode, jointed=jointed, linger=params.blend.linger)
        after = resized(membership.bits, WORD * before.shape[1])
        left = np.flatnonzero((before & ~after).any(axis=1)).astype(np.int32)
        if mode is Balance.PRINTED:
            profile.uncovered_count = len(membership.uncovered(graph.edges))
            return worker_count
        lost = now.detection.detector.find_lost(left, membership)
        if self._may_be_open:  # joints that were added or restored may be between bodies that share no worker
            lost, self._may_be_open = np.concatenate([lost, membership.uncovered(graph.edges)]), False
        if len(lost):
            balance(lost, mode=Balance.GUARDED, jointed=jointed)
        if params.validate:
            membership.validate(graph, now.scene.alive)
        return worker_count

    def _share_met(self, now: StepContext) -> None:
        """What a fast body meets, all its workers must have, and the other way round: where one did not, the body would
        go through it there, and the blend with that a part of the way."""
        pairs, bits = now.detection.detector.met, now.membership.bits
        if len(pairs) == 0:
            return
        both = bits[pairs[:, 0]] | bits[pairs[:, 1]]
        shared = bits.copy()
        for side in (0, 1):
            np.bitwise_or.at(shared, pairs[:, side], both)
        if not np.array_equal(shared, bits):
            now.membership.set_bits(shared)
            self._is_settled = False

    def _assign_overlap(self, now: StepContext, membership: Membership) -> None:
        now.algorithms.assign_overlap(_growth_depth(now), now.graph, membership)
        self.note_repartition(now)

    def _weigh(self, now: StepContext) -> None:
        """Lines 13 to 15: Algorithm 5."""
        depth, overlap = now.params.blend.search_depth or 0, now.membership.overlap()
        is_by_depth = now.params.blend.weights == "depth"
        weigh = now.algorithms.depth_weights if is_by_depth else now.algorithms.compute_weights
        found = weigh(depth, now.graph, now.membership, overlap)
        self.weights = OverlapWeights(overlap, *found)
        if now.params.validate:
            validate_weights(self.weights.offset, self.weights.weight)

    def graph(self, now: StepContext) -> ConstraintGraph:
        return now.graph

    def most_steps(self, now: StepContext) -> int:
        return 1

    def needs_contacts(self, now: StepContext, step_count: int) -> bool:
        return True

    @staticmethod
    def mail_room(body_count: int, params: Params) -> int:
        return 0

    # ---- the step, and after it --------------------------------------------------------------------------------------

    def commands(self, now: StepContext) -> list[StepCommand]:
        commands = now.commands.build(now.membership, self.weights)
        for command in commands:
            command.breaks = len(commands) == 1
        return commands

    def server_work(self, now: StepContext, runtime: Runtime) -> ServerWork:
        several = now.membership.worker_count > 1
        return OverlappedWork(partial(now.detection.detector.prepare, now.membership) if several else None)

    def merge(self, now: StepContext, runtime: Runtime, profile: StepProfile) -> None:
        weights = self.weights
        with profile.phase("blend"):
            if len(weights.bodies):
                now.algorithms.blend(
                    weights.offset, weights.weight, runtime.worker_states, weights.bodies, runtime.border_states
                )
        self._is_settled = profile.activation_count + profile.deactivation_count == 0
        profile.overlap_count = len(weights.bodies)

    def tables(self, now: StepContext) -> list[StepTable]:
        def decided(found: Sequence[StepTable]) -> Sequence[StepTable]:
            weight = weight_table(now.commands.known, self.weights, len(found))
            return [one.taken(is_best(weight, worker, one.bodies_in(now.scene))) for worker, one in enumerate(found)]

        return combined_tables(now.replies, decided)

    def add_bodies(self, workers: Ids) -> None:
        pass

    def note_changes(self) -> None:
        self._is_settled, self._may_be_open = False, True

    def invalidate(self) -> None:
        self._is_settled = False

    def note_repartition(self, now: StepContext) -> None:
        now.loads.note_repartition(now.membership, now.step_count)

    # ---- state -------------------------------------------------------------------------------------------------------

    def state(self) -> PartState:
        return PartState(dict(vars(self.weights)), {"is_settled": bool(self._is_settled)})

    def restore(self, state: PartState, now: StepContext) -> None:
        self.weights = _weights_of(state)
        self._is_settled = state.values["is_settled"]
        self._may_be_open = True  # a checkpoint may have been changed

    def redistribute(self, now: StepContext) -> None:
        if now.membership.worker_count > 1:
            now.algorithms.assign_overlap(_growth_depth(now), now.graph, now.membership)
        self.note_repartition(now)
        self._is_settled = False
        self._weigh(now)

    def redistribute_states(
        self, now: StepContext, saved: Mapping[str, PartState], states: Sequence[EngineState], table: Array
    ) -> EngineState:
        """Each body and contact as the worker of largest blend weight had it. Bodies that several workers had start
        from their blend."""
        before = _weights_of(saved["coupling"])
        now.commands.set_from_table(before.bodies)
        return merge_states(states, weight_table(saved["commands"].arrays["known"], before, len(states)))

    def part_of(self, state: EngineState, has_body: NDArray[np.bool_]) -> EngineState:
        return state.part(has_body)


def merge_states(states: Sequence[EngineState], weight: Array) -> EngineState:
    """One state of all bodies, contact points and joints. `weight` is that of each worker in each body, (body_count,
    workers), below zero where it does not have it: of several workers the one with the largest is taken."""
    kept = []
    for worker, state in enumerate(states):
        bodies = np.argmax(weight[state.body_ids], axis=1) == worker
        kept.append(state.taken(bodies, partial(is_best, weight, worker)))
    return join_states(kept)


def is_best(weight: Array, worker: int, ends: Ids) -> NDArray[np.bool_]:
    """Of pairs of bodies, those that no worker has a larger weight in. A body less than 0 is in all workers."""
    about = np.where((ends >= 0)[:, :, None], weight[ends], np.inf)
    return np.asarray(np.argmax(about.min(axis=1), axis=1) == worker)


def weight_table(bits: NDArray[np.uint64], weights: OverlapWeights, worker_count: int) -> Array:
    """The weight of each worker in each body in the last step, -1 where it did not have it."""
    words = bits[:, np.arange(worker_count) // WORD] >> (np.arange(worker_count) % WORD).astype(np.uint64)
    table = np.where(words & np.uint64(1), 1.0, -1.0)
    table[weights.rows, weights.worker] = weights.weight
    return table


def _weights_of(state: PartState) -> OverlapWeights:
    return OverlapWeights(*(state.array(name) for name in ("bodies", "offset", "worker", "weight")))


def _growth_depth(now: StepContext) -> int:
    assert now.params.blend.growth_depth is not None
    return now.params.blend.growth_depth
