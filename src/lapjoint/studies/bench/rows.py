"""Rows of a benchmark: medians over its complete repetitions, and files of rows. Nothing here measures anything."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path
from statistics import median
from typing import Protocol

from ...params import Params
from ...params.coupling_choice import traits
from ...recording.origin import core_count
from ...scene import Scene
from ...system.files import write_file
from ..step_values import phase_key
from .plan import BenchPlan


@dataclass(frozen=True)
class TurnMeans:
    """One simulation's steps in one repetition: means over the steps."""

    step_ms: float
    server_ms: float
    projected_step_ms: float
    worker_cpu_ms_largest: float
    worker_cpu_ms_mean: float
    balance: float
    phases_ms: dict[str, float]
    duplicated_share: float
    activation_count: float
    contact_count: int
    exchanges: float = 0.0
    """Of two workers in a step, with tight coupling."""
    residual: float = 0.0
    interface_count: float = 0.0
    cut_share: float = 0.0


OF_TIGHT = ("exchanges", "interface_count", "cut_share")
"""Numbers that only tight coupling has."""
Repetition = dict[int, TurnMeans]
"""The turns of all counts of workers, one after the other."""


@dataclass(frozen=True)
class BenchRow:
    """One scene on one count of workers with one number of iterations or substeps.

    docs/bench.md explains every key of `to_dict`. Times and counts are per step; each is the median over the
    repetitions of a repetition's mean.
    """

    scene: str
    workers: int
    iterations: int | None
    """None with the substep solver."""
    step_ms: float
    """Wall time, measured."""
    speedup: float
    """One worker's step_ms over this one, measured in the same repetition."""
    projected_speedup: float
    """The same of projected_step_ms."""
    projected_step_ms: float
    """Server's CPU time plus the slowest worker's, as far as one waits for the other, and what exchanges take besides:
    the step if every worker had a core of its own (see StepProfile.projected_ms)."""
    server_ms: float
    """CPU time of the server while the workers wait for it."""
    worker_cpu_ms_largest: float
    """CPU time of each step's slowest worker."""
    worker_cpu_ms_mean: float
    balance: float
    """Largest over mean of the workers' CPU times in a repetition: 1 is even."""
    duplicated_share: float
    """Active bodies of all workers over the bodies of the scene, minus one."""
    phases_ms: dict[str, float]
    """Wall time by phase."""
    activation_count: float
    contact_count: float
    """Touching pairs in a repetition's last step, pairs with static bodies included."""
    body_count: int
    joint_count: int
    repetitions: int
    """Complete ones; fewer than asked for if the benchmark was interrupted."""
    steps: int
    """Measured ones of each repetition."""
    warmup: int
    cores: int
    """That this process may use."""
    engine: str
    precision: str
    runtime: str
    params: dict[str, object]
    """All other parameters that were not left at their defaults."""
    coupling: str = "blend"
    residual: float | None = None
    """Mean over the steps [m/s]; None where the engine does not report it."""
    exchanges: float | None = None
    """Messages that two workers sent each other in a step, with tight coupling; so are the next two, and None with
    another coupling."""
    interface_count: float | None = None
    cut_share: float | None = None
    substeps: int | None = None
    """Of the substep solver; None with another."""

    def to_dict(self) -> dict[str, object]:
        """The row of a file: phases are keys of their own, numbers have six digits."""
        row: dict[str, object] = {}
        for name, value in asdict(self).items():
            if name == "phases_ms":
                row |= {phase_key(phase): ms for phase, ms in value.items()}
            else:
                row[name] = value
        return {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in row.items()}


def rows_of(plan: BenchPlan, scene: Scene, iterations: int | None, repetitions: Sequence[Repetition]) -> list[BenchRow]:
    """Sum up complete repetitions, one row for each count of workers."""
    if not repetitions:
        return []

    def middle(name: str, count: int) -> float:
        return float(median(getattr(turns[count], name) for turns in repetitions))

    def against_one(name: str, count: int) -> float:
        return median(speed_ratio(getattr(turns[1], name), getattr(turns[count], name)) for turns in repetitions)

    return [
        BenchRow(
            scene=scene.name,
            workers=count,
            iterations=iterations,
            step_ms=middle("step_ms", count),
            speedup=against_one("step_ms", count),
            projected_speedup=against_one("projected_step_ms", count),
            projected_step_ms=middle("projected_step_ms", count),
            server_ms=middle("server_ms", count),
            worker_cpu_ms_largest=middle("worker_cpu_ms_largest", count),
            worker_cpu_ms_mean=middle("worker_cpu_ms_mean", count),
            balance=middle("balance", count),
            duplicated_share=middle("duplicated_share", count),
            phases_ms={
                phase: median(turns[count].phases_ms.get(phase, 0.0) for turns in repetitions)
                for phase in repetitions[0][count].phases_ms
            },
            activation_count=middle("activation_count", count),
            contact_count=middle("contact_count", count),
            body_count=scene.body_count,
            joint_count=scene.joint_count,
            repetitions=len(repetitions),
            steps=plan.steps,
            warmup=plan.warmup,
            cores=core_count(),
            engine=plan.params.engine,
            precision=plan.params.precision,
            runtime=plan.params.runtime,
            params=changed_params(plan.params),
            coupling=plan.coupling,
            residual=None if isnan(residual := middle("residual", count)) else residual,
            **{name: middle(name, count) if traits(plan.coupling).exchanges else None for name in OF_TIGHT},
            substeps=plan.params.substeps.count if iterations is None else None,
        )
        for count in plan.counts
    ]


def changed_params(params: Params) -> dict[str, object]:
    """Parameters that are not at their defaults, without those that a row has by themselves."""
    values, defaults = params.options(), Params().options()
    for name in ("workers", "iterations", "substeps", "engine", "precision", "runtime", "coupling"):
        del values[name]
    return {name: value for name, value in values.items() if value != defaults[name]}


def speed_ratio(a: float, b: float) -> float:
    """`a` over `b`; 1 where nothing was measured."""
    return a / b if b else 1.0


# ---- files -------------------------------------------------------------------------------------------------------


class FileRow(Protocol):
    """A row as files have it."""

    @property
    def params(self) -> dict[str, object]: ...

    def to_dict(self) -> dict[str, object]: ...


def write_json(rows: Sequence[FileRow], path: Path) -> None:
    write_file(path, json.dumps([row.to_dict() for row in rows], indent=2, default=int) + "\n")


def write_csv(rows: Sequence[FileRow], path: Path) -> None:
    table = [row.to_dict() | {"params": " ".join(f"{k}={v}" for k, v in row.params.items())} for row in rows]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(table[0]))
    writer.writeheader()
    writer.writerows(table)
    write_file(path, text.getvalue())
