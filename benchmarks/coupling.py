"""Blend against tight coupling: how wrong each is after some steps, and what a step takes.

    python benchmarks/coupling.py [SCENE...] [--steps N] [--states DIR] [--csv FILE]

Every row is a run in this process, in float64, from the scene as it is built: sum and largest of the joint gaps, root
mean square of the positions' error against one engine that solves every step until nothing changes, kinetic energy, CPU
time of all workers and the server together, and what a step would take with a core for each of them. States are kept
in a folder, so that a run that was interrupted goes on, and rows with other measures can be made of them.
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


def runs(workers: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Parameters of every run of a scene; the first is the reference."""
    yield {"coupling": "tight", "workers": 1, "rounds": 50, "iterations": 500}
    for iterations in (100, 1000):
        yield {"coupling": "blend", "workers": 1, "growth_depth": 0, "iterations": iterations}
    yield {"coupling": "tight", "workers": 1, "rounds": 10, "iterations": 100, "acceleration": False}
    for together in (False, True):
        yield {"coupling": "tight", "workers": 1, "rounds": 10, "iterations": 100, "joints_together": together}
    for count in workers:
        for depth in (0, 1, 6):
            yield {"coupling": "blend", "workers": count, "growth_depth": depth, "iterations": 1000}
        for rounds in (5, 10, 20):
            yield {"coupling": "tight", "workers": count, "rounds": rounds, "iterations": 100}
        yield {"coupling": "tight", "workers": count, "rounds": 3, "iterations": 3}
        yield {"coupling": "tight", "workers": count, "rounds": 10, "iterations": 100, "joints_together": False}


def acceleration(params: dict[str, Any]) -> str:
    """Which there is: none, Anderson's alone, or with joints solved together."""
    if params["coupling"] == "blend" or not params.get("acceleration", True):
        return "none"
    return "all" if params.get("joints_together", True) else "anderson"


def simulated(name: str, params: dict[str, Any], steps: int, folder: Path) -> dict[str, Any]:
    """The run's last states and times, from the folder if they are there."""
    text = "-".join(str(params.get(key, "")) for key in ("coupling", "workers", "growth_depth", "iterations", "rounds"))
    file = folder / f"{name}-{text}-{acceleration(params)}-{steps}.npz"
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
            "step_cpu_ms": 1e3 * (time.process_time() - start) / steps,
            "projected_ms": projected / steps,
        }
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(file, **result)
    return result


def rows(name: str, steps: int, folder: Path) -> Iterator[dict[str, Any]]:
    scene, exact = scenes.build(name), None
    for params in runs(WORKERS[name]):
        result = simulated(name, params, steps, folder)
        states = result["states"]
        exact = states if exact is None else exact
        gaps = joint_gaps(scene, states)
        distance = np.linalg.norm(states[:, :3] - exact[:, :3], axis=1)
        figures = {
            "scene": name,
            **{key: params.get(key, "") for key in ("coupling", "workers", "growth_depth", "iterations", "rounds")},
            "acceleration": acceleration(params),
            "steps": steps,
            "joint_gap_sum_m": f"{gaps.sum():.3e}",
            "joint_gap_max_m": f"{gaps.max():.3e}",
            "position_error_rms_m": f"{np.sqrt(np.mean(distance**2)):.3e}",
            "kinetic_energy_j": f"{motion(scene, states)[0]:.6g}",
            "duplicated": f"{float(result['duplicated']):.3f}",
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
