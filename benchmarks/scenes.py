"""Every scene on 1, 2, 4 and the paper's number of workers: overlap, duplicated bodies, gaps, penetration, loads.

    python benchmarks/scenes.py [SCENE...] [--steps N] [--iterations N] [--csv FILE] [--pictures DIR]

Writes a picture of each last state, coloured by worker, where --pictures is given.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from tables import append_row, show

from lapjoint import Params, Simulation, scenes
from lapjoint.run import run

PAPER_WORKERS = {
    "chain": 6,
    "bridge": 2,
    "two-way-bridge": 8,
    "four-way-bridge": 3,
    "bowl": 7,
    "building": 8,
    "chain-net": 6,
    "plank": 2,
}
"""The best-performing counts of Table 2; of Figures 1, 5 and 7 for the others."""


def measure(name: str, workers: int, steps: int, iterations: int, pictures: Path | None) -> dict[str, object]:
    scene = scenes.build(name)
    params = Params(workers=workers, iterations=iterations, validate=True)
    with Simulation(scene, params) as simulation:
        summary = run(simulation, steps)
        states = simulation.states
        if pictures is not None:
            from lapjoint.view.draw.colors import blend_colors, worker_colors
            from lapjoint.view.draw.picture import picture

            colors = blend_colors(simulation.weights(), worker_colors(workers)) if workers > 1 else None
            picture(scene, pictures / f"{name}-{workers}.png", states, colors=colors)
    speed = np.linalg.norm(states[:, 7:10], axis=1)
    contacts = summary.worker_contact_count_mean
    return {
        "scene": name,
        "workers": workers,
        "steps": summary.steps,
        "iterations": iterations,
        "overlap_share": round(summary.overlap_count_mean / summary.body_count, 4),
        "duplicated_share": round(summary.duplicated_share, 4),
        "joint_gap_max_mm": round(1e3 * summary.joint_gap_max, 3),
        "joint_gap_sum_mean_mm": round(1e3 * summary.joint_gap_sum_mean, 2),
        "penetration_max_mm": round(1e3 * summary.penetration_max, 3),
        "contact_count_mean": round(summary.contact_count_mean, 1),
        "worker_contact_count_mean": round(float(np.mean(contacts)), 1),
        "worker_contact_count_largest": round(max(contacts), 1),
        "activation_count_mean": round(summary.activation_count_mean, 2),
        "lowest_m": round(float(states[:, 2].min()), 3),
        "speed_median": round(float(np.median(speed)), 4),
        "step_ms_mean": round(summary.step_ms_mean, 2),
        **{f"{phase}_ms": round(ms, 3) for phase, ms in summary.phases_ms.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", nargs="*", default=list(PAPER_WORKERS))
    parser.add_argument("--workers", type=int, nargs="+", help="1, 2, 4 and the paper's number if not given")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--pictures", type=Path)
    arguments = parser.parse_args()
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    for name in arguments.scene:
        for workers in arguments.workers or sorted({1, 2, 4, PAPER_WORKERS[name]}):
            row = measure(name, workers, arguments.steps, arguments.iterations, arguments.pictures)
            show(row)
            if arguments.csv:
                append_row(row, arguments.csv)


if __name__ == "__main__":
    main()
