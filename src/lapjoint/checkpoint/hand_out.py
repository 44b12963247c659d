"""Going on with another number of workers: the scene is divided as it is, and memories are handed out anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..algorithms.membership import WORD
from ..algorithms.ownership import cut_share
from ..engines import EngineState, join_states
from ..server.coupling.tight import TightCoupling, owners
from ..server.detect import merge_contacts
from ..server.partition import divide_anew
from ..simulation import Simulation
from ..workers.messages import StepReply
from ..workers.worker_memory import from_bytes, give_memories, to_bytes
from .inner_state import Arrays, contacts_between, memories_of, memory_of, put_common, replies_of


def hand_out_inner_state(simulation: Simulation, arrays: Arrays, description: dict[str, Any], before: int) -> None:
    """Into a new simulation of the same scene, from one with `before` workers. Bodies and contact points go on as they
    were, each as the worker had it with most to say; bodies that several workers had start from their blend."""
    s, commands, worker_count = simulation, simulation._commands, simulation.params.workers
    put_common(s, arrays, description)
    known = arrays["commands/known"]
    replies = replies_of(arrays, description)
    if s._tight is not None and before > 1:
        between = contacts_between(arrays)
        replies.append(StepReply(between.bodies, between.point_count, between.depth))
    contacts = merge_contacts(replies, known)
    s.replies = [StepReply(contacts.bodies, contacts.point_count, contacts.depth)]
    s.graph = s._algorithms.Graph(s.scene.body_count, s._joint_edges, [contacts.bodies, arrays["graph/contacts"]])
    membership = s.membership
    membership.set_costs(arrays["membership/cost"])
    membership.since_left[:] = arrays["membership/since_left"]
    if worker_count > 1:
        membership.assign(divide_anew(s.scene, arrays["states"], s.graph.contacts, membership, worker_count))
        if s._tight is None:
            s._algorithms.assign_overlap(s.growth_depth, s.graph, membership)
    share = None
    if s._tight is not None:
        s._tight.set_owner(owners(membership))
        share = s._tight.cut_share = cut_share(s._tight.owner, s.graph.edges)
    s._loads.divided(membership, s.step_count, share)
    s._settled = False
    s._weigh()
    if not known.any():
        return  # before the first step workers have nothing
    memories = [from_bytes(data) for data in memories_of(arrays, before)]
    if len({(memory.bodies.dtype, memory.bodies.shape[1]) for memory in memories}) > 1:
        return  # of different engines: what one holds is nothing to the other, so all start from the states
    if s._tight is None:
        merged = merge_memories(memories, say_of(arrays, before))
    else:
        merged = _tight_memory(s, s._tight, memories, arrays)
    parts = [to_bytes(merged.part(membership.column(w))) for w in range(worker_count)]
    give_memories(s._runtime.step, parts, s.scene.body_count)
    commands.known = commands.wanted(membership).bits.copy()
    commands.move(np.union1d(arrays["overlap"], arrays["commands/moved"]).astype(np.int32))


def _tight_memory(s: Simulation, tight: TightCoupling, memories: Sequence[EngineState], arrays: Arrays) -> EngineState:
    """What workers and server remembered, of which no two remember the same; the server keeps its new part of it."""
    between = memory_of("tight/memory", arrays)
    nobody = np.zeros(tight.body_count, bool)  # bodies are the workers'
    everything = np.ones(len(between.points), bool), np.ones(len(between.joint_ids), bool)
    merged = join_states([*memories, between.taken(nobody[between.body_ids], *everything)])
    tight.choose_interface(s.graph.contacts, s.step_count, s._commands.removed)
    tight.change_members(arrays["states"])
    tight.remember(merged)
    return merged


def merge_memories(memories: Sequence[EngineState], say: NDArray[np.float64]) -> EngineState:
    """One memory of all bodies and contact points. `say` is how much each worker has to say about each body,
    (body_count, workers), below zero where it has none: the one with most has been nearest to the truth."""
    kept = []
    for worker, memory in enumerate(memories):
        first = np.argmax(say[memory.body_ids], axis=1) == worker
        ends = memory.point_bodies
        about = np.where((ends >= 0)[:, :, None], say[ends], np.inf)  # of a static body everybody knows all
        new = np.argmax(about.min(axis=1), axis=1) == worker
        joints = memory.joint_bodies
        about = np.where((joints >= 0)[:, :, None], say[joints], np.inf)
        own_joints = np.argmax(about.min(axis=1), axis=1) == worker
        kept.append(memory.taken(first, new, own_joints))
    return join_states(kept)


def say_of(arrays: Arrays, worker_count: int) -> NDArray[np.float64]:
    """How much each worker had to say about each body in the last step, -1 where it did not have it."""
    known = arrays["commands/known"]
    words = known[:, np.arange(worker_count) // WORD] >> (np.arange(worker_count) % WORD).astype(np.uint64)
    say = np.where(words & np.uint64(1), 1.0, -1.0)
    say[np.repeat(arrays["overlap"], np.diff(arrays["weight_offset"])), arrays["weight_worker"]] = arrays["weight"]
    return say
