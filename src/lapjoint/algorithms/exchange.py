"""The exchange of a tight step: rounds among workers and the server between them. Readable twin of
BulletWorld::run_rounds in native/bullet/exchange.cpp, which does the same over shared memory.

Constraints within a worker are rows of the worker, those between workers are rows of the server. A body at an interface
has rows in both; its velocity changes by what either contributes. Workers solve from the server's contributions, at the
same time; the server solves from theirs. That is block Gauss-Seidel over all rows, and it is accelerated as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..params import Params
from .extrapolation import COLUMNS, Advance, Products, choose_advance

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

CONTRIBUTION = 12
"""Numbers of a contribution: see RoundSolver."""


class RoundSolver(Protocol):
    """What the rounds need of an engine; engines.RoundEngine offers it, and more.

    A contribution is what one engine's impulses change of a body's velocity in a step: 12 numbers, the change of linear
    [m/s] and angular velocity [rad/s], and of the push and turn that resolve penetration.
    """

    def interface_masses(self) -> Array:
        """The Schur complement of the engine's joints for its interface bodies: rows of two places in the interface
        and their block of 6 by 6. Before the first sweep."""
        ...

    def add_interface_masses(self, masses: Array) -> None:
        """Add the Schur complements of the other engines to this engine's effective mass."""
        ...

    def include(self, others: Array) -> None:
        """Set what the other engines contribute to the interface bodies from now on."""
        ...

    def extrapolate(self, how: int, theta: Array) -> None:
        """Keep the impulses, extrapolate them, or drop the rounds so far: see Advance."""
        ...

    def sweep(self, count: int) -> Array:
        """Sweep over all rows `count` times; returns the Products of what that changed, as numbers."""
        ...

    def contributions(self) -> Array:
        """What this engine contributes to the interface bodies, a row each."""
        ...


@dataclass(frozen=True)
class RoundPlan:
    """How a step is taken in rounds."""

    rounds: int
    """At most."""
    sweeps: int
    """Of a worker in each."""
    server_sweeps: int
    accelerated: bool
    tolerance: float
    """m/s. Rounds end once the residual is not above it."""

    @property
    def is_few(self) -> bool:
        """With so few rounds, extrapolated contacts have no time to settle: stacks at rest would shake."""
        return self.rounds < 40

    @staticmethod
    def of(params: Params) -> RoundPlan:
        """The plan that resolved parameters ask for."""
        assert params.rounds is not None
        assert params.iterations is not None
        sweeps = max(1, params.iterations // params.rounds)
        return RoundPlan(params.rounds, sweeps, sweeps, params.acceleration, params.tolerance)


@dataclass(frozen=True)
class RoundResult:
    """How the rounds of a step ended."""

    rounds: int
    residual: float
    """Largest change of a constraint's velocity in the last round [m/s]."""
    failed: bool = False
    """Whether a worker did not reply, or an engine's numbers are not finite. Then all workers abandon the step."""
    late: tuple[int, ...] = ()
    """Workers that did not reply in time; nobody waits for them again."""
    not_finite: tuple[int, ...] = ()
    """Workers that replied with numbers that are not finite. They alone finish the step, and report the cause."""
    lost: tuple[int, ...] = ()
    """Places in the interface of bodies whose numbers in the server's own engine are not finite."""


def run_rounds(
    server: RoundSolver,
    workers: Sequence[RoundSolver],
    rows: Sequence[Ids],
    plan: RoundPlan,
    regularization: float,
    length_unit: float,
) -> RoundResult:
    """Run all rounds of a step that all engines have begun and will finish. `rows` are the places of each worker's
    interface bodies among the server's."""
    theirs = np.zeros((sum(map(len, rows)), CONTRIBUTION))
    ours, how, theta, last = server.contributions(), Advance.KEEP, np.zeros(COLUMNS), -1.0
    masses = []
    for worker, mine in zip(workers, rows, strict=True):
        blocks = worker.interface_masses()
        blocks[:, :2] = mine[blocks[:, :2].astype(int)]
        masses.append(blocks)
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
