"""Migration: bodies change owners between two steps, with the contact cache that their next step starts from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..algorithms import Membership
from ..algorithms.membership import WORD, column_of
from ..engines import EngineState, join_states
from ..workers.engine_states import WorkerChange, from_bytes, read_caches, write_migration
from ..workers.messages import Neighbours
from ..workers.runtimes import Runtime
from .commands import CommandBuilder
from .coupling.base import Migration


def migrate(
    migration: Migration,
    present: Membership,
    neighbours: Sequence[Neighbours],
    commands: CommandBuilder,
    runtime: Runtime,
) -> tuple[int, int]:
    """Have the workers exchange bodies until they have those that are to be `present`, with the bodies that they share
    with others, and what was cached of contacts and joints of the migrating bodies. Returns how many bodies entered
    engines, and how many left: none if the workers have no bodies yet."""
    wanted, known = commands.wanted(present), commands.known
    if not known.any():
        return 0, 0
    changes, asked = [], []
    for worker in range(present.worker_count):
        now, before = wanted.column(worker), column_of(known, worker)
        leaving, entering = np.flatnonzero(before & ~now), np.flatnonzero(now & ~before)
        is_concerned = bool((now | before)[migration.bodies].any())
        gained = migration.bodies[(migration.after == worker) & (now & before)[migration.bodies]]
        gone, new, own = (ids.astype(np.int32) for ids in (leaving, entering, gained))
        changes.append(WorkerChange(gone, new, own, now, neighbours[worker], is_concerned))
        asked.append(migration.bodies[(migration.before == worker) & before[migration.bodies]])
    body_count = present.body_count
    caches = [
        _part_of_owner(from_bytes(data), migration, worker, body_count)
        for worker, data in enumerate(read_caches(runtime.step, asked, body_count))
        if len(data)
    ]
    if not caches:
        return 0, 0  # they are in no engine
    cache = join_states([one for one in caches if len(one.points) or len(one.joint_ids)] or caches)
    write_migration(runtime.step, cache, changes, body_count)
    for worker, change in enumerate(changes):  # the others are told of ghosts with their commands
        if change.is_concerned:
            bit = np.uint64(1 << (worker % WORD))
            word = known[:, worker // WORD]
            word[:] = np.where(change.has, word | bit, word & ~bit)
    concerned = [change for change in changes if change.is_concerned]
    return sum(len(change.entering) for change in concerned), sum(len(change.leaving) for change in concerned)


def _part_of_owner(cache: EngineState, migration: Migration, worker: int, body_count: int) -> EngineState:
    """Of a worker's cache, what no other worker has to give: of contacts and joints those whose first migrating body
    was its own."""
    owner = np.full(body_count + 1, -1, np.int32)  # the last is no body's
    owner[migration.bodies] = migration.before
    first, second = (
        np.concatenate([cache.point_bodies[:, end], cache.joint_bodies[:, end]]).clip(min=-1) for end in range(2)
    )
    low, high = np.minimum(first, second), np.maximum(first, second)
    is_own = np.where(owner[low] >= 0, owner[low], owner[high]) == worker
    points = len(cache.points)
    return cache.taken(np.ones(len(cache.body_ids), bool), is_own[:points], is_own[points:])
