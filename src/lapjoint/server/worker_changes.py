"""Changes of how many workers there are and of what each has, besides those that a coupling decides on."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import LapjointError, WorkerError
from ..system.shortage import short_of
from .core import Core
from .incidents import Incident
from .loads import Loads
from .placed import may_touch, suits

Ids = NDArray[np.int32]


def set_params(core: Core, what: str, **changed: Any) -> None:
    """Other parameters from the next step on; refuses values that are none, and those of another coupling."""
    core.params.check_own(changed, what)
    core.now.params = core.params.with_options(**changed)


def request_partition(core: Core, partition: Ids) -> None:
    """Have the scene repartitioned so in the next step."""
    core.now.repartition.request(partition)
    core.coupling.invalidate()


def request_workers(core: Core, worker_count: int) -> None:
    """Have the scene repartitioned among so many workers in the next step; more are started at once."""
    worker_count = core.params.check_worker_count(worker_count)
    if worker_count > max(core.scene.living_count, 1):
        raise LapjointError(f"{worker_count} workers for {core.scene.living_count} bodies: expected one per body")
    set_workers(core, max(worker_count, core.now.membership.worker_count))
    core.now.repartition.wanted_count = worker_count
    core.coupling.invalidate()


def set_workers(core: Core, worker_count: int) -> None:
    """Start or end workers without bodies."""
    now = core.now
    if worker_count != now.params.workers:
        text = f"workers: {worker_count}, before {now.params.workers}"
        with short_of(f"{worker_count} workers"):
            core.runtime.set_worker_count(worker_count)
        now.commands.set_worker_count(worker_count)
        if now.params.sequential.iterations is not None:  # new workers know those that the simulation began with
            now.commands.set_iterations(now.params.sequential.iterations)
        now.params = replace(now.params, workers=worker_count)
        core.incidents.append(Incident(now.step_count, "workers", text))
    if worker_count != now.membership.worker_count:
        now.membership.set_worker_count(worker_count)


def follow_placed(core: Core) -> None:
    """Have the scene repartitioned in this step, where the partition does not suit bodies that were placed. Those
    have no contact any more where they were before."""
    now, scene = core.now, core.scene
    if now.repartition.is_due(now.membership):
        return
    placed = now.repartition.placed.take_many(scene.living_count)
    if placed is None:
        return
    states, is_new = core.runtime.states, np.asarray(~now.commands.known[placed].any(axis=1))
    if suits(placed, states, now.membership, scene.spans, is_new, lambda: now.loads.are_uneven(now.membership, 0)):
        return
    with suppress(WorkerError):  # without a worker that is gone, by joints and by what is near
        core.fetch_contacts(now.replies)
    radii = scene.bounding_radii()
    now.replies = [reply.with_contacts(may_touch(reply.contacts.bodies, states, radii)) for reply in now.replies]
    now.repartition.request_for(placed)
    core.coupling.invalidate()


def follow_load(core: Core) -> None:
    """With `max_workers`, as many workers as the load is worth."""
    now = core.now
    now.loads.estimate(now.membership, now.replies, now.params.sweeps)
    wanted = core.elastic.wanted(now.repartition.wanted_count, now.loads.step_ms(now.membership))
    try:
        request_workers(core, wanted)
    except WorkerError as error:
        core.elastic.most = now.repartition.wanted_count
        core.incidents.append(Incident(now.step_count, "workers", f"no more workers can be started: {error}"))


def set_growth_depth(core: Core, what: str, growth_depth: int) -> None:
    """The worker of largest weight keeps a body, and overlap grows from there."""
    set_params(core, what, growth_depth=growth_depth)
    membership = core.now.membership
    if membership.worker_count > 1:
        weights = core.coupling.weights.table(membership)
        largest = np.argmax(weights[:, : core.now.repartition.wanted_count], axis=1)
        request_partition(core, largest.astype(np.int32))


def set_load(core: Core, what: str, load: str) -> None:
    """Set what balancing evens out."""
    set_params(core, what, load=load)
    core.now.loads = Loads(core.scene, core.params)
    core.now.membership.set_costs(1)
    core.coupling.note_repartition(core.now)
    core.coupling.invalidate()
