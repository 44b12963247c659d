"""What it costs to ask a large scene: 10,000 rays a step, and as many points, on a heap of 50,000 bodies.

    python benchmarks/queries.py [FILE.csv]

Balls and boxes in layers on a plane; rays go down into the heap at a slant from above it. CPU time of all processes
together and wall time [ms], means over calls with a step before each. Before a call is measured the workers have done
what they do for the next step once their reply is out, which any call would wait for:

- first: a call that is the first after a step, so workers look where their bodies are;
- again: the same call once more, when they know;
- look: one ray as the first after a step, which is what looking takes;
- step: a step, to compare with, and what workers do for the next one after it.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable

import numpy as np
import psutil

from lapjoint import Box, Params, Plane, Scene, Simulation, Sphere

SIDE, LAYERS, RAYS, REPEATS = 100, 5, 10_000, 10
REST_S = 0.4  # in which workers do what they can of the next step
COLUMNS = ("bodies", "workers", "what", "call", "cpu_ms", "wall_ms")


def heap() -> Scene:
    scene = Scene("heap")
    scene.add_static(Plane())
    i = np.arange(SIDE * SIDE * LAYERS)
    places = np.stack([i % SIDE, i // SIDE % SIDE, 0.5 + i // SIDE**2], axis=1) * 1.0
    shapes = [Sphere(0.5) if k % 2 else Box((0.9, 0.9, 1.0)) for k in range(len(places))]
    scene.add_bodies(shapes, places)
    return scene


class Spent:
    """CPU time of this process and its workers, and wall time [ms]."""

    def __init__(self) -> None:
        self._all = [psutil.Process(), *psutil.Process().children(recursive=True)]
        self.cpu_ms = self.wall_ms = 0.0

    def _cpu_s(self) -> float:
        return sum(sum(one.cpu_times()[:2]) for one in self._all[1:]) + time.process_time()

    def add(self, action: Callable[[], object], rest_s: float = 0.0) -> None:
        """Add an action; CPU time is with what workers do in a rest after it."""
        cpu, wall = self._cpu_s(), time.perf_counter()
        action()
        self.wall_ms += 1e3 * (time.perf_counter() - wall) / REPEATS
        time.sleep(rest_s)
        self.cpu_ms += 1e3 * (self._cpu_s() - cpu) / REPEATS


def measure(workers: int) -> list[dict[str, object]]:
    random = np.random.default_rng(0)
    origins = random.uniform((0, 0, LAYERS + 5), (SIDE, SIDE, LAYERS + 10), (RAYS, 3))
    directions = random.normal(size=(RAYS, 3)) * (1, 1, 0.2) - (0, 0, 1)
    points = random.uniform((0, 0, 0), (SIDE, SIDE, LAYERS + 1), (RAYS, 3))
    rows: list[dict[str, object]] = []
    with Simulation(heap(), Params(workers=workers, runtime="process")) as simulation:
        simulation.step(3)
        calls: dict[str, Callable[[], object]] = {
            "closest hits": lambda: simulation.queries.cast_rays(origins, directions),
            "all hits": lambda: simulation.queries.cast_rays(origins, directions, all_hits=True),
            "closest points": lambda: simulation.queries.closest_points(points),
            "overlaps": lambda: simulation.queries.overlapping(Box((1.0, 1.0, 1.0)), points),
        }
        step, look = Spent(), Spent()
        for what, call in calls.items():
            first, again = Spent(), Spent()
            simulation.step()
            call()
            for _ in range(REPEATS):
                if what == "closest hits":
                    step.add(simulation.step, REST_S)
                    look.add(lambda: simulation.queries.cast_rays(origins[0], directions[0]))
                simulation.step()
                time.sleep(REST_S)
                first.add(call)
                again.add(call)
            rows += [
                {"what": what, "call": name, **figures(spent)} for name, spent in (("first", first), ("again", again))
            ]
        rows += [{"what": "", "call": name, **figures(spent)} for name, spent in (("look", look), ("step", step))]
    for row in rows:
        row |= {"bodies": simulation.scene.body_count, "workers": workers}
        print("  ".join(f"{name} {row[name]}" for name in COLUMNS), flush=True)
    return rows


def figures(spent: Spent) -> dict[str, object]:
    return {"cpu_ms": round(spent.cpu_ms, 1), "wall_ms": round(spent.wall_ms, 1)}


def main() -> None:
    rows = [row for workers in (1, 2) for row in measure(workers)]
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", newline="") as file:
            table = csv.DictWriter(file, COLUMNS)
            table.writeheader()
            table.writerows(rows)


if __name__ == "__main__":
    main()
