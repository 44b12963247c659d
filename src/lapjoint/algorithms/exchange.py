"""The exchange of a tight step: rounds among workers and the server between them. Readable twin of
BulletWorld::run_rounds in native/bullet/exchange.cpp, which does the same over shared memory.

Constraints within a worker are rows of the worker, those between workers are rows of the server. A body at an interface
has rows in both; its velocity changes by what either contributes. Workers solve from the server's contributions, at the
same time; the server solves from theirs. That is block Gauss-Seidel over all rows, and it is accelerated as one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..engines import RoundEngine
from ..engines.exchange import CONTRIBUTION, RoundPlan, RoundResult
from .extrapolation import COLUMNS, Advance, Products, choose_advance

Ids = NDArray[np.int32]


def run_rounds(
    server: RoundEngine,
    workers: Sequence[RoundEngine],
    rows: Sequence[Ids],
    plan: RoundPlan,
    regularization: float,
    length_unit: float,
) -> RoundResult:
    """All rounds of a step that all engines have begun and will finish. `rows` are the places of each worker's
    interface bodies among the server's."""
    theirs = np.zeros((sum(map(len, rows)), CONTRIBUTION))
    ours, how, theta, last = server.contributions(), Advance.KEEP, np.zeros(COLUMNS), -1.0
    masses = []
    for worker, mine in zip(workers, rows, strict=True):
        held = worker.interface_masses()
        held[:, :2] = mine[held[:, :2].astype(int)]
        masses.append(held)
    if any(map(len, masses)):
        server.add_interface_masses(np.concatenate(masses))
    result = RoundResult(0, 0.0, False)
    while True:
        total = Products()
        for worker, mine in zip(workers, rows, strict=True):  # at the same time
            worker.extrapolate(how, theta)
            worker.include(ours[mine])
            total.add(Products.from_numbers(worker.sweep(plan.sweeps)))
            theirs[mine] = worker.contributions()
        server.include(theirs)
        total.add(Products.from_numbers(server.sweep(plan.server_sweeps)))
        result = RoundResult(result.rounds + 1, total.largest_change * length_unit, False)
        if result.rounds >= plan.rounds or result.residual <= plan.tolerance:
            break
        if plan.accelerated:
            how, theta = choose_advance(total, last, regularization, plan.is_few)
            last = total.change_squared
            server.extrapolate(how, theta)
        ours = server.contributions()
    ours = server.contributions()
    for worker, mine in zip(workers, rows, strict=True):
        worker.include(ours[mine])
    return result
