"""simulation.workers: who simulates what, and how many workers there are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..algorithms import ConstraintGraph, Membership
from ..errors import LapjointError
from ..params.partition_choice import checked_partition
from ..server.partition import check_partition
from ..server.worker_changes import request_partition, request_workers, set_growth_depth, set_load, set_params
from ..whole import whole
from .base import Facet

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


class SimulationWorkers(Facet):
    """Who simulates what, how the results of several workers are blended, and how many workers there are."""

    _prefix = "workers."

    # ---- who simulates what --------------------------------------------------------------------------------------

    @property
    def membership(self) -> Membership:
        """Who simulates what."""
        return self._core.now.membership

    @property
    def graph(self) -> ConstraintGraph:
        """The constraint graph of the last step, as it began."""
        self._core.fetch_contacts(self._core.now.replies)
        return self._core.coupling.graph(self._core.now)

    @property
    def interface(self) -> Ids:
        """Bodies that are near bodies of other workers, or jointed to them, where these are solved within the step; a
        copy. Empty where workers overlap instead."""
        return self._core.coupling.interface if self.membership.worker_count > 1 else np.empty(0, np.int32)

    # ---- overlap -------------------------------------------------------------------------------------------------

    @property
    def overlap(self) -> Ids:
        """Bodies with more than one worker, ascending."""
        return self._core.coupling.weights.bodies

    @property
    def weight_offset(self) -> Ids:
        """Where the workers of each overlap body begin in `weight_worker` and `weight`, and where the last ones end."""
        return self._core.coupling.weights.offset

    @property
    def weight_worker(self) -> Ids:
        """The workers of the overlap bodies, one body after the other."""
        return self._core.coupling.weights.worker

    @property
    def weight(self) -> Array:
        """Their blend weights."""
        return self._core.coupling.weights.weight

    def weights(self) -> Array:
        """Blend weight of each worker in each body, (body_count, workers); rows sum to one."""
        return self._core.coupling.weights.table(self.membership)

    @property
    def overlap_states(self) -> Array:
        """States of the overlap bodies in each of their workers after the last step, as `weight_worker` lists them."""
        return np.array(self._core.runtime.worker_states[: len(self.weight_worker)])

    @property
    def growth_depth(self) -> int:
        """How far overlap grows."""
        assert self._core.params.blend.growth_depth is not None
        return self._core.params.blend.growth_depth

    @property
    def search_depth(self) -> int:
        """How far weights search."""
        assert self._core.params.blend.search_depth is not None
        return self._core.params.blend.search_depth

    # ---- changes -------------------------------------------------------------------------------------------------

    @whole
    def set_count(self, worker_count: int) -> None:
        """Change the number of workers: the scene is repartitioned among them in the next step. No state jumps; workers
        that are not needed end after it."""
        request_workers(self._core, worker_count)

    @whole
    def repartition(self, partition: ArrayLike) -> None:
        """Let every body migrate to the worker that `partition` has for it, in the next step. Balancing goes on from
        there: `Params(repartition=0)` keeps the partition."""
        scene, what = self._core.scene, "workers.repartition"
        count = self._core.now.repartition.wanted_count
        wanted = np.array(checked_partition(np.asarray(partition)), np.int64)
        if len(wanted) == scene.body_count and ((wanted >= 0) & (wanted < count)).all():
            for empty in np.setdiff1d(np.arange(count), wanted[scene.alive]):
                raise LapjointError(f"{what}: worker {empty} gets no body, expected at least one for each worker")
        workers = check_partition(what, wanted, scene, count)
        if self.membership.worker_count > 1:
            request_partition(self._core, workers)

    @whole
    def set_load(self, load: str) -> None:
        """Set what balancing evens out, from the next step on."""
        set_load(self._core, "workers.set_load", load)

    @whole
    def set_growth_depth(self, growth_depth: int) -> None:
        """Set how far overlap grows, from the next step on: the worker of largest weight keeps a body, and overlap
        grows from there."""
        set_growth_depth(self._core, "workers.set_growth_depth", growth_depth)

    @whole
    def set_iterations(self, iterations: int) -> None:
        """Set the sweeps of the solver per step, from the next step on. The substep solver has none."""
        core, what = self._core, "workers.set_iterations"
        if core.params.solver == "substeps":
            raise LapjointError(
                f"{what}: the solver is substeps, expected sequential: set `substeps` in the Params that a simulation "
                "begins with, or `solver` to sequential"
            )
        set_params(core, what, iterations=iterations)
        assert core.params.sequential.iterations is not None
        core.now.commands.set_iterations(core.params.sequential.iterations)
