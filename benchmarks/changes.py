"""What it costs to add and remove bodies while a simulation runs, by how many there are and by how many the scene has.

    python benchmarks/changes.py [FILE.csv]

CPU time of the whole program [ms], one worker inline: the call, and how much longer the step after it takes than one
without changes, each the least of several. Balls lie on a plane, out of each other's reach; new ones are above them.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable

import numpy as np

from lapjoint import Params, Plane, Scene, Simulation, Sphere

SIZES, COUNTS, REPEATS = (5_000, 50_000, 200_000), (1, 100, 10_000), 5
COLUMNS = ("bodies", "changed", "add_ms", "add_step_ms", "remove_ms", "remove_step_ms", "step_ms")


def spent_ms(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return 1e3 * (time.process_time() - start)


def places(count: int, side: int, height: float) -> np.ndarray:
    i = np.arange(count)
    return np.stack([i % side, i // side % side, height + i // side**2], axis=1).astype(float)


def measure(size: int) -> list[dict[str, float]]:
    side = int(np.ceil(size**0.5))
    scene = Scene("grid")
    scene.add_static(Plane())
    scene.add_bodies(Sphere(0.4), places(size, side, 0.4))
    rows = []
    with Simulation(scene, Params(workers=1, runtime="inline")) as simulation:
        simulation.step(3)
        for count in COUNTS:
            found: dict[str, list[float]] = {name: [] for name in COLUMNS[2:]}
            for _ in range(REPEATS):
                ids: list[int] = []

                def add(ids: list[int] = ids, count: int = count) -> None:
                    ids.extend(simulation.add_bodies(Sphere(0.3), places(count, side, 3.0)))

                def remove(ids: list[int] = ids) -> None:
                    simulation.remove_bodies(ids)

                for name, change in (("add", add), ("remove", remove)):
                    found["step_ms"].append(spent_ms(simulation.step))
                    found[f"{name}_ms"].append(spent_ms(change))
                    found[f"{name}_step_ms"].append(spent_ms(simulation.step))
            least = {name: min(times) for name, times in found.items()}
            for name in ("add_step_ms", "remove_step_ms"):
                least[name] -= least["step_ms"]
            rows.append({"bodies": size, "changed": count, **least})
            print("  ".join(f"{name} {value:.6g}" for name, value in rows[-1].items()), flush=True)
    return rows


def main() -> None:
    rows = [row for size in SIZES for row in measure(size)]
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", newline="") as file:
            table = csv.DictWriter(file, COLUMNS)
            table.writeheader()
            table.writerows({name: round(value, 3) for name, value in row.items()} for row in rows)


if __name__ == "__main__":
    main()
