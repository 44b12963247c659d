"""Running parts: those that are kept are taken from there, the others are run and kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ... import scenes
from ...errors import LapjointError
from ...recording import Recording
from ...run import run
from ...simulation import Simulation
from ..bench import BenchPlan, OnProgress, measure
from ..bench.plan import WARMUP_ITERATIONS
from ..step_values import step_values
from .plan import Part, Plan, RunPart, SpeedupPart, step_ms
from .store import PartStore

ONE_STEP = ("one_step_error", "one_step_difference")
SUMMED_UP = ("joint_gap_sum", "joint_gap_max", "penetration_sum", "penetration_max", "worker_residual", *ONE_STEP)
"""Measures whose mean and largest value are in a run's result."""


@dataclass(frozen=True)
class Done:
    """A part that is complete."""

    part: Part
    result: dict[str, Any]
    recording: Path
    """Of a run; there is none of a benchmark."""
    kept: bool
    """Whether it was complete before."""
    seconds: float = 0.0


@dataclass
class _PartMeter:
    """Adds up the work of the parts that are run, and reports its share of the total."""

    total: float
    on_progress: OnProgress
    done: float = 0.0
    """Work of complete parts."""

    def part(self, part: Part) -> OnProgress:
        """For use within a part: takes its own share."""
        return lambda doing, share: self.on_progress(
            doing, min(1.0, (self.done + share * part.work) / max(self.total, 1e-9))
        )


OnPart = Callable[[Done, int, int], None]
"""Gets a complete part, its number from 1, and how many there are."""


def run_parts(
    plan: Plan, store: PartStore, on_progress: OnProgress | None = None, on_part: OnPart | None = None
) -> dict[str, Done]:
    """Results of all parts by name. Ctrl-C and errors come through; what is complete by then is kept."""
    kept = {part.name: result for part in plan.parts if (result := store.find(part)) is not None}
    waiting = sum(part.work for part in plan.parts if part.name not in kept)
    meter = _PartMeter(waiting, on_progress or (lambda doing, share: None))
    found: dict[str, Done] = {}
    for number, part in enumerate(plan.parts, 1):
        if part.name in kept:
            done = Done(part, kept[part.name], store.recording(part), kept=True)
        else:
            start = time.monotonic()
            meter.part(part)(f"{part.title}: starting", 0.0)
            result = _run_part(plan, part, store, meter.part(part))
            done = Done(part, result, store.recording(part), kept=False, seconds=time.monotonic() - start)
            meter.done += part.work
        found[part.name] = done
        if on_part is not None:
            on_part(done, number, len(plan.parts))
    return found


def _run_part(plan: Plan, part: Part, store: PartStore, on_progress: OnProgress) -> dict[str, Any]:
    place = store.start(part)
    try:
        if isinstance(part, SpeedupPart):
            return store.put(part, _measure_speedup(plan, part, on_progress))
        return store.put(part, _record(plan, part, place, on_progress))
    except LapjointError as error:
        raise LapjointError(f"{part.title}: {error}") from error


# ---- the two kinds -----------------------------------------------------------------------------------------------


def _measure_speedup(plan: Plan, part: SpeedupPart, on_progress: OnProgress) -> dict[str, Any]:
    params = plan.params.with_options(growth_depth=part.growth_depth)
    scene = scenes.build(part.scene, part.size)
    bench = BenchPlan([scene], part.counts, params, [part.iterations], part.steps, part.repetitions, part.warmup)
    return {"rows": [row.to_dict() for row in measure(bench, on_progress)]}


def _record(plan: Plan, part: RunPart, place: Path, on_progress: OnProgress) -> dict[str, Any]:
    few = min(WARMUP_ITERATIONS, part.iterations)
    params = plan.params.with_options(workers=part.workers, growth_depth=part.growth_depth, iterations=few)
    scene = scenes.build(part.scene, part.size)
    warmup = part.warmup * step_ms(part.scene, part.size, few)
    steps = part.steps * step_ms(part.scene, part.size, part.iterations)
    with Simulation(scene, params) as simulation:
        for step in range(1, part.warmup + 1):
            simulation.step()
            on_progress(f"{part.title}: warming up", warmup / (warmup + steps) * step / part.warmup)
        simulation.workers.set_iterations(part.iterations)

        def on_step(step: int) -> None:
            on_progress(part.title, (warmup + steps * step / part.steps) / (warmup + steps))

        summary = run(
            simulation,
            part.steps,
            on_step,
            measure=() if part.one_step_every is None else ONE_STEP,
            one_step_every=part.one_step_every or 1,
            record=place,
            record_every=part.frame_every,
        )
    if summary.stopped is not None:
        raise LapjointError(summary.stopped)
    if summary.steps < part.steps:  # the run takes Ctrl-C for its end
        raise KeyboardInterrupt
    extent = np.ptp(scene.states[:, :3], axis=0) if scene.body_count else np.zeros(3)
    return {
        "summary": summary.to_dict(),
        "scene_length": float(extent.max()),
        "measured": summed_up(Recording(place), part.warmup + part.skip),
    }


def summed_up(recording: Recording, after: int) -> dict[str, dict[str, float]]:
    """Mean and largest of measures over the steps after that one. Of the workers' residuals their sum counts."""
    late = recording.profile["step_count"] > after
    values = step_values(recording)
    found = {}
    for name in SUMMED_UP:
        if name in values:
            numbers = np.asarray(values[name], float)[late]
            numbers = numbers.sum(axis=1) if numbers.ndim > 1 else numbers
            numbers = numbers[np.isfinite(numbers)]
            if len(numbers):
                found[name] = {"mean": float(numbers.mean()), "largest": float(numbers.max())}
    return found
