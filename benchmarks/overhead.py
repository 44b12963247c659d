"""What one worker costs over the bare engine: the engine's own loop in C++ beside a simulation with one worker.

    python benchmarks/overhead.py [SCENE...] [--iterations N...] [--csv FILE]

Both start from the state after `--warmup` steps and take the same steps in turn; a ratio is the median over the
repetitions.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import median

import numpy as np
from tables import show, write_table

from lapjoint import Params, Simulation, make_engine, scenes


def measure(name: str, iterations: int, warmup: int, steps: int, repetitions: int) -> dict[str, object]:
    scene = scenes.build(name)
    params = Params(iterations=iterations)
    engine = make_engine(scene, params)
    engine.activate(np.arange(scene.body_count), scene.states)
    engine.step(warmup)
    walls: dict[str, list[float]] = {"engine": [], "process": [], "inline": []}
    with (
        Simulation(scene, params) as process,
        Simulation(scene, Params(iterations=iterations, runtime="inline")) as inline,
    ):
        process.step(warmup)
        inline.step(warmup)
        for _ in range(repetitions):
            for kind, step in (("engine", engine.step), ("process", process.step), ("inline", inline.step)):
                start = time.perf_counter()
                step(steps)
                walls[kind].append(1e3 * (time.perf_counter() - start) / steps)
        same = np.array_equal(process.states, engine.get_states()) and np.array_equal(inline.states, process.states)
    row: dict[str, object] = {"scene": name, "iterations": iterations, "engine_ms": round(median(walls["engine"]), 3)}
    for kind in ("process", "inline"):
        ratios = [a / b for a, b in zip(walls[kind], walls["engine"], strict=True)]
        row[f"{kind}_ms"] = round(median(walls[kind]), 3)
        row[f"{kind}_ratio"] = round(median(ratios), 3)
    return {**row, "same_bits": same}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", nargs="*", default=["bowl", "building", "two-way-bridge"])
    parser.add_argument("--iterations", type=int, nargs="+", default=[10, 50, 1000])
    parser.add_argument("--warmup", type=int, default=200)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    rows = []
    for name in arguments.scene:
        for iterations in arguments.iterations:
            few = max(1, arguments.steps // 10) if iterations >= 500 else arguments.steps
            warmup = min(arguments.warmup, 40) if iterations >= 500 else arguments.warmup
            rows.append(measure(name, iterations, warmup, few, arguments.repetitions))
            show(rows[-1])
    if arguments.csv:
        write_table(rows, arguments.csv)


if __name__ == "__main__":
    main()
