"""Balancing: which workers simulate a body in the next step. Line 12 of Algorithm 1, for blending."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...algorithms import Algorithms, Balance, ConstraintGraph, Membership
from ...algorithms.membership import WORD, resized
from ...params import Params
from ...workers.runtimes import Runtime
from ..detect import Detector
from ..division import Division
from ..loads import Loads
from ..profile import StepProfile


class Balancing:
    """Grows and prunes the overlap as contacts come and go, and divides the scene anew when that pays."""

    def __init__(
        self,
        algorithms: Algorithms,
        runtime: Runtime,
        detector: Detector,
        division: Division,
        jointed: NDArray[np.bool_],
    ) -> None:
        self._algorithms, self._runtime, self._jointed = algorithms, runtime, jointed
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
        """The membership of this step; returns how many workers there should be."""
        assert params.growth_depth is not None
        growth_depth, mode, before = params.growth_depth, Balance(params.balance), membership.bits.copy()
        worker_count = membership.worker_count
        if self._division.is_due(membership) or loads.are_uneven(membership, step_count):
            self._divide(membership, graph, loads, growth_depth, step_count)
            profile.divided = True
        else:
            worker_count = self._division.end(membership)
            if worker_count != membership.worker_count:
                membership.set_worker_count(worker_count)
            linger = params.linger
            self._algorithms.balance(graph.contacts, growth_depth, graph, membership, mode, self._jointed, linger)
        after = resized(membership.bits, WORD * before.shape[1])
        left = np.flatnonzero((before & ~after).any(axis=1)).astype(np.int32)
        if mode is Balance.PRINTED:
            profile.uncovered_count = len(membership.uncovered(graph.edges))
            return worker_count
        lost = self._detector.find_lost(left, membership)
        if len(lost):
            self._algorithms.balance(lost, growth_depth, graph, membership, Balance.GUARDED, self._jointed)
        if params.validate:
            membership.validate(graph)
        return worker_count

    def _divide(
        self, membership: Membership, graph: ConstraintGraph, loads: Loads, growth_depth: int, step_count: int
    ) -> None:
        """Another partition of the scene, and its overlap."""

        def assign_overlap(membership: Membership) -> None:
            self._algorithms.assign_overlap(growth_depth, graph, membership)
            loads.divided(membership, step_count)

        self._division.begin(self._runtime.states, graph.contacts, membership, assign_overlap)
