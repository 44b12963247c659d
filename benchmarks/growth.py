"""How the server's time and the workers' memory grow with the scene: bowls of 5,000, 50,000 and 200,000 balls.

    python benchmarks/growth.py [--sizes N...] [--workers N...] [--csv FILE]

Server time is its CPU time while workers wait for it, per step. Memory is what belongs to a worker alone (USS).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import psutil
from tables import show, write_table

from lapjoint import Params, Simulation, scenes


def measure(size: int, workers: int, warmup: int, steps: int) -> dict[str, object]:
    scene = scenes.build("bowl", size)
    with Simulation(scene, Params(workers=workers, iterations=10)) as simulation:
        simulation.step(warmup)
        server, contacts = [], []
        for _ in range(steps):
            simulation.step()
            server.append(simulation.profile.server_ms)
            contacts.append(int(simulation.profile.worker_contact_count.sum()))
        children = psutil.Process().children()
        memory = [child.memory_full_info().uss / 1e6 for child in children]
        bodies = simulation.profile.worker_body_count
    return {
        "bodies": scene.body_count,
        "workers": workers,
        "steps": f"{warmup} to {warmup + steps}",
        "server_ms": round(float(np.median(server)), 3),
        "server_ms_per_thousand": round(1e3 * float(np.median(server)) / scene.body_count, 4),
        "contact_count": round(float(np.mean(contacts))),
        "worker_body_count_mean": round(float(bodies.mean())),
        "worker_memory_mb_mean": round(float(np.mean(memory))),
        "worker_memory_mb_largest": round(float(np.max(memory))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[5040, 50_000, 200_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--warmup", type=int, default=100)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    rows = []
    for size in arguments.sizes:
        for workers in arguments.workers:
            rows.append(measure(size, workers, arguments.warmup, arguments.steps))
            show(rows[-1])
    if arguments.csv:
        write_table(rows, arguments.csv)


if __name__ == "__main__":
    main()
