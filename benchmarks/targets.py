"""What it costs to steer: 10,000 targets a step on a scene of 50,000 bodies, 10,000 of which hang on driven hinges.

    python benchmarks/targets.py [FILE.csv]

CPU time of all processes together and wall time of a step [ms], means over steps taken one by one. Kinds take turns
within a repetition, so what else the machine does is the same for all:

- none: nobody sets a target;
- positions: 10,000 positions before every step;
- both: positions and velocities;
- readings: 10,000 positions, and joint_positions of all of them after the step.
"""

from __future__ import annotations

import csv
import sys
import time

import numpy as np
import psutil

from lapjoint import WORLD, Box, Drive, Hinge, Params, Plane, Scene, Simulation, Sphere

SIDE, LAYERS, REPEATS, STEPS = 100, 4, 10, 5
COLUMNS = ("bodies", "workers", "kind", "cpu_ms", "wall_ms")
KINDS = ("none", "positions", "both", "readings")


def scene_of_arms() -> Scene:
    """A heap, and above it arms, each on a hinge of its own."""
    scene = Scene("arms")
    scene.add_static(Plane())
    i = np.arange(SIDE * SIDE * LAYERS)
    heap = np.stack([i % SIDE, i // SIDE % SIDE, 0.5 + i // SIDE**2], axis=1) * 1.0
    scene.add_bodies(Sphere(0.5), heap)
    k = np.arange(SIDE * SIDE)
    places = np.stack([k % SIDE, k // SIDE, np.full(len(k), 10.0)], axis=1)
    arms = np.array(scene.add_bodies(Box((0.8, 0.1, 0.1)), places))
    drive = Drive(stiffness=500.0, damping=50.0)
    scene.add_joints(Hinge((0.0, 1.0, 0.0), drive=drive), arms, np.full(len(arms), WORLD), places - (0.4, 0, 0))
    return scene


def measure(workers: int) -> list[dict[str, object]]:
    random = np.random.default_rng(0)
    with Simulation(scene_of_arms(), Params(workers=workers, runtime="process")) as simulation:
        joints = np.arange(simulation.scene.joint_count)
        everybody = [psutil.Process(), *psutil.Process().children(recursive=True)]

        def cpu_s() -> float:
            return time.process_time() + sum(sum(one.cpu_times()[:2]) for one in everybody[1:])

        def step(kind: str) -> None:
            if kind != "none":
                velocities = random.normal(size=len(joints)) if kind == "both" else None
                simulation.set_drive_targets(joints, positions=random.normal(size=len(joints)), velocities=velocities)
            simulation.step()
            if kind == "readings":
                simulation.joint_positions(joints, "free")

        simulation.step(5)
        cpu, wall = dict.fromkeys(KINDS, 0.0), dict.fromkeys(KINDS, 0.0)
        for _ in range(REPEATS):
            for kind in KINDS:
                before, start = cpu_s(), time.perf_counter()
                for _ in range(STEPS):
                    step(kind)
                wall[kind] += 1e3 * (time.perf_counter() - start) / STEPS / REPEATS
                time.sleep(0.3)  # workers do what they can of the next step
                cpu[kind] += 1e3 * (cpu_s() - before) / STEPS / REPEATS
        rows: list[dict[str, object]] = [
            {
                "bodies": simulation.scene.body_count,
                "workers": workers,
                "kind": kind,
                "cpu_ms": round(cpu[kind], 1),
                "wall_ms": round(wall[kind], 1),
            }
            for kind in KINDS
        ]
    for row in rows:
        print("  ".join(f"{name} {row[name]}" for name in COLUMNS), flush=True)
    return rows


def main() -> None:
    rows = [row for workers in (1, 2) for row in measure(workers)]
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", newline="") as file:
            table = csv.DictWriter(file, COLUMNS)
            table.writeheader()
            table.writerows(rows)


if __name__ == "__main__":
    main()
