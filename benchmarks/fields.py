"""What force fields cost in workers, and what the same forces cost that the server adds before every step.

    python benchmarks/fields.py [FILE.csv]

CPU time of the server and all workers [ms per step]: balls in the air, out of each other's reach, in two processes,
tight coupling; the mean of some steps. Runs of all kinds are taken in turn, and the least of each is kept.
"""

from __future__ import annotations

import csv
import sys
import time
from typing import Any

import numpy as np
from swirl import swirl

from lapjoint import Attractor, Buoyancy, Drag, Field, Params, Scene, Simulation, Sphere, Wind

BODIES, STEPS, REPEATS, WORKERS = 50_000, 20, 3, 2
COLUMNS = ("fields", "bodies", "workers", "server_ms", "workers_ms", "cpu_ms", "ratio")


KINDS: dict[str, list[Any]] = {
    "none": [],
    "drag": [Drag(0.5)],
    "drag, wind, attractor": [Drag(0.1, 0.1), Wind((1.0, 0, 0), 0.5), Attractor((0, 0, 0), 5.0)],
    "buoyancy": [Buoyancy(1000.0, 20.0, linear_drag=5.0)],
    "function": [Field(swirl)],
}


def scene_of(fields: list[Any]) -> Scene:
    scene = Scene("balls", gravity=(0, 0, 0))
    side = int(np.ceil(BODIES ** (1 / 3)))
    i = np.arange(BODIES)
    places = np.stack([i % side, i // side % side, i // side**2], axis=1).astype(float)
    scene.add_bodies(Sphere(0.3), places, mass=1.0)
    for field in fields:
        scene.add_field(field)
    return scene


def measure(fields: list[Any], from_server: bool) -> tuple[float, float]:
    """CPU time of the server and of the workers, ms per step."""
    params = Params(workers=WORKERS, runtime="process", coupling="tight", repartition=0)
    with Simulation(scene_of(fields), params) as simulation:
        simulation.step(3)
        start, workers = time.process_time(), 0.0
        ids = np.arange(BODIES)
        done = 0
        while done < STEPS:
            if from_server:
                states = simulation.states
                simulation.add_forces(ids, swirl(states[:, :3], states[:, 7:10], simulation.time))
                simulation.step()
                done, taken = done + 1, 1
            else:
                taken = simulation.step_at_once(STEPS - done)
                done += taken
            workers += taken * sum(simulation.profile.worker_cpu_ms)
        return 1e3 * (time.process_time() - start) / STEPS, workers / STEPS


def main() -> None:
    kinds = {**{name: (fields, False) for name, fields in KINDS.items()}, "function, from the server": ([], True)}
    least: dict[str, tuple[float, float]] = {}
    for _ in range(REPEATS):
        for name, (fields, from_server) in kinds.items():
            least[name] = min(least.get(name, (np.inf, np.inf)), measure(fields, from_server), key=sum)
    base = sum(least["none"])
    rows = []
    for name, (server, workers) in least.items():
        both = server + workers
        values = (name, BODIES, WORKERS, round(server, 2), round(workers, 2), round(both, 2), round(both / base, 3))
        rows.append(dict(zip(COLUMNS, values, strict=True)))
        print("  ".join(f"{column} {value}" for column, value in rows[-1].items()), flush=True)
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", newline="") as file:
            table = csv.DictWriter(file, COLUMNS)
            table.writeheader()
            table.writerows(rows)


if __name__ == "__main__":
    main()
