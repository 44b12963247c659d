"""Migration: bodies change owners between two steps, with the contact cache that their next step starts from."""

from __future__ import annotations

import numpy as np

from ..algorithms import Membership
from ..algorithms.membership import column_of
from ..engines import EngineState, join_states
from ..workers.engine_states import WorkerChange, from_bytes, read_caches, write_migration
from ..workers.runtimes import Runtime
from .commands import CommandBuilder
from .coupling.base import Migration


def migrate(
    migration: Migration, membership: Membership, commands: CommandBuilder, runtime: Runtime
) -> EngineState | None:
    """Have the workers exchange bodies until they have those of the membership. Returns what server and workers had
    cached of all contacts and joints of the migrating bodies; None if the workers have no bodies yet."""
    wanted, known = commands.wanted(membership), commands.known
    if not known.any():
        return None
    changes = []
    for worker in range(membership.worker_count):
        now, before = wanted.column(worker), column_of(known, worker)
        leaving, entering = np.flatnonzero(before & ~now), np.flatnonzero(now & ~before)
        changes.append(WorkerChange(leaving.astype(np.int32), entering.astype(np.int32), now))
    body_count = membership.body_count
    caches = [from_bytes(d) for d in read_caches(runtime.step, [c.leaving for c in changes], body_count) if len(d)]
    caches.insert(0, migration.cache)
    cache = join_states([one for one in caches if len(one.points) or len(one.joint_ids)] or caches)
    write_migration(runtime.step, cache, changes, body_count)
    commands.known = wanted.bits.copy()
    return cache
