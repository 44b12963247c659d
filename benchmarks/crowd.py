"""A crowd of people from one robot file, fallen into a heap: joint gaps, penetration and time of both couplings.

    python examples/16_robots.py 100 crowd.xml
    python benchmarks/crowd.py crowd.xml [FILE.csv]

Gaps and penetration are the largest of all joints and contacts, of the worst step and over the last half second, in the
heap; `penetration_mean_mm` is the mean of all contacts there. Times are CPU time, the mean over all steps: of the
server, of the slowest worker, of all workers.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from tables import Row, show, write_table

from lapjoint import Params, Scene, Simulation
from lapjoint.files.read import read_scene

SECONDS, REST = 4.0, 0.5
KINDS: tuple[tuple[int, str, dict[str, Any]], ...] = (
    (1, "", {}),
    (4, "tight", {}),
    (4, "blend", {}),
    (4, "blend", {"growth_depth": 6}),
)
"""Workers, coupling (of one worker there is none) and other options."""


def measure(scene: Scene, workers: int, coupling: str, options: dict[str, Any]) -> Row:
    steps, last = round(SECONDS / scene.timestep), round(REST / scene.timestep)
    gaps, depths, means, slowest, together = (np.zeros(steps) for _ in range(5))
    params = Params(workers=workers, runtime="process", coupling=coupling or "tight", **options)
    with Simulation(scene, params) as simulation:
        server = time.process_time()
        for step in range(steps):
            simulation.step()
            gaps[step], depths[step] = simulation.joint_gaps().max(), simulation.profile.penetration
            if step >= steps - last:
                means[step] = np.maximum(simulation.contacts().depth, 0.0).mean()
            cpu = simulation.profile.worker_cpu_ms
            slowest[step], together[step] = max(cpu), sum(cpu)
        server = 1e3 * (time.process_time() - server) / steps
        states = simulation.states
    assert (states[:, 2] > 0).all(), "somebody is below the floor"
    return {
        "workers": workers,
        "coupling": coupling,
        "growth_depth": options.get("growth_depth", scene.growth_depth) if coupling == "blend" else "",
        "bodies": scene.body_count,
        "joints": scene.joint_count,
        "gap_max_mm": round(1e3 * gaps.max(), 4),
        "gap_rest_mm": round(1e3 * gaps[-last:].mean(), 4),
        "penetration_max_mm": round(1e3 * depths.max(), 2),
        "penetration_rest_mm": round(1e3 * depths[-last:].mean(), 3),
        "penetration_mean_mm": round(1e3 * means[-last:].mean(), 4),
        "highest_m": round(float(states[:, 2].max()), 2),
        "fastest_m_s": round(float(np.linalg.norm(states[:, 7:10], axis=1).max()), 2),
        "server_ms": round(server, 2),
        "slowest_worker_ms": round(slowest.mean(), 2),
        "workers_ms": round(together.mean(), 2),
    }


def main() -> None:
    scene = read_scene(sys.argv[1])
    rows = []
    for workers, coupling, options in KINDS:
        rows.append(measure(scene, workers, coupling, options))
        show(rows[-1])
    if len(sys.argv) > 2:
        write_table(rows, Path(sys.argv[2]))


if __name__ == "__main__":
    main()
