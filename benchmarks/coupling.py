"""Blend against tight coupling: how wrong each is after some steps, and what a step takes.

    python benchmarks/coupling.py [SCENE...] [--steps N] [--states DIR] [--csv FILE]

Every row is a run in this process, in float64, from the scene as it is built: sum and largest of the joint gaps, root
mean square of the positions' error against one worker with the same substeps, kinetic energy, messages that two workers
send each other in a step, CPU time of all workers and the server together, and what a step would take with a core for
each of them. States are kept in a folder, so that a run that was interrupted goes on, and rows with other measures can
be made of them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tables import write_table

from lapjoint import Params, Simulation, scenes
from lapjoint.measures import joint_gaps, motion

WORKERS = {
    "chain": (4,),
    "bridge": (4,),
    "two-way-bridge": (8,),
    "four-way-bridge": (3, 8),
}
SUBSTEPS = (2, 4, 8)
COLUMNS = ("coupling", "workers", "growth_depth", "substeps", "joints")


def runs(workers: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Parameters of every run of a scene; those of one worker come before those that are compared with them."""
    for substeps in SUBSTEPS:
        yield {"workers": 1, "substeps": substeps, "joints": "auto"}
    yield {"workers": 1, "substeps": 4, "joints": "swept"}
    for count in workers:
        for depth in (0, 1, 6):
            yield {"coupling": "blend", "workers": count, "growth_depth": depth, "substeps": 4, "joints": "auto"}
        for substeps in SUBSTEPS:
            yield {"coupling": "tight", "workers": count, "substeps": substeps, "joints": "auto"}
        yield {"coupling": "tight", "workers": count, "substeps": 4, "joints": "swept"}


def simulated(name: str, params: dict[str, Any], steps: int, folder: Path) -> dict[str, Any]:
    """The run's last states and times, from the folder if they are there."""
    file = folder / f"{name}-{'-'.join(str(params.get(key, '')) for key in COLUMNS)}-{steps}.npz"
    if file.exists():
        return dict(np.load(file))
    with Simulation(scenes.build(name), Params(runtime="inline", precision="float64", **params)) as simulation:
        start, projected = time.process_time(), 0.0
        for _ in range(steps):
            simulation.step()
            projected += simulation.profile.projected_ms
        result = {
            "states": simulation.states,
            "duplicated": simulation.profile.worker_body_count.sum() / len(simulation.states) - 1,
            "exchanges": simulation.profile.exchanges,
            "step_cpu_ms": 1e3 * (time.process_time() - start) / steps,
            "projected_ms": projected / steps,
        }
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(file, **result)
    return result


def rows(name: str, steps: int, folder: Path) -> Iterator[dict[str, Any]]:
    scene, exact = scenes.build(name), dict[tuple[Any, ...], Any]()
    for params in runs(WORKERS[name]):
        result = simulated(name, params, steps, folder)
        states = result["states"]
        one = exact.setdefault((params["substeps"], params["joints"]), states)
        gaps = joint_gaps(scene, states)
        distance = np.linalg.norm(states[:, :3] - one[:, :3], axis=1)
        figures = {
            "scene": name,
            **{key: params.get(key, "") for key in COLUMNS},
            "steps": steps,
            "joint_gap_sum_m": f"{gaps.sum():.3e}",
            "joint_gap_max_m": f"{gaps.max():.3e}",
            "position_error_rms_m": f"{np.sqrt(np.mean(distance**2)):.3e}",
            "kinetic_energy_j": f"{motion(scene, states)[0]:.6g}",
            "duplicated": f"{float(result['duplicated']):.3f}",
            "exchanges": int(result["exchanges"]),
            "step_cpu_ms": f"{float(result['step_cpu_ms']):.3g}",
            "projected_ms": f"{float(result['projected_ms']):.3g}",
        }
        print(*figures.values(), flush=True)
        yield figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", default=list(WORKERS), help="scenes; default: all of them")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--states", type=Path, default=Path("coupling-states"), metavar="DIR")
    parser.add_argument("--csv", type=Path, metavar="FILE")
    options = parser.parse_args()
    table = [row for name in options.scenes for row in rows(name, options.steps, options.states)]
    if options.csv:
        write_table(table, options.csv)


if __name__ == "__main__":
    main()
