"""What standing still costs, with and without sleep, and what a ball wakes that is thrown into a sleeping heap.

    python benchmarks/sleep.py [DIRECTORY] [--largest 200000]

Writes sleep.csv and sleep-wake.csv there. CPU time of all processes together, a step [ms]. Scenes:

- mound: cubes of 1 m in five layers, a truncated pyramid, each on four others: one island. It stands within some tens
  of steps;
- bowl: the library's, balls that are dropped into a bowl and come to rest there, one island too, after thousands of
  steps. 1,000 of them.

Per scene, size and number of workers: `awake_ms` without sleep, over the last steps before the other run sleeps;
`asleep_ms` with it, a hundred steps at a time; `one_by_one_ms` the same for steps that are asked for one by one, with a
reply and all contacts after each; `ratio` is that of the first two; `fall_asleep_ms`: the last steps together before
all sleep, four of the mound and a hundred of the bowl; `share` of the bodies that sleep.

The second table: square pyramids of 55 cubes, and a ball of 2 m thrown at them when all sleep. How many bodies are
awake at most, how many piles have moved, and the potential energy over that of standing piles once all rest, with sleep
and without.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from tables import show, write_table

from lapjoint import Box, Params, Plane, Scene, Simulation, Sleep, Sphere, scenes

LAYERS, TIMESTEP, SLEEP_AFTER = 5, 0.005, 0.1
COUNTED = 5
"""Steps that are measured awake."""


def mound(bodies: int) -> Scene:
    scene = Scene("mound", timestep=TIMESTEP)
    scene.add_static(Plane())
    side = round((bodies / LAYERS) ** 0.5) + LAYERS // 2
    scene.add_bodies(Box((1.0, 1.0, 1.0)), pyramid(side, LAYERS))
    return scene


def pyramid(side: int, layers: int) -> np.ndarray:
    """Places of cubes, 2 cm apart: each layer has one less a side than that below it."""
    places = []
    for layer in range(layers):
        along = (np.arange(side - layer) - (side - layer - 1) / 2) * 1.02
        x, y = np.meshgrid(along, along)
        places.append(np.stack([x.ravel(), y.ravel(), np.full(x.size, 0.5 + layer)], axis=1))
    return np.concatenate(places)


class Clock:
    """CPU time of this process and its children."""

    def __init__(self) -> None:
        self._children = psutil.Process().children(recursive=True)

    def ms(self, simulation: Simulation, steps: int, together: int) -> float:
        start = self._now()
        for _ in range(steps // together):
            simulation.step(together)
        time.sleep(0.3)  # workers do what they can of the next step
        return 1e3 * (self._now() - start) / steps

    def _now(self) -> float:
        return time.process_time() + sum(sum(one.cpu_times()[:2]) for one in self._children)


def params(workers: int, sleep: bool) -> Params:
    return Params(workers=workers, runtime="process", sleep=sleep and Sleep(after=SLEEP_AFTER))


def measure(scene: Scene, workers: int, every: int, most: int) -> dict[str, Any]:
    with Simulation(scene, params(workers, True)) as simulation:
        clock, fall_ms = Clock(), 0.0
        while simulation.profile.sleeping_count < scene.body_count and simulation.step_count < most:
            fall_ms = every * clock.ms(simulation, every, every)
        steps, share = simulation.step_count, simulation.profile.sleeping_count / scene.body_count
        simulation.step(200)  # the tree of boxes is put in order meanwhile, a hundredth of it a step
        asleep_ms, one_by_one_ms = clock.ms(simulation, 1000, 100), clock.ms(simulation, 50, 1)
        hash_asleep = simulation.state_hash
        simulation.step(100)
        assert simulation.state_hash == hash_asleep or share < 1
    with Simulation(scene, params(workers, False)) as simulation:
        clock = Clock()
        simulation.step(max(1, steps - COUNTED))
        awake_ms = clock.ms(simulation, COUNTED, COUNTED)
    return {
        "scene": scene.name,
        "bodies": scene.body_count,
        "workers": workers,
        "steps": steps,
        "share": round(share, 4),
        "awake_ms": round(awake_ms, 2),
        "fall_asleep_ms": round(fall_ms, 1),
        "asleep_ms": round(asleep_ms, 4),
        "one_by_one_ms": round(one_by_one_ms, 3),
        "ratio": round(awake_ms / asleep_ms),
    }


def field_of_piles(side: int) -> tuple[Scene, int]:
    scene = Scene("piles", timestep=TIMESTEP)
    scene.add_static(Plane())
    ball = scene.add_body(Sphere(1.0), (-20.0, 0.0, 1.0), density=2000.0)
    grid = 10.0 * np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2)
    for x, y in grid:
        scene.add_bodies(Box((1.0, 1.0, 1.0)), pyramid(5, 5) + (x, y, 0.0))
    return scene, ball


def measure_wake(side: int, workers: int, sleep: bool) -> dict[str, Any]:
    scene, ball = field_of_piles(side)
    with Simulation(scene, params(workers, sleep)) as simulation:
        simulation.step(60)
        before = simulation.states
        asleep = simulation.profile.sleeping_count
        thrown = before[[ball]]
        thrown[0, :3], thrown[0, 7:10] = (-8.0, 10.0, 2.0), (30.0, 0.0, 2.0)
        simulation.set_states([ball], thrown)
        most_awake, clock = 0, time.process_time()
        while simulation.step_count < 3000:
            simulation.step(10)
            most_awake = max(most_awake, scene.body_count - simulation.profile.sleeping_count)
        after = simulation.states
        moved = np.linalg.norm(after[:, :3] - before[:, :3], axis=1) > 0.01
        cubes = np.delete(np.arange(scene.body_count), ball)
        weight = 9.81 * simulation.scene.bodies.mass[cubes]
        return {
            "sleep": sleep,
            "bodies": scene.body_count,
            "workers": workers,
            "asleep_before": asleep,
            "most_awake": most_awake,
            "piles_moved": len(np.unique((np.flatnonzero(moved[cubes])) // 55)),
            "asleep_after": simulation.profile.sleeping_count,
            "energy_kj": round(float((weight * (after[cubes, 2] - before[cubes, 2])).sum()) / 1e3, 1),
            "server_cpu_s": round(time.process_time() - clock, 2),
            "state_hash": simulation.state_hash,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--largest", type=int, default=200_000)
    given = parser.parse_args()
    sizes = [size for size in (5_000, 50_000, 200_000) if size <= given.largest]
    rows = []
    for size in sizes:
        for workers in (1, 2, 4) if size == 5_000 else (1, 2):
            rows.append(measure(mound(size), workers, 4, 400))
            show(rows[-1])
    rows.append(measure(scenes.build("bowl", size=1_000), 1, 100, 20_000))
    show(rows[-1])
    woken = []
    for workers in (1, 2):
        for sleep in (True, False):
            woken.append(measure_wake(10, workers, sleep))
            show(woken[-1])
    if given.directory is not None:
        write_table(rows, given.directory / "sleep.csv")
        write_table(woken, given.directory / "sleep-wake.csv")


if __name__ == "__main__":
    main()
