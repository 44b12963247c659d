"""A long run of a small scene: memory, descriptors and step time, sampled, in both couplings.

    python benchmarks/soak.py [--steps 200000] [--samples 20] [--scene bowl] [--size 60] [--csv FILE]

The server and its two workers are looked at together: resident memory that is theirs alone (USS), open descriptors,
threads, and the CPU time of a step since the sample before. The first sample is taken after a tenth of the time between
two: what a run begins with (modules, contact caches, tables) is there by then. Growth is by a line through the second
half of the samples, over the whole run.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from tables import append_row, show

from lapjoint import Failures, Params, Simulation, scenes


def everybody() -> list[psutil.Process]:
    me = psutil.Process()
    return [me, *me.children(recursive=True)]


def sample(simulation: Simulation, coupling: str, since: tuple[int, float]) -> dict[str, Any]:
    processes = everybody()
    steps = simulation.step_count - since[0]
    return {
        "coupling": coupling,
        "steps": simulation.step_count,
        "processes": len(processes),
        "memory_mb": f"{sum(process.memory_full_info().uss for process in processes) / 2**20:.2f}",
        "descriptors": sum(process.num_fds() for process in processes),
        "threads": sum(process.num_threads() for process in processes),
        "cpu_ms_per_step": f"{1e3 * (cpu_s() - since[1]) / max(1, steps):.4f}",
        "incidents": len(simulation.incidents),
        "state_hash": simulation.state_hash,
    }


def cpu_s() -> float:
    """CPU time of the server and its workers."""
    times = [process.cpu_times() for process in everybody()]
    return float(sum(time.user + time.system for time in times))


def soak(given: argparse.Namespace, coupling: str) -> list[dict[str, Any]]:
    scene, rows = scenes.build(given.scene, given.size), []
    patient = Failures(hang_limit=60.0)  # others may have all cores
    params = Params(workers=2, runtime="process", coupling=coupling, failures=patient)
    with Simulation(scene, params) as simulation:
        every = given.steps // given.samples
        simulation.step(every // 10)
        since = simulation.step_count, cpu_s()
        rows.append(sample(simulation, coupling, since))
        while simulation.step_count < given.steps:
            since, start = (simulation.step_count, cpu_s()), time.monotonic()
            simulation.step(min(every, given.steps - simulation.step_count))
            rows.append(sample(simulation, coupling, since))
            show({**rows[-1], "seconds": f"{time.monotonic() - start:.0f}"})
            if given.csv is not None:
                append_row(rows[-1], given.csv)
    return rows


def growth(rows: list[dict[str, Any]], name: str) -> str:
    """By a line through the second half of the samples: from the run's beginning to its end, in percent."""
    later = rows[len(rows) // 2 :]
    steps = np.array([row["steps"] for row in later], float)
    values = np.array([float(row[name]) for row in later])
    slope = np.polyfit(steps, values, 1)[0] if len(later) > 1 else 0.0
    return f"{100 * slope * rows[-1]['steps'] / values.mean():+.2f}%"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--scene", default="bowl")
    parser.add_argument("--size", type=int, default=60)
    parser.add_argument("--coupling", nargs="+", default=["tight", "blend"], choices=["tight", "blend"])
    parser.add_argument("--csv", type=Path)
    given = parser.parse_args()
    for coupling in given.coupling:
        rows = soak(given, coupling)
        names = ("memory_mb", "descriptors", "threads", "cpu_ms_per_step")
        show({"coupling": coupling, "steps": rows[-1]["steps"], **{f"{n} growth": growth(rows, n) for n in names}})


if __name__ == "__main__":
    main()
