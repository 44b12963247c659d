"""Errors of runs over time and over growth depth (Figure 12)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...scene.measures import joint_gaps
from ..step_values import unit_of
from ..titles import count_of
from .numbers import Array, Series
from .runs import Run, varied_names, words_of

MOST_FRAMES = 500
"""Frames that are looked at where a measure was not recorded."""


@dataclass(frozen=True)
class Kind:
    """How a number is shown."""

    title: str
    unit: str
    factor: float = 1.0
    """From the recorded unit to this one."""

    @property
    def axis(self) -> str:
        return f"{self.title} [{self.unit}]" if self.unit else self.title


ERRORS = {
    "joint_gap_max": Kind("largest joint gap", "mm", 1e3),
    "joint_gap_sum": Kind("sum of joint gaps", "mm", 1e3),
    "penetration_max": Kind("deepest penetration", "mm", 1e3),
    "penetration_sum": Kind("sum of penetrations", "mm", 1e3),
    "one_step_error": Kind("one-step error, relative", ""),
    "one_step_difference": Kind("one-step error, RMS", "m/s"),
    "disagreement_position_max": Kind("largest disagreement", "mm", 1e3),
    "disagreement_velocity_max": Kind("largest disagreement", "m/s"),
    "residual": Kind("solver's residual", "m/s"),
}
LEFT_OUT = ("worker_residual",)
"""The largest of it is the residual."""


def kind_of(name: str) -> Kind:
    return ERRORS.get(name) or Kind(name.replace("_", " "), unit_of(name))


def error_series(run: Run) -> dict[str, Series]:
    """Errors of a run by name, in the unit of their kind. What was not recorded is worked out from frames if it can."""
    found = {}
    for name, kind in ERRORS.items():
        if name.startswith("joint_gap") and run.recording.scene.joint_count == 0:
            continue
        series = recorded_series(run, name) or _from_frames(run, name)
        if series is not None and len(series.time):
            found[name] = Series(series.time, kind.factor * series.values)
    return found


def other_series(run: Run) -> dict[str, Series]:
    """Measures that are no errors, by name."""
    found = {}
    for name in run.recording.measures:
        series = None if name in ERRORS or name in LEFT_OUT else recorded_series(run, name)
        if series is not None and len(series.time):
            found[name] = Series(series.time, kind_of(name).factor * series.values)
    return found


def recorded_series(run: Run, name: str) -> Series | None:
    """A number of every step, of several workers the largest. Steps at which it was not measured are left out."""
    values = run.values.get(name)
    if values is None:
        return None
    numbers = np.asarray(values, float)
    if numbers.ndim > 1:
        numbers = numbers.reshape(len(numbers), -1).max(axis=1)
    return _finite(run.time, numbers)


def _from_frames(run: Run, name: str) -> Series | None:
    if name == "penetration_max":
        return _over_frames(run, lambda i: _deepest(run, i)) if run.recording.has_contacts else None
    if name in ("joint_gap_max", "joint_gap_sum"):
        scene = run.recording.scene

        def gap(i: int) -> float:
            holding = np.flatnonzero(run.recording.joint_alive(i))
            gaps = joint_gaps(scene, run.recording.frame(i).states, holding)
            return float(gaps.max(initial=0.0) if name == "joint_gap_max" else gaps.sum())

        return _over_frames(run, gap)
    return None


def _over_frames(run: Run, measure: Callable[[int], float]) -> Series | None:
    count = run.recording.frame_count
    if count == 0:
        return None
    chosen = np.unique(np.linspace(0, count - 1, min(count, MOST_FRAMES)).astype(int))
    with np.errstate(invalid="ignore", over="ignore"):
        values = np.array([measure(int(i)) for i in chosen])
    return _finite(run.recording.times[chosen], values)


def _finite(time: Array, values: Array) -> Series:
    there = np.isfinite(values)
    return Series(time[there], values[there])


def _deepest(run: Run, i: int) -> float:
    return max(0.0, float(run.recording.contacts(i).depth.max(initial=0.0)))


# ---- growth depth ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GrowthLine:
    """One error over growth depth, all else equal."""

    label: str
    growth_depth: Array
    mean: Array
    """Over time."""
    largest: Array


def growth_lines(runs: Sequence[Run], errors: Sequence[dict[str, Series]], name: str) -> list[GrowthLine]:
    """Lines with more than one growth depth. `errors` are those of each run; all runs are of one scene.

    Runs that differ in nothing at all count with their mean.
    """
    blended = [pair for pair in zip(runs, errors, strict=True) if pair[0].workers > 1 and not pair[0].is_tight]
    shared = [(run, found[name]) for run, found in blended if name in found]
    details = [{k: v for k, v in run.params.items() if k not in ("growth_depth", "search_depth")} for run, _ in shared]
    varied = [key for key in varied_names(details) if key != "workers"]
    groups: dict[str, list[int]] = {}
    for number, (run, _) in enumerate(shared):
        groups.setdefault(repr((details[number], run.machine)), []).append(number)
    lines = []
    for members in groups.values():
        points: dict[int, list[tuple[float, float]]] = {}
        for run, series in (shared[number] for number in members):
            point = float(series.values.mean()), float(series.values.max())
            points.setdefault(int(run.params["growth_depth"] or 0), []).append(point)
        if len(points) > 1:
            depths = sorted(points)
            mean, largest = np.array([np.mean(points[depth], axis=0) for depth in depths]).T
            first = members[0]
            label = ", ".join([count_of(shared[first][0].workers, "worker"), *words_of(details[first], varied)])
            lines.append(GrowthLine(label, np.array(depths, float), mean, largest))
    return lines


def single_mean(runs: Sequence[Run], errors: Sequence[dict[str, Series]], name: str) -> float | None:
    """What the error of one worker is, mean over time: what growth depth can reach at best."""
    means = [
        found[name].values.mean() for run, found in zip(runs, errors, strict=True) if run.workers == 1 and name in found
    ]
    return float(np.mean(means)) if means else None
