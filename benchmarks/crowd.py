"""A crowd of people from one robot file, fallen into a heap: joint gaps, penetration and time of both couplings.

    python examples/08_crowd.py 100 crowd.xml
    python benchmarks/crowd.py crowd.xml [FILE.csv]

Gaps and penetration are the largest of all joints and contacts, of the worst step and over the last half second, in the
heap; `penetration_mean_mm` is the mean of all contacts there. Times are CPU time, the mean over all steps: of the
server, of the slowest worker, of all workers.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from tables import Row, show, write_table

from lapjoint import Params, Scene, Simulation
from lapjoint.files.read import read_scene

SECONDS, REST = 4.0, 0.5
KINDS = ((1, "tight"), (4, "tight"), (4, "blend"))
"""With one worker there is nothing to couple."""


def measure(scene: Scene, workers: int, coupling: str) -> Row:
    steps, last = round(SECONDS / scene.timestep), round(REST / scene.timestep)
    gaps, depths, means, slowest, together = (np.zeros(steps) for _ in range(5))
    with Simulation(scene, Params(workers=workers, runtime="process", coupling=coupling)) as simulation:
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
        "coupling": coupling if workers > 1 else "",
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
    for workers, coupling in KINDS:
        rows.append(measure(scene, workers, coupling))
        show(rows[-1])
    if len(sys.argv) > 2:
        write_table(rows, Path(sys.argv[2]))


if __name__ == "__main__":
    main()
