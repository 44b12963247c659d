"""Simulations of all counts of workers, alive at the same time, take their steps in turn and are measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TypeVar

import numpy as np

from ...errors import LapjointError
from ...scene import Scene
from ...server.profile import PHASES
from ...simulation import Simulation
from ..titles import count_of
from .plan import SETTLE_STEPS, BenchPlan, step_work
from .progress import OnProgress, WorkMeter
from .rows import BenchRow, Repetition, TurnMeans, rows_of

T = TypeVar("T")


def take_turn(simulation: Simulation, steps: int, after_step: Callable[[], None]) -> TurnMeans:
    """Take `steps` steps, as many at once as workers take by themselves, and measure them; the time of `after_step`,
    which is called for each, does not count."""
    wall_s = server_ms = projected_ms = largest_ms = 0.0
    workers_ms = np.zeros(simulation.params.workers)
    phases_ms = dict.fromkeys(PHASES, 0.0)
    active = activations = exchanges = interface = 0
    residual = cut_share = 0.0
    done = 0
    while done < steps:
        start = time.perf_counter()
        count = simulation.step_at_once(steps - done)
        wall_s += time.perf_counter() - start
        done += count
        profile = simulation.profile
        server_ms += count * profile.server_ms
        projected_ms += count * profile.projected_ms
        largest_ms += count * float(profile.worker_cpu_ms.max())
        workers_ms += count * profile.worker_cpu_ms
        for phase, ms in profile.phases_ms.items():
            phases_ms[phase] = phases_ms.get(phase, 0.0) + count * ms
        active += count * int(profile.worker_body_count.sum())
        activations += profile.activation_count
        exchanges += count * profile.exchanges
        interface += count * profile.interface_count
        residual += count * profile.residual
        cut_share += count * profile.cut_share
        for _ in range(count):
            after_step()
    return TurnMeans(
        step_ms=1e3 * wall_s / steps,
        server_ms=server_ms / steps,
        projected_step_ms=projected_ms / steps,
        worker_cpu_ms_largest=largest_ms / steps,
        worker_cpu_ms_mean=float(workers_ms.mean()) / steps,
        balance=float(workers_ms.max() / max(workers_ms.mean(), 1e-9)),
        phases_ms={phase: ms / steps for phase, ms in phases_ms.items()},
        duplicated_share=active / steps / max(simulation.scene.body_count, 1) - 1,
        activation_count=activations / steps,
        contact_count=simulation.profile.contact_count,
        exchanges=exchanges / steps,
        residual=residual / steps,
        interface_count=interface / steps,
        cut_share=cut_share / steps,
    )


def measure(plan: BenchPlan, on_progress: OnProgress | None = None) -> Iterator[BenchRow]:
    """Rows as they are complete, scene by scene.

    All simulations of a scene are alive at the same time, their workers waiting. In each repetition each takes its
    steps in turn, so that a repetition compares the same stretch of simulated time side by side. KeyboardInterrupt and
    LapjointError are raised after the rows of the repetitions that were complete.
    """
    yield from measure_all([plan], on_progress)


def measure_all(plans: Sequence[BenchPlan], on_progress: OnProgress | None = None) -> Iterator[BenchRow]:
    """Rows of plans that differ in their parameters alone, as in engine or coupling: all of them have the same
    iterations, and take part in each repetition. Speed-ups are against one worker of the same plan."""
    meter = WorkMeter(sum(plan.work for plan in plans), on_progress)
    first = plans[0]
    for scene in first.scenes:
        with ExitStack() as alive:
            simulations = [start(plan, scene, alive, meter) for plan in plans]
            for iterations in first.amounts:
                yield from _repeat(plans, scene, iterations, simulations, meter)


def start(plan: BenchPlan, scene: Scene, alive: ExitStack, meter: WorkMeter) -> dict[int, Simulation]:
    """Start and warm up a simulation for every count of workers; leaving `alive` closes them."""
    simulations = {}
    for count in plan.counts:
        meter.report(f"{scene.name}: starting {count_of(count, 'worker')}")
        simulations[count] = alive.enter_context(Simulation(scene, plan.params_of(count)))
    for count, simulation in simulations.items():
        for _ in range(plan.warmup):
            simulation.step()
            meter.add(
                step_work(scene, plan.warmup_iterations), f"{scene.name}, {count_of(count, 'worker')}: warming up"
            )
    return simulations


def _repeat(
    plans: Sequence[BenchPlan],
    scene: Scene,
    iterations: int | None,
    simulations: Sequence[dict[int, Simulation]],
    meter: WorkMeter,
) -> Iterator[BenchRow]:
    first = plans[0]
    work, title = step_work(scene, first.sweeps(iterations)), f"{scene.name}, {first.title(iterations)}"
    sides = [(number, count) for number, plan in enumerate(plans) for count in plan.counts]
    for number, count in sides:
        if iterations is not None:
            simulations[number][count].workers.set_iterations(iterations)
        for _ in range(SETTLE_STEPS):
            simulations[number][count].step()
            meter.add(work, title)
    complete: list[list[Repetition]] = [[] for _ in plans]

    def rows() -> Iterator[BenchRow]:
        for plan, repetitions in zip(plans, complete, strict=True):
            yield from rows_of(plan, scene, iterations, repetitions)

    try:
        for repeated in range(first.repetitions):
            turns: list[Repetition] = [{} for _ in plans]
            for number, count in rotated(sides, repeated):
                turn = f"repetition {repeated + 1} of {first.repetitions}, {count_of(count, 'worker')}"
                doing = f"{title}: {turn}"
                turns[number][count] = take_turn(
                    simulations[number][count], first.steps, partial(meter.add, work, doing)
                )
            for repetitions, taken in zip(complete, turns, strict=True):
                repetitions.append(taken)
    except (KeyboardInterrupt, LapjointError):
        yield from rows()
        raise
    yield from rows()


def rotated(counts: Sequence[T], number: int) -> list[T]:
    """Return the order of the counts in a repetition: each starts with another, so none always follows the same."""
    first = number % len(counts)
    return [*counts[first:], *counts[:first]]
