"""`--workers auto`: short trials of a scene on 1, 2, 3, ... workers find how many pay on this machine.

A trial is a simulation of its own, which is closed again. The run then starts from the beginning with the number that
was found, and is to the last bit what it is when that number is given: no step of a trial is part of it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from .errors import LapjointError, SimulationStopped, WorkerError
from .params import Params
from .params.count_choice import OPEN_S, CountChoice, choose_count, in_ms, is_worth_a_trial, pays
from .params.engine_choice import EngineChoice
from .params.solver_choice import parse_solvers
from .recording.origin import core_count
from .scene import Scene
from .server.partition import is_file, worker_count_of_file
from .simulation import Simulation

WARM_UP = 2
"""Steps before those that are measured: the first is cold and takes several times as long."""
CHUNK = 10
"""Steps that are measured at once, or as many as take CHUNK_S [s]. The best of several chunks counts: whatever else the
machine does makes steps longer, and none shorter."""
CHUNK_S = 0.06
MOST_STEPS = 40
"""Steps that are measured, at most; and not more than a tenth of the run."""
MOST_S = 2.0
"""For how long they are measured [s]; and not for longer than MOST_SHARE of the run, but LEAST_S in any case."""
MOST_SHARE = 0.02
LEAST_S = 0.5
SHORT = 2 * (WARM_UP + CHUNK)
"""Steps of a run that is over before two trials are."""
TINY_S = 0.2e-3
"""A step that cannot be shared: the messages to a second worker and between the two take as long."""
FEW = 500
"""Bodies up to which a step may be as short as that, and is measured in this process first: that takes hundredths of a
second."""
START_S = 0.3
"""What it takes to start workers of a scene of few bodies [s]."""

TOO_LONG = "to try {} would take longer than it may save"


@dataclass(frozen=True)
class Trial:
    """What a trial found."""

    step_s: float
    """Wall time of a step [s]."""
    spent_s: float
    """Wall time of the trial, from the start of its workers to their end [s]."""


def known_count(scene: Scene, params: Params, steps: int | None) -> CountChoice | None:
    """How many workers a run of so many steps has with `--workers auto`, whatever `params.workers` is, where there is
    nothing to try; None where there is. `steps` is None for a run without a last step."""
    fixed = _fixed_count(scene, params)
    if fixed is not None:
        return fixed
    if params.runtime == "ray":
        raise LapjointError(
            "`runtime` is ray and `workers` is auto, which tries workers on this machine alone, expected a number of "
            "them, as in `workers` 4"
        )
    if params.runtime != "process":
        return CountChoice(1, f"workers of the runtime {params.runtime} take turns")
    if core_count() == 1:
        return CountChoice(1, "there is 1 core")
    if scene.body_count < 2:
        return CountChoice(1, f"there {'is 1 body' if scene.body_count else 'are no bodies'}")
    if steps is not None and steps < SHORT:
        return CountChoice(1, f"a run of less than {SHORT} steps is over before 2 are tried")
    return None


def _fixed_count(scene: Scene, params: Params) -> CountChoice | None:
    """The number of workers that an option is made for; if several are, the largest, and the simulation refuses those
    that do not fit it."""
    found = []
    if not isinstance(params.partition, str):
        found.append(CountChoice(max(params.partition, default=0) + 1, "`partition` is made for as many"))
    elif is_file(params.partition):
        found.append(CountChoice(worker_count_of_file(Path(params.partition)), "`partition` is made for as many"))
    solvers = parse_solvers(params.solver)
    for name, by_worker in (("engine", EngineChoice.parse(params.engine).by_worker), ("solver", solvers.by_worker)):
        if by_worker:
            found.append(CountChoice(max(by_worker) + 1, f"`{name}` names worker {max(by_worker)}"))
    if solvers.by_label:
        count = min(len(solvers.by_label) + 1, max(scene.body_count, 1))
        found.append(CountChoice(count, "`solver` names labels: one worker for each, and one for the rest"))
    return max(found, key=lambda one: one.workers, default=None)


# ---- trials ------------------------------------------------------------------------------------------------------


def tried_count(scene: Scene, params: Params, steps: int | None, on_trial: Callable[[int], None]) -> CountChoice:
    """The number of workers that trials find: one more at a time, as long as it pays and a trial is worth its time.
    `on_trial` is called with the number before each."""
    cores, bodies = core_count(), scene.body_count
    end = f"there are {cores} cores" if cores <= bodies else f"there are {bodies} bodies"
    step_s: list[float] = []
    spent_s = last_s = 0.0
    for count in range(1, min(cores, bodies) + 1):
        if count > 1 and not is_worth_a_trial(count, _run_s(steps, step_s[-1]), last_s, spent_s):
            end = TOO_LONG.format(count)
            break
        on_trial(count)
        try:
            if count == 1 and (choice := _count_at_a_glance(scene, params, steps)) is not None:
                return choice
            trial = take_trial(scene, replace(params, workers=count), steps)
        except (WorkerError, SimulationStopped, OSError) as error:  # with one worker, the run itself reports it
            end = f"a trial with {count} failed: {str(error).splitlines()[0]}"
            break
        step_s.append(trial.step_s)
        last_s, spent_s = trial.spent_s, spent_s + trial.spent_s
        if not pays(step_s):
            break
    return choose_count(step_s, end) if step_s else CountChoice(1, end)


def take_trial(scene: Scene, params: Params, steps: int | None) -> Trial:
    """Simulate the first few steps, for a run of so many, and measure them. A WorkerError, if a worker fails."""
    most = MOST_STEPS if steps is None else max(1, min(MOST_STEPS, steps // 10))
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the run has the same
        with Simulation(scene, params) as simulation:
            simulation.step(WARM_UP - 1)
            about_s = _timed(simulation, 1)
            chunk = max(1, min(CHUNK, most, int(CHUNK_S / about_s)))
            end = time.perf_counter() + max(LEAST_S, min(MOST_S, MOST_SHARE * _run_s(steps, about_s)))
            found = [_timed(simulation, chunk)]
            while (len(found) + 1) * chunk <= most and time.perf_counter() < end:
                found.append(_timed(simulation, chunk))
            for event in simulation.incidents:
                if event.is_failure:
                    raise WorkerError(event.text)
    return Trial(min(found), time.perf_counter() - start)


def _timed(simulation: Simulation, count: int) -> float:
    """What each of so many steps takes [s]."""
    start = time.perf_counter()
    simulation.step(count)
    return (time.perf_counter() - start) / count


def _run_s(steps: int | None, step_s: float) -> float:
    return OPEN_S if steps is None else steps * step_s


def _count_at_a_glance(scene: Scene, params: Params, steps: int | None) -> CountChoice | None:
    """One worker, if a step of few bodies is too short to share, or the run too short to try more; None otherwise. A
    step is measured in this process, and so only with our own engine: another might crash."""
    if scene.body_count > FEW or EngineChoice.parse(params.engine).names != ["bullet"]:
        return None
    step_s = take_trial(scene, replace(params, workers=1, runtime="inline"), 10 * CHUNK).step_s
    if step_s < TINY_S:
        return CountChoice(1, f"{in_ms(step_s)} ms a step is too little to share")
    if not is_worth_a_trial(2, _run_s(steps, step_s), 2 * START_S, 0.0):
        return choose_count([step_s], TOO_LONG.format(2))
    return None
