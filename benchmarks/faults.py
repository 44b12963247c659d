"""Faults on purpose: what a run makes of workers that are killed, stopped, or answer with NaN.

    python benchmarks/faults.py [SCENE...] [--trials N] [--workers N] [--coupling blend] [--csv FILE]

For every fault a run with it and one without take the same steps; they are the same bit for bit until the fault. What
differs right after the faulty step is the jump, over the bodies of all workers. Then the run goes on for some steps.
The table has one row per scene and fault: the trials, how many survived (went on to the end) or stopped cleanly (one
error that names worker and bodies, states as before the step), bodies lost, bodies removed (by quarantine, because they
give NaN even though frozen, and with an incident that says so), the largest and the middle jump of all others, the
largest distance that any body moves in the faulty step without the fault, and the time to recover.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from lapjoint import Params, Simulation, SimulationStopped, scenes

GO_ON = 10
"""Steps after the fault."""
FAULT_FILE = "LAPJOINT_FAULT_FILE"
TESTS = Path(__file__).parent.parent / "tests"


@dataclass
class Trial:
    """What came of one fault."""

    survived: bool
    stopped: bool
    lost_count: int
    removed_count: int
    jump_m: float
    jump_m_s: float
    recovery_s: float
    motion_m: float


class Reference:
    """The run without a fault: states after every step. It starts from where `warmup` steps of one worker end."""

    def __init__(self, name: str, size: int | None, params: Params, warmup: int, steps: int) -> None:
        self.name, self.scene, self.params = name, scenes.build(name, size), params
        with Simulation(self.scene, Params(runtime="inline")) as simulation:
            simulation.step(warmup)
            self.start = simulation.states
        with self.run(params) as simulation:
            self.states = [simulation.states]
            for _ in range(steps):
                simulation.step()
                self.states.append(simulation.states)

    def run(self, params: Params) -> Simulation:
        simulation = Simulation(self.scene, params)
        simulation.set_states(np.arange(self.scene.body_count), self.start)
        return simulation


def try_fault(reference: Reference, params: Params, step: int, fault: Callable[[Simulation], object]) -> Trial:
    """Take `step` steps, let `fault` happen, and compare with the reference after the step in which it showed."""
    with reference.run(params) as simulation:
        simulation.step(step)
        assert np.array_equal(simulation.states, reference.states[step]), "runs differ before the fault"
        clean = False
        try:
            fault(simulation)
            while not simulation.incidents:
                simulation.step()
            at = simulation.step_count
            after = simulation.states
            simulation.step(GO_ON)
        except SimulationStopped as error:
            at, after = simulation.step_count, simulation.states
            clean = bool(error.body_ids) and np.array_equal(after, reference.states[at])
        states, without, alive = simulation.states, reference.states[at], simulation.alive
        held = np.isin(np.arange(len(states)), simulation.bodies.frozen_ids) | ~alive
        homeless = int((alive & (simulation.workers.membership.worker_counts() == 0)).sum())
        return Trial(
            survived=not clean and simulation.step_count == at + GO_ON,
            stopped=clean,
            lost_count=homeless + int((~np.isfinite(states).all(axis=1)).sum()),
            removed_count=int((~alive).sum()),
            jump_m=float(np.linalg.norm((after - without)[~held, :3], axis=1).max()),
            jump_m_s=float(np.linalg.norm((after - without)[~held, 7:10], axis=1).max()),
            recovery_s=sum(event.recovery_s for event in simulation.incidents),
            motion_m=float(np.linalg.norm((without - reference.states[at - 1])[:, :3], axis=1).max()),
        )


def send(number: int, worker: int, delay_s: float) -> Callable[[Simulation], object]:
    """A signal to a worker, at a moment within one of the next steps."""

    def fault(simulation: Simulation) -> None:
        pid = simulation._core.runtime.process_ids[worker]  # type: ignore[attr-defined]
        timer = threading.Timer(delay_s, os.kill, (pid, number))
        timer.start()
        while timer.is_alive() and not simulation.incidents:
            simulation.step()
        timer.join()

    return fault


def nan(body: int, times: int) -> Callable[[Simulation], object]:
    """The next `times` steps of the body's worker give NaN for it."""

    def fault(simulation: Simulation) -> None:
        file = Path(os.environ[FAULT_FILE])
        file.write_text(json.dumps({"kind": "silent nan", "body": body, "times": times}))

    return fault


