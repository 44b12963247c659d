"""What a round of tight coupling takes when there is nothing to do in it: bytes on sockets, and processes that wake up.

    python benchmarks/exchange.py [--workers N...] [--runs N] [--csv FILE]

A chain with one body for each worker steps with many plain rounds of one sweep. What more rounds take is measured, so
that the rest of a step does not count: wall time, and CPU time of the server and of the slowest worker in its rounds.
`latency_us` is what is left of the wall time: StepProfile.projected_ms adds as much for every round (`ROUND_MS`).

Each run starts processes anew: on which cores they come to lie, and what else runs there, makes most of the difference,
so look at several. `load` is what the machine did besides when the run began: tasks that could run.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from statistics import median

from rounds import chain, plain_rounds, step_s
from tables import show, write_table

from lapjoint import Simulation

FEW, MANY = 50, 1050


def step(simulation: Simulation, rounds: int) -> tuple[float, float, float]:
    """Wall time of a step with so many rounds, CPU time of the server and of the slowest worker [s]."""
    wall_s, profile = step_s(simulation, rounds), simulation.profile
    return wall_s, 1e-3 * profile.server_ms, 1e-3 * float(profile.worker_cpu_ms.max())


def measure(run: int, workers: int, repetitions: int) -> dict[str, object]:
    load = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0]) - 1  # without this program
    found: list[tuple[float, ...]] = []
    with Simulation(chain(workers), plain_rounds(workers)) as simulation:
        for _ in range(20):
            step(simulation, FEW)
        for _ in range(repetitions):
            few, many = step(simulation, FEW), step(simulation, MANY)
            found.append(tuple(1e6 * (b - a) / (MANY - FEW) for a, b in zip(few, many, strict=True)))
    wall, server, worker = (median(column) for column in zip(*found, strict=True))
    latency = median(each[0] - each[1] - each[2] for each in found)
    lowest, highest = min(each[0] for each in found), max(each[0] for each in found)
    numbers = {
        "round_us": wall,
        "round_us_lowest": lowest,
        "round_us_highest": highest,
        "server_cpu_us": server,
        "worker_cpu_us": worker,
        "latency_us": latency,
    }
    cores = len(os.sched_getaffinity(0))
    return {
        "run": run,
        "workers": workers,
        "cores": cores,
        "load": load,
        **{name: round(value, 1) for name, value in numbers.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    rows = []
    for run in range(arguments.runs):
        for workers in arguments.workers:
            rows.append(measure(run, workers, arguments.repetitions))
            show(rows[-1])
    if arguments.csv:
        write_table(rows, arguments.csv)


if __name__ == "__main__":
    main()
