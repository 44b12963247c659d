"""What the tests of reports share: short runs, recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lapjoint import Box, Params, Plane, RecordingWriter, Scene, Simulation, scenes
from lapjoint.studies.bench import bench, write_json


def record(path: Path, scene: Scene, steps: int = 8, measures: Any = (), **params: Any) -> Path:
    """A short run; `measures` are made up."""
    given = {"iterations": 5, "runtime": "inline", **params}
    with (
        Simulation(scene, Params.from_options(**given)) as simulation,
        RecordingWriter(path, simulation, every=2, contacts=True, measures=list(measures)) as writer,
    ):
        for step in range(steps):
            simulation.step()
            writer.add(simulation, {name: float(step) for name in measures})
    return path


def tower(name: str = "tower") -> Scene:
    scene = Scene(name, timestep=0.004)
    scene.add_static(Plane())
    scene.add_bodies(Box((1.0, 1.0, 1.0)), [(0.0, 0.0, 0.5 + k) for k in range(8)])
    return scene


def record_chains(folder: Path) -> list[Path]:
    """The chain on one worker, on two with three growth depths, and on three."""
    found = [record(folder / "one", scenes.build("chain"), measures=["joint_gap_max", "own"])]
    for depth in (0, 1, 2):
        found.append(record(folder / f"two-{depth}", scenes.build("chain"), workers=2, growth_depth=depth))
    return [*found, record(folder / "three", scenes.build("chain"), workers=3, growth_depth=2)]


def write_bench(path: Path) -> Path:
    """A benchmark of the tower, inline."""
    params = Params(runtime="inline")
    write_json(bench([tower()], [1, 2, 4], params, iterations=[3], steps=1, repetitions=1, warmup=0), path)
    return path