def measure(reference: Reference, trials: int, chance: random.Random, last: int) -> list[dict[str, object]]:
    params, workers = reference.params, reference.params.workers
    faulty = {"engine": "faulty"}

    def any_signal(number: int) -> Callable[[Simulation], object]:
        return send(number, chance.randrange(workers), chance.uniform(0, 0.1))

    def any_body() -> int:
        return chance.randrange(reference.scene.body_count)

    plans: dict[str, tuple[int, dict[str, object], Callable[[], Callable[[Simulation], object]]]] = {
        "SIGKILL": (
            trials,
            {},
            lambda: any_signal(signal.SIGKILL),
        ),
        "SIGKILL, --on-failure stop": (
            max(1, trials // 10),
            {"on_failure": "stop"},
            lambda: any_signal(signal.SIGKILL),
        ),
        "SIGSTOP": (
            max(1, trials // 10),
            {"hang_limit": 1.0},
            lambda: any_signal(signal.SIGSTOP),
        ),
        "NaN once": (max(1, trials // 10), faulty, lambda: nan(any_body(), 1)),
        "NaN again and again": (max(1, trials // 10), faulty, lambda: nan(any_body(), -1)),
        "NaN again and again, --quarantine": (
            max(1, trials // 10),
            {**faulty, "quarantine": True},
            lambda: nan(any_body(), -1),
        ),
    }
    rows = []
    for name, (count, extra, plan) in plans.items():
        done = []
        for _ in range(count):
            Path(os.environ[FAULT_FILE]).unlink(missing_ok=True)
            trial_params = params.with_options(**extra)
            done.append(try_fault(reference, trial_params, chance.randrange(10, last), plan()))
        rows.append(summed_up(reference, name, done))
        print(rows[-1], flush=True)
    return rows


def summed_up(reference: Reference, fault: str, done: list[Trial]) -> dict[str, object]:
    return {
        "scene": reference.name,
        "body_count": reference.scene.body_count,
        "workers": reference.params.workers,
        "coupling": reference.params.coupling,
        "fault": fault,
        "trials": len(done),
        "survived": sum(trial.survived for trial in done),
        "stopped_cleanly": sum(trial.stopped for trial in done),
        "lost_bodies": sum(trial.lost_count for trial in done),
        "removed_bodies": sum(trial.removed_count for trial in done),
        "jump_mm_largest": f"{1e3 * max(trial.jump_m for trial in done):.3g}",
        "jump_mm_median": f"{1e3 * median(trial.jump_m for trial in done):.3g}",
        "jump_mm_s_largest": f"{1e3 * max(trial.jump_m_s for trial in done):.3g}",
        "motion_mm_of_the_step": f"{1e3 * max(trial.motion_m for trial in done):.3g}",
        "recovery_s_median": f"{median(trial.recovery_s for trial in done):.3g}",
        "recovery_s_largest": f"{max(trial.recovery_s for trial in done):.3g}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", nargs="*", default=["bowl", "two-way-bridge"])
    parser.add_argument("--size", type=int, help="about how many bodies; the scene's own if not given")
    parser.add_argument("--trials", type=int, default=50, help="SIGKILLs per scene; a tenth of it of the other faults")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--coupling", default="tight", choices=["tight", "blend"])
    parser.add_argument("--warmup", type=int, default=300, help="steps before, by one worker: things touch then")
    parser.add_argument("--last", type=int, default=30, help="faults begin after 10 to so many steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    sys.path.insert(0, str(TESTS))
    with tempfile.TemporaryDirectory() as folder:
        about = Path(folder) / "faulty-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("[lapjoint.engines]\nfaulty = faulty_engine:FaultyEngine\n")
        sys.path.insert(0, folder)
        os.environ[FAULT_FILE] = str(Path(folder) / "fault.json")
        rows = []
        for name in arguments.scene:
            params = Params(workers=arguments.workers, coupling=arguments.coupling, solver="substeps")
            reference = Reference(name, arguments.size, params, arguments.warmup, arguments.last + 60)
            rows += measure(reference, arguments.trials, random.Random(arguments.seed), arguments.last)
            if arguments.csv:
                with arguments.csv.open("w", newline="") as file:
                    writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
                    writer.writeheader()
                    writer.writerows(rows)


if __name__ == "__main__":
    main()
