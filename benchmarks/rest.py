"""Contacts at rest and in motion: one engine, blend and tight coupling on stacks, walls, a pile, a building and a net.

    python benchmarks/rest.py [--steps N] [--csv FILE]

Every scene first settles in one engine. From there every run takes the same steps, in float32 in this process, and the
second half of them is measured: deepest penetration (largest and median over the steps), kinetic energy (median and
largest), and how far a body has come from where it settled. Stacks and walls are also partitioned by turns and at
random, so that bodies that touch often belong to different workers; the other scenes by METIS.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tables import write_table

from lapjoint import Box, Params, Plane, Scene, Simulation, scenes
from lapjoint.measures import kinetic_energy
from lapjoint.server.partition import write_partition

WORKERS = 4
SUBSTEPS = (2, 4, 8)


def stack() -> Scene:
    scene = Scene("stack")
    scene.add_static(Plane())
    scene.add_bodies(Box((0.5, 0.5, 0.5)), [(0.0, 0.0, 0.25 + 0.5 * k) for k in range(10)], density=1000.0)
    return scene


def wall(rows: int = 10, columns: int = 10) -> Scene:
    """Bricks in bond, with closers at every other end."""
    scene = Scene("wall")
    scene.add_static(Plane())
    shapes, places = [], []
    for row in range(rows):
        sizes = [0.5] * columns if row % 2 == 0 else [0.25, *[0.5] * (columns - 1), 0.25]
        for end, size in zip(np.cumsum(sizes), sizes, strict=True):
            shapes.append(Box((size - 0.01, 0.25, 0.25)))
            places.append((float(end - size / 2), 0.0, 0.125 + 0.25 * row))
    scene.add_bodies(shapes, places, density=1000.0)
    return scene


CASES: dict[str, tuple[Any, int, tuple[str, ...]]] = {  # scene, steps to settle, divisions
    "stack": (stack, 200, ("turns", "metis")),
    "wall": (wall, 200, ("random", "metis")),
    "bowl": (lambda: scenes.build("bowl", 1000), 1200, ("metis",)),
    "building": (lambda: scenes.build("building", 450), 300, ("metis",)),  # its cannon balls have hit it by then
    "chain-net": (lambda: scenes.build("chain-net", 300), 200, ("metis",)),
}


def partition_of(division: str, count: int, folder: Path) -> str:
    if division == "metis":
        return "metis"
    owner = np.arange(count) % WORKERS
    file = folder / f"{division}-{count}.txt"
    write_partition(file, owner if division == "turns" else np.random.default_rng(0).permutation(owner))
    return str(file)


def measured(scene: Scene, start: np.ndarray, steps: int, params: Params) -> dict[str, str]:
    energy, depth, residual = [], [], []
    with Simulation(scene, params) as simulation:
        simulation.set_states(np.arange(scene.body_count), start)
        for step in range(steps):
            simulation.step()
            if step >= steps // 2:
                energy.append(kinetic_energy(scene, simulation.states))
                depth.append(simulation.profile.penetration)
                residual.append(simulation.profile.residual)
        drift = np.linalg.norm(simulation.states[:, :3] - start[:, :3], axis=1).max()
    return {
        "penetration_max_mm": f"{1e3 * max(depth):.3g}",
        "penetration_median_mm": f"{1e3 * float(np.median(depth)):.3g}",
        "kinetic_energy_median_j": f"{float(np.median(energy)):.3g}",
        "kinetic_energy_max_j": f"{max(energy):.3g}",
        "drift_max_mm": f"{1e3 * drift:.3g}",
        "residual_mean_m_s": f"{float(np.mean(residual)):.2g}",
    }


def rows(name: str, steps: int, folder: Path) -> Iterator[dict[str, Any]]:
    make, settle, divisions = CASES[name]
    scene: Scene = make()
    with Simulation(scene, Params(runtime="inline")) as simulation:
        simulation.step(settle)
        start = simulation.states
    runs = [("", "auto", 1, substeps) for substeps in SUBSTEPS]
    for division in divisions:
        runs += [(division, coupling, WORKERS, substeps) for coupling in ("blend", "tight") for substeps in SUBSTEPS]
    for division, coupling, workers, substeps in runs:
        partition = partition_of(division or "metis", scene.body_count, folder)
        params = Params(
            workers=workers,
            runtime="inline",
            coupling=coupling,
            substeps=substeps,
            partition=partition,
            repartition=0.0 if division in ("turns", "random") else 1.05,
        )
        row = {
            "scene": name,
            "division": division,
            "coupling": coupling if workers > 1 else "",
            "workers": workers,
            "substeps": substeps,
            "body_count": scene.body_count,
            "steps": steps,
            **measured(scene, start, steps, params),
        }
        print(*row.values(), flush=True)
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", default=list(CASES), help="which; default: all of them")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--csv", type=Path, metavar="FILE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = [row for name in options.scenes for row in rows(name, options.steps, Path(folder))]
    if options.csv:
        write_table(table, options.csv)


if __name__ == "__main__":
    main()
