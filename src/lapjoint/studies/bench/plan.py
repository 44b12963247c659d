"""BenchPlan: what a benchmark measures, checked before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...engines import check_engines
from ...errors import LapjointError
from ...params import Params
from ...params.coupling_choice import CouplingChoice
from ...scene import Scene
from ...server.partition import make_partition
from ..titles import count_of

ITERATIONS = 1000
"""The paper's, where the solver has iterations and none are given."""
WARMUP_ITERATIONS = 10
"""At most so many in the warm-up: bodies move and memberships evolve as with more, in a twenty-fifth of the time
that the paper's 1000 take."""
SETTLE_STEPS = 2
"""Unmeasured steps after the iterations were set: the solver's start from the last impulses gets used to them."""
FIXED_WORK = 30
"""A step's work besides the solver's sweeps, in iterations: what the bowl needs. Only the time left depends on it."""
SUBSTEP_WORK = 5
"""About how many sweeps a substep costs; only the time left depends on it."""


@dataclass(frozen=True)
class BenchPlan:
    """What to measure. Invalid values raise here, before anything starts."""

    scenes: Sequence[Scene]
    workers: Sequence[int] = (1, 2, 4, 8)
    """Counts of workers. One is measured in any case: everything is relative to it."""
    params: Params = field(default_factory=Params)
    """Of all simulations; `workers` and `iterations` are set by the plan, and `coupling` where it is auto."""
    iterations: Sequence[int] | None = None
    """One row each, of the sequential solver unless `params` names another. They are measured one after the other on
    the same simulations, without a new warm-up. None: one row of the substep solver; or with ITERATIONS where a
    simulation cannot have that."""
    steps: int = 20
    """Measured steps per repetition."""
    repetitions: int = 3
    warmup: int = 200
    """Steps of every simulation before anything is measured, with few iterations."""
    amounts: Sequence[int | None] = field(init=False)
    """Iterations of each row; None with the substep solver, which has none."""
    coupling_choice: CouplingChoice = field(init=False)
    """The coupling of all counts of workers, and why: what a run with the most of them takes."""

    def __post_init__(self) -> None:
        if len(self.scenes) == 0:
            raise LapjointError("no scene is given, expected at least one")
        for name, values in (("workers", self.workers), ("iterations", self.iterations)):
            if values is None:
                continue
            if len(values) == 0:
                raise LapjointError(f"{name} has no value, expected at least one")
            for value in values:
                Params.from_options(**{name: value})  # refuses what is no count
                if list(values).count(value) > 1:
                    raise LapjointError(f"{name} has {value} more than once")
        for name, least in (("steps", 1), ("repetitions", 1), ("warmup", 0)):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < least:
                raise LapjointError(f"{name} is {value}, expected at least {least}")
        object.__setattr__(self, "amounts", self._amounts())
        object.__setattr__(self, "coupling_choice", self._coupling_choice())
        for scene in self.scenes:
            for count in self.counts:
                try:
                    make_partition(scene, count, self.params.partition)
                except LapjointError as error:
                    raise LapjointError(f"scene {scene.name!r}: {error}") from error
                check_engines(scene, self.params_of(count).resolved(scene), warn=False)

    def _amounts(self) -> list[int | None]:
        if self.iterations is not None:
            return [int(iterations) for iterations in self.iterations]
        return [None] if self.has_substeps else [ITERATIONS]

    def _coupling_choice(self) -> CouplingChoice:
        most = self.params.with_options(workers=max(self.counts), iterations=self.amounts[0])
        return most.coupling_choice(self.scenes[0])

    @property
    def coupling(self) -> str:
        return self.coupling_choice.coupling

    @property
    def has_substeps(self) -> bool:
        """Whether every simulation has the substep solver, as long as no iterations are set."""
        every = [replace(self.params, workers=count).resolved(scene) for count in self.counts for scene in self.scenes]
        return all(params.solver == "substeps" for params in every)

    def params_of(self, count: int) -> Params:
        """Of a simulation with so many workers, as it is warmed up."""
        params = replace(self.params, workers=count, coupling=self.coupling)
        return params if self.amounts == [None] else params.with_options(iterations=self.warmup_iterations)

    def sweeps(self, iterations: int | None) -> int:
        """About how many sweeps a step takes with so many iterations, or None."""
        return SUBSTEP_WORK * self.params.substeps.count if iterations is None else iterations

    def title(self, iterations: int | None) -> str:
        """Of rows with so many iterations, or None."""
        return amount_title(iterations, self.params.substeps.count)

    @property
    def counts(self) -> list[int]:
        """Counts of workers, one worker first."""
        return sorted({1, *map(int, self.workers)})

    @property
    def warmup_iterations(self) -> int:
        return min(WARMUP_ITERATIONS, *map(self.sweeps, self.amounts))

    @property
    def work(self) -> float:
        """Of the whole plan, in the unit of `step_work`."""
        measured = SETTLE_STEPS + self.repetitions * self.steps
        return len(self.counts) * sum(
            self.warmup * step_work(scene, self.warmup_iterations)
            + sum(measured * step_work(scene, self.sweeps(iterations)) for iterations in self.amounts)
            for scene in self.scenes
        )


def amount_title(iterations: int | None, substeps: int | None) -> str:
    """The work of a solver, in words: its iterations, or its substeps where it has none."""
    return count_of(substeps or 1, "substep") if iterations is None else f"{iterations} iterations"


def step_work(scene: Scene, iterations: int) -> float:
    """What a step costs, roughly, in sweeps over one body."""
    return max(scene.body_count, 1) * (iterations + FIXED_WORK)
