"""Migration: bodies change owners between two steps, with the contact cache that their next step starts from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Membership
from ..algorithms.membership import column_of
from ..engines import EngineState, join_states
from ..workers.engine_states import WorkerChange, from_bytes, read_caches, write_migration
from ..workers.runtimes import Runtime
from .commands import CommandBuilder
from .coupling.base import Migration

Ids = NDArray[np.int32]


def migrate(
    migration: Migration, membership: Membership, commands: CommandBuilder, runtime: Runtime
) -> tuple[int, int]:
    """Have the workers exchange bodies until they have those of the membership, with what was cached of contacts and
    joints of the migrating bodies. Returns how many bodies entered engines, and how many left: none if the workers have
    no bodies yet. Those that are new to all workers enter with the step."""
    known = commands.known
    is_known = np.asarray(known.any(axis=1))
    if not is_known.any():
        return 0, 0
    changes, asked = [], []
    for worker in range(membership.worker_count):
        now, before = membership.column(worker) & is_known, column_of(known, worker)
        leaving, entering = (np.flatnonzero(mask).astype(np.int32) for mask in (before & ~now, now & ~before))
        changes.append(WorkerChange(leaving, entering, now))
        asked.append(migration.bodies[(migration.before == worker) & before[migration.bodies]])
    body_count = membership.body_count
    caches = [
        _part_of_owner(from_bytes(data), migration, worker, body_count)
        for worker, data in enumerate(read_caches(runtime.step, asked, body_count))
        if len(data)
    ]
    if not caches:
        return 0, 0  # they are in no engine
    cache = join_states(caches)
    write_migration(runtime.step, cache, changes, body_count)
    commands.known = np.where(is_known[:, None], membership.bits, known)
    return sum(len(change.entering) for change in changes), sum(len(change.leaving) for change in changes)


def _part_of_owner(cache: EngineState, migration: Migration, worker: int, body_count: int) -> EngineState:
    """Of a worker's cache, what no other worker has to give: of contacts and joints those whose first migrating body
    was its own."""
    owner = np.full(body_count + 1, -1, np.int32)  # the last is no body's
    owner[migration.bodies] = migration.before

    def is_own(ends: Ids) -> NDArray[np.bool_]:
        low, high = np.sort(ends.clip(min=-1), axis=1).T
        return np.asarray(np.where(owner[low] >= 0, owner[low], owner[high]) == worker)

    return cache.taken(np.ones(len(cache.body_ids), bool), is_own)
