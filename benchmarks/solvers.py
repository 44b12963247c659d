"""Solvers on a cable that carries a thousand times the mass of a link, beside a pile; and what size costs.

    python benchmarks/solvers.py [--steps N] [--repetitions N] [--csv FILE]

The first rows are runs of the scene `cable` on two workers, the cable's and the pile's, in this process: the largest
joint gap after any of the later half of the steps, CPU time of each worker's step (median over steps, least of the
repetitions), residual, and groups of bodies that a direct solver left to sweeps. The other rows are one engine on a
cable alone, and on a stack of boxes alone: how time grows with the bodies. A repetition goes over all rows in turn.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from lapjoint import Box, Params, Plane, Scene, Simulation, make_engine, scenes
from lapjoint.scene.measures import joint_gaps
from lapjoint.scenes import cable
from lapjoint.server.partition import write_partition

RUNS = [
    ("sequential", 50, "float32"),
    ("sequential", 1000, "float32"),
    ("sequential,label:1=dantzig", 50, "float32"),
    ("sequential,label:1=lemke", 50, "float64"),
    ("dantzig", 50, "float32"),
]
LENGTHS, HEIGHTS = (20, 50, 100, 200), (5, 10, 20, 30)
COLUMNS = (
    "case",
    "solver",
    "precision",
    "iterations",
    "body_count",
    "steps",
    "joint_gap_max_mm",
    "residual_mean_m_s",
    "fallback_count_mean",
    "cable_worker_cpu_ms",
    "pile_worker_cpu_ms",
    "step_cpu_ms",
)
Row = dict[str, object]


def run_cable(solver: str, iterations: int, precision: str, steps: int, partition: Path) -> Row:
    """Every run has the cable on worker 1, whatever the solver."""
    scene = scenes.build("cable")
    params = Params(
        workers=2,
        runtime="inline",
        engine="bullet" if precision == "float32" else f"bullet,1=bullet:{precision}",
        solver=solver,
        iterations=iterations,
        partition=str(partition),
        repartition=0,
    )
    gaps, cpu_ms, residuals, fallbacks = [], [], [], []
    with Simulation(scene, params) as simulation:
        for step in range(steps):
            simulation.step()
            cpu_ms.append(simulation.profile.worker_cpu_ms)
            residuals.append(simulation.profile.residual)
            fallbacks.append(simulation.profile.fallback_count)
            if 2 * step >= steps:
                gaps.append(simulation.joint_gaps().max())
    pile_ms, cable_ms = np.median(cpu_ms, axis=0)
    return {
        "case": "cable and pile",
        "solver": solver,
        "precision": precision,
        "iterations": iterations,
        "body_count": scene.body_count,
        "steps": steps,
        "joint_gap_max_mm": 1e3 * max(gaps),
        "residual_mean_m_s": np.mean(residuals),
        "fallback_count_mean": np.mean(fallbacks),
        "cable_worker_cpu_ms": cable_ms,
        "pile_worker_cpu_ms": pile_ms,
        "step_cpu_ms": float(np.sum(np.median(cpu_ms, axis=0))),
    }


def cable_of(link_count: int) -> Scene:
    scene = Scene("cable", timestep=0.001, iterations=50)
    cable._add_cable(scene, link_count)
    return scene


def stack_of(box_count: int) -> Scene:
    scene = Scene("stack", timestep=0.002, iterations=50)
    scene.add_static(Plane())
    scene.add_bodies(Box((0.2, 0.2, 0.2)), [(0.0, 0.0, 0.1 + 0.2 * k) for k in range(box_count)], mass=1.0)
    return scene


def run_engine(case: str, scene: Scene, solver: str, precision: str, steps: int) -> Row:
    engine = make_engine(scene, Params(solver=solver, precision=precision, solver_rows=10_000))
    engine.activate(np.arange(scene.body_count), scene.states)
    times, residuals, fallbacks, gap = [], [], [], 0.0
    for step in range(steps):
        start = time.thread_time()
        engine.step()
        times.append(1e3 * (time.thread_time() - start))
        report = engine.report()
        residuals.append(report.residual)
        fallbacks.append(report.fallback_count)
        if 2 * step >= steps and scene.joint_count:
            gap = max(gap, float(joint_gaps(scene, engine.get_states(), np.arange(scene.joint_count)).max()))
    return {
        "case": case,
        "solver": solver,
        "precision": precision,
        "iterations": 50,
        "body_count": scene.body_count,
        "steps": steps,
        "joint_gap_max_mm": 1e3 * gap if scene.joint_count else "",
        "residual_mean_m_s": np.mean(residuals),
        "fallback_count_mean": np.mean(fallbacks),
        "cable_worker_cpu_ms": "",
        "pile_worker_cpu_ms": "",
        "step_cpu_ms": float(np.median(times)),
    }


def jobs(steps: int, partition: Path) -> Iterator[Callable[[], Row]]:
    for solver, iterations, precision in RUNS:
        yield lambda s=solver, i=iterations, p=precision: run_cable(s, i, p, steps, partition)  # type: ignore[misc]
    for solver, precision in (("sequential", "float32"), ("dantzig", "float32")):
        for count in LENGTHS:
            yield lambda s=solver, p=precision, n=count: run_engine("cable alone", cable_of(n), s, p, 200)  # type: ignore[misc]
    for solver, precision in (("sequential", "float32"), ("dantzig", "float32"), ("lemke", "float64")):
        for count in HEIGHTS[:2] if solver == "lemke" else HEIGHTS:
            yield lambda s=solver, p=precision, n=count: run_engine("stack alone", stack_of(n), s, p, 40)  # type: ignore[misc]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--csv", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        partition = Path(directory) / "labels.txt"
        write_partition(partition, scenes.build("cable").bodies.label.astype(np.int32))
        repetitions = [[job() for job in jobs(given.steps, partition)] for _ in range(given.repetitions)]
    rows = repetitions[0]
    for row, *others in zip(*repetitions, strict=True):
        for other in others:  # times are the least of all repetitions; all else is the same in each
            for name in COLUMNS[-3:]:
                if row[name] != "":
                    row[name] = min(float(str(row[name])), float(str(other[name])))
    for row in rows:
        print("  ".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()))
    if given.csv:
        with given.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            for row in rows:
                writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})


if __name__ == "__main__":
    main()
