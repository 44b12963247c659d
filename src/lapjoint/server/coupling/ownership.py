"""Ownership: one worker for every body, and what happens when a body moves to another (tight coupling)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...algorithms import ConstraintGraph, Membership
from ...algorithms.membership import column_of
from ...algorithms.ownership import choose_migrations, cut_share
from ...engines import EngineState, join_states
from ...params import Params
from ...workers.messages import StepCommand, StepReply
from ...workers.runtimes import Runtime
from ...workers.worker_memory import Bytes, from_bytes, part_size, to_bytes
from ..commands import CommandBuilder
from ..detect import Detector
from ..division import Division
from ..loads import Loads
from ..profile import StepProfile
from .tight import TightCoupling, owners

Ids = NDArray[np.int32]

MOVE_EVERY = 10
"""Steps between two looks for bodies that should move."""


class Ownership:
    """Decides who has what before a step, and hands bodies over, with what is remembered of their contacts and joints.
    What is remembered makes the next step start where the last one ended; without it stacks would give way."""

    def __init__(
        self, tight: TightCoupling, runtime: Runtime, commands: CommandBuilder, detector: Detector, division: Division
    ) -> None:
        self._tight, self._runtime, self._commands = tight, runtime, commands
        self._detector, self._division = detector, division

    def keep(
        self,
        membership: Membership,
        graph: ConstraintGraph,
        loads: Loads,
        params: Params,
        profile: StepProfile,
        step_count: int,
    ) -> int:
        """The owners of this step, and the interface between them; returns how many workers there should be."""
        edges = graph.edges
        is_due = self._division.is_due(membership) or loads.is_time_to_look(step_count)
        if step_count % MOVE_EVERY == 0 or is_due:
            owner = owners(membership)
            self._tight.cut_share = cut_share(owner, edges)
            if step_count == 0:
                loads.divided(membership, 0, self._tight.cut_share)
            if self._division.is_due(membership) or loads.are_uneven(membership, step_count, self._tight.cut_share):
                profile.divided = True
                self._division.divide(self._runtime.states, graph.contacts, membership)
                self._tight.cut_share = cut_share(owners(membership), edges)
                loads.divided(membership, step_count, self._tight.cut_share)
            elif loads.may_move:
                upward = step_count // MOVE_EVERY % 2 == 0
                bodies, workers = choose_migrations(owner, edges, membership.cost, membership.load, upward)
                owner[bodies] = workers
                if len(bodies):
                    membership.assign(owner)
        profile.activation_count = profile.deactivation_count = self._settle(membership, graph, step_count)
        profile.cut_share = self._tight.cut_share
        if params.validate:
            self.validate(membership, graph)
        return self._division.worker_count

    def validate(self, membership: Membership, graph: ConstraintGraph) -> None:
        """Raise AssertionError unless every body has one worker, the server mirrors both bodies of every constraint
        between workers, and the loads are right."""
        counts = membership.worker_counts()
        assert (counts == 1).all(), f"body {np.flatnonzero(counts != 1)[0]} has {counts[counts != 1][0]} workers"
        edges = graph.edges[~np.isin(graph.edges, self._commands.removed).any(axis=1)]
        mirrored = np.isin(membership.uncovered(edges), self._tight.interface)
        assert mirrored.all(), "a constraint between workers is not in the server's engine"
        load = membership.rate * membership.counted_costs()
        assert np.array_equal(load, membership.load), f"loads are {membership.load}, counted {load}"

    def _settle(self, membership: Membership, graph: ConstraintGraph, step_count: int) -> int:
        """Bodies go to their owners, and the server mirrors those at the interface. Returns how many have moved."""
        tight, states = self._tight, self._runtime.states
        owner = owners(membership)
        moved = np.flatnonzero(owner != tight.owner).astype(np.int32)
        contacts, kept = graph.contacts, None
        if len(moved):
            kept = self._hand_over(membership, owner, moved)
            contacts = np.concatenate([contacts, self._detector.find_lost(moved, membership)])
        tight.choose_interface(contacts, step_count, self._commands.removed)
        tight.change_members(states)
        if kept is not None:
            tight.remember(kept)
        return 0 if kept is None else len(moved)

    def _hand_over(self, membership: Membership, owner: Ids, moved: Ids) -> EngineState | None:
        """Bodies leave their workers and come to others. Returns what was remembered of all that they touch."""
        wanted, known = self._commands.wanted(membership), self._commands.known.copy()
        has_moved = np.zeros(len(owner), bool)
        has_moved[moved] = True
        memories = [self._tight.recall(has_moved, moved)]
        self._tight.set_owner(owner)
        if not known.any():  # nobody has anything yet
            return None
        here = [wanted.column(worker) for worker in range(membership.worker_count)]
        there = [column_of(known, worker) for worker in range(membership.worker_count)]
        leaving = [np.flatnonzero(was & ~now).astype(np.int32) for was, now in zip(there, here, strict=True)]
        entering = [np.flatnonzero(now & ~was).astype(np.int32) for was, now in zip(there, here, strict=True)]
        memories += [from_bytes(data) for data in self._ask(leaving) if len(data)]
        kept = join_states([memory for memory in memories if len(memory.points) or len(memory.joint_ids)] or memories)
        self._give(kept, here, leaving, entering)
        self._commands.known = wanted.bits.copy()
        return kept

    def _ask(self, bodies: Sequence[Ids]) -> list[Bytes]:
        """What each worker remembers of these of its bodies; nothing of a worker that does not answer, which is
        replaced in the next step."""
        size, start, whole = part_size(self._tight.body_count), 0, 1
        told: list[list[Bytes]] = [[] for _ in bodies]
        wholes = [0] * len(bodies)
        while start < whole:
            bounds = np.array([start, start + size], np.int64)
            answers = self._runtime.step(
                [StepCommand(memory_part=bounds, recall=ids) if len(ids) else None for ids in bodies]
            )
            for worker, answer in enumerate(answers):
                if isinstance(answer, StepReply):
                    told[worker].append(answer.memory)
                    wholes[worker] = max(wholes[worker], int(answer.memory_size[0]))
            start, whole = start + size, max(wholes)
        memories = [np.concatenate(mine) if mine else np.empty(0, np.uint8) for mine in told]
        return [data if len(data) == whole else data[:0] for data, whole in zip(memories, wholes, strict=True)]

    def _give(
        self,
        memory: EngineState,
        here: Sequence[NDArray[np.bool_]],
        leaving: Sequence[Ids],
        entering: Sequence[Ids],
    ) -> None:
        """Have the workers let bodies go and take others in, with what is remembered of these."""
        size = part_size(self._tight.body_count)
        data = [
            to_bytes(memory.part(has)) if len(out) or len(into) else np.empty(0, np.uint8)
            for has, out, into in zip(here, leaving, entering, strict=True)
        ]
        for start in range(0, max(map(len, data), default=0), size):
            commands: list[StepCommand | None] = []
            for mine, out, into in zip(data, leaving, entering, strict=True):
                part, is_last = mine[start : start + size], start + size >= len(mine)
                commands.append(
                    StepCommand(
                        deactivate=out if is_last else out[:0],
                        activate=into if is_last else into[:0],
                        recall=np.concatenate([out, into]),
                        memory_part=np.array([start, len(mine)], np.int64),
                        memory=part,
                    )
                    if len(part)
                    else None
                )
            self._runtime.step(commands)
