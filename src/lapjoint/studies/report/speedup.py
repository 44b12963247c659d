"""Speed-up over workers (Figure 10), from recordings and from benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from ..bench.rows import speed_ratio
from .bench_file import BenchPoint
from .numbers import projected_ms
from .runs import SHARING, Material, Run, varied_names, words_of


@dataclass(frozen=True)
class SpeedupPoint:
    """One count of workers."""

    workers: int
    step_ms: float
    """Mean wall time of a step, measured."""
    measured: float | None
    """Step time of one worker over this one. None where it is not comparable: with more workers than cores."""
    projected: float | None
    """The same, as if every worker had a core of its own. None where CPU times are missing."""


@dataclass
class SpeedupLine:
    """A scene on several counts of workers, all else equal."""

    scene: str
    details: dict[str, Any]
    """What may distinguish it from other lines of the scene."""
    points: list[SpeedupPoint] = field(default_factory=list)
    label: str = ""


def speedup_lines(material: Material) -> list[SpeedupLine]:
    """Lines with more than one count of workers; everything is relative to one worker of the same scene."""
    lines = [line for line in [*_recorded(material.runs), *_benched(material.rows)] if len(line.points) > 1]
    for scene in {line.scene for line in lines}:
        same = [line for line in lines if line.scene == scene]
        varied = varied_names([line.details for line in same])
        for line in same:
            line.label = ", ".join([scene, *words_of(line.details, varied)])
    return lines


def has_cores(workers: int, cores: int, runtime: str) -> bool:
    """Whether every worker had a core: otherwise they waited for each other, and times are not the method's."""
    if runtime == "inline":
        return workers == 1
    return runtime != "process" or workers <= cores


# ---- recordings --------------------------------------------------------------------------------------------------


def _recorded(runs: Sequence[Run]) -> list[SpeedupLine]:
    singles: dict[str, list[Run]] = {}
    for run in runs:
        if run.workers == 1:
            singles.setdefault(_base(run), []).append(run)
    lines: dict[str, SpeedupLine] = {}
    points: dict[str, dict[int, list[SpeedupPoint]]] = {}
    for run in runs:
        bases = singles.get(_base(run), [])
        found = [point for single in bases if (point := compare_times(run, single)) is not None]
        if run.workers == 1 or not found:
            continue
        details = {name: value for name, value in run.params.items() if name != "workers"}
        details |= {"body_count": run.body_count, "machine": run.machine, "from": "recordings"}
        key = repr((run.group, details))
        lines.setdefault(key, SpeedupLine(run.scene, details))
        points.setdefault(key, {}).setdefault(run.workers, []).append(_middle(found))
        own = [point for single in bases if (point := compare_times(single, single)) is not None]
        points[key][1] = [_middle(own)]
    for key, line in lines.items():
        line.points = [_middle(points[key][workers]) for workers in sorted(points[key])]
    return list(lines.values())


def compare_times(run: Run, single: Run) -> SpeedupPoint | None:
    """A run against one worker, over the steps that both have; the first step sets the workers up and is left out."""
    steps, mine, its = np.intersect1d(run.steps, single.steps, return_indices=True)
    mine, its = mine[steps > 1], its[steps > 1]
    if len(mine) == 0:
        return None
    step_ms, single_ms = (float(a.values["step_ms"][rows].mean()) for a, rows in ((run, mine), (single, its)))
    projected = [projected_ms(a.values) for a in (run, single)]
    ratio = None
    if projected[0] is not None and projected[1] is not None:
        ratio = speed_ratio(float(projected[1][its].mean()), float(projected[0][mine].mean()))
    fair = has_cores(run.workers, run.core_count, str(run.params["runtime"]))
    return SpeedupPoint(run.workers, step_ms, speed_ratio(single_ms, step_ms) if fair else None, ratio)


def _base(run: Run) -> str:
    """Runs with the same base do the same work with one worker, on the same machine."""
    return repr((run.group, {name: value for name, value in run.params.items() if name not in SHARING}, run.machine))


def _middle(points: Sequence[SpeedupPoint]) -> SpeedupPoint:
    """The median of repeated runs."""

    def of(name: str) -> float | None:
        values = [getattr(point, name) for point in points]
        return None if None in values else float(median(values))

    return SpeedupPoint(points[0].workers, of("step_ms") or 0.0, of("measured"), of("projected"))


# ---- benchmarks --------------------------------------------------------------------------------------------------


def _benched(rows: Sequence[BenchPoint]) -> list[SpeedupLine]:
    lines: dict[str, SpeedupLine] = {}
    for row in rows:
        details = {**row.amount, "runtime": row.runtime, **row.facts, "from": row.file.name}
        details.pop("joint_count", None)
        line = lines.setdefault(repr((row.file, row.scene, details)), SpeedupLine(row.scene, details))
        measured = row.speedup if has_cores(row.workers, row.cores, row.runtime) else None
        line.points.append(SpeedupPoint(row.workers, row.step_ms, measured, row.projected_speedup))
    for line in lines.values():
        line.points.sort(key=lambda point: point.workers)
    return list(lines.values())
