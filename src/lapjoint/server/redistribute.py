"""Redistribution: a simulation goes on with another number of workers than the one whose state it has. The scene is
repartitioned as it is, and engine states are redistributed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..arrays.state import PartState
from ..workers.engine_states import from_bytes, to_bytes, write_states
from ..workers.messages import StepReply
from ..workers.runtimes import Runtime
from .coupling import Coupling, StepContext
from .detect import merge_contacts
from .partition import repartition
from .parts import replies_of


def redistribute(
    saved: Mapping[str, PartState], before: int, now: StepContext, coupling: Coupling, runtime: Runtime
) -> None:
    """Restore a state that was saved with `before` workers into a new simulation of the same scene with another number.
    Bodies and contact points are each taken from the worker with the largest blend weight."""
    membership, commands, table = now.membership, now.commands, saved["table"].arrays["states"]
    known = saved["commands"].arrays["known"]
    now.step_count = saved["last_step"].values["step_count"]
    runtime.states[:] = table
    commands.restore_without_workers(saved["commands"])
    now.detection.restore_engine(saved["detection"])
    replies = replies_of(saved["last_step"])
    own = np.asarray(known & saved["membership"].arrays["bits"], np.uint64)  # without what workers have besides
    contacts = merge_contacts([reply.contacts for reply in replies], own)
    now.replies = [StepReply(contacts)]
    now.detection.set_contacts([contacts.bodies, saved["detection"].arrays["contacts"]])
    membership.restore_without_workers(saved["membership"])
    worker_count = membership.worker_count
    if worker_count > 1:
        membership.assign(repartition(now.scene, table, now.graph.contacts, membership, worker_count))
    coupling.redistribute(now)
    if not known.any():
        return  # before the first step workers have nothing
    states = [from_bytes(saved["workers"].arrays[str(worker)]) for worker in range(before)]
    if len({(state.bodies.dtype, state.bodies.shape[1]) for state in states}) > 1:
        return  # of different engines, which cannot read each other's states: all start from the table
    merged = coupling.redistribute_states(now, saved, states, table)
    parts = [to_bytes(coupling.part_of(merged, membership.column(worker))) for worker in range(worker_count)]
    write_states(runtime.step, parts, membership.body_count)
    commands.known = membership.bits.copy()
    commands.set_from_table(np.asarray(saved["commands"].arrays["set"]))
