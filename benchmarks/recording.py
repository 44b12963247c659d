"""What a recording of every step's states costs the step.

    python benchmarks/recording.py [SCENE] [--workers N...] [--iterations N...] [--csv FILE]

One simulation, from the state after `--warmup` steps. Blocks of steps with a recording and without take turns, each
measured from its first step to its last, everything that `lapjoint run` does in between included; a ratio is of a
block and the mean of its two neighbours, and the median is taken over all blocks.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

from tables import write_table

from lapjoint import Params, Simulation, scenes
from lapjoint.run import run


def block(simulation: Simulation, steps: int, record: Path | None) -> float:
    """ms per step."""
    moments: list[float] = []
    run(simulation, steps, lambda _: moments.append(time.perf_counter()), record=record)
    return 1e3 * (moments[-1] - moments[0]) / (steps - 1)


def measure(name: str, workers: int, iterations: int, warmup: int, steps: int, repetitions: int) -> dict[str, object]:
    with (
        Simulation(scenes.build(name), Params(workers=workers, iterations=10)) as simulation,
        tempfile.TemporaryDirectory() as folder,
    ):
        simulation.step(warmup)
        simulation.set_iterations(iterations)
        block(simulation, steps, None)
        plain, ratios = [block(simulation, steps, None)], []
        for number in range(repetitions):
            recorded = block(simulation, steps, Path(folder) / str(number))
            plain.append(block(simulation, steps, None))
            ratios.append(2 * recorded / (plain[-2] + plain[-1]))
    return {
        "scene": name,
        "workers": workers,
        "iterations": iterations,
        "plain_ms": round(median(plain), 3),
        "ratio": round(median(ratios), 4),
        "ratio_lowest": round(min(ratios), 4),
        "ratio_highest": round(max(ratios), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", nargs="?", default="bowl")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--iterations", type=int, nargs="+", default=[50])
    parser.add_argument("--warmup", type=int, default=500)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--csv", type=Path)
    given = parser.parse_args()
    rows = []
    for workers in given.workers:
        for iterations in given.iterations:
            rows.append(measure(given.scene, workers, iterations, given.warmup, given.steps, given.repetitions))
            print(rows[-1], flush=True)
    if given.csv is not None:
        write_table(rows, given.csv)


if __name__ == "__main__":
    main()
