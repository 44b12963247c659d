"""What lies around the steps, per body, as a scene grows: building it, the partition, the start of the workers, a
recorded frame, a checkpoint, going on from it, a picture.

    python benchmarks/around.py [--scenes NAME...] [--sizes N...] [--workers N] [--csv FILE]

Microseconds per body of CPU time of the server's process, and of start and going on also of time that passes, for there
the workers are at work. What grows faster than the scene shows in a column that rises. Every case runs in a process of
its own; files lie in the folder for temporary ones.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from scale import build
from tables import show, write_table

from lapjoint import Checkpoint, CheckpointWriter, Params, RecordingWriter, Simulation, scenes
from lapjoint.server.partition import make_partition
from lapjoint.view.draw.picture import picture

RESULTS = Path(__file__).parent / "results" / "2-core-x86-64" / "around.csv"
FRAMES = 4
T = TypeVar("T")


class Clock:
    """CPU time and time of everything that is done, per body [us]."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def take(self, name: str, action: Callable[[], T], passes: bool = False) -> T:
        cpu, wall = time.process_time(), time.perf_counter()
        result = action()
        self.seconds[f"{name}_cpu"] = time.process_time() - cpu
        if passes:
            self.seconds[name] = time.perf_counter() - wall
        return result

    def per_body(self, body_count: int) -> dict[str, float]:
        return {f"{name}_us": round(1e6 * seconds / body_count, 3) for name, seconds in self.seconds.items()}


def measure(name: str, size: int, workers: int) -> dict[str, Any]:
    """One case, in this process."""
    params = Params(workers=workers, coupling="tight")
    with tempfile.TemporaryDirectory() as folder, Simulation(scenes.build("bowl", 100), params) as simulation:
        simulation.step(2)  # so that everything is imported
        picture(simulation.scene, Path(folder) / "warm.png")
    clock = Clock()
    scene = clock.take("build", lambda: build(name, size))
    for kind in ("labels", "metis", "curve"):
        clock.take(f"partition_{kind}", partial(make_partition, scene, workers, kind))
    sizes = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with clock.take("start", lambda: Simulation(scene, params), passes=True) as simulation:
            clock.take("first_step", simulation.step, passes=True)
            with clock.take("recording_start", lambda: RecordingWriter(place / "run", simulation)) as writer:

                def record() -> None:
                    for _ in range(FRAMES):
                        simulation.step()
                        writer.add(simulation)
                    writer.close()

                clock.take("recording", record)
            saving = CheckpointWriter(place / "checkpoints", simulation)
            path = clock.take("checkpoint", lambda: saving.save(simulation), passes=True)
            states = simulation.states
            sizes["checkpoint_bytes"] = round(path.stat().st_size / scene.body_count)
        with clock.take("resume", lambda: Checkpoint(path).resume(), passes=True):
            pass
        clock.take("picture", lambda: picture(scene, place / "last.png", states), passes=True)
        files = (file for file in (place / "run").rglob("*") if file.is_file())
        sizes["recording_bytes"] = round(sum(file.stat().st_size for file in files) / scene.body_count)
    clock.seconds["recording_frame_cpu"] = clock.seconds.pop("recording_cpu") / FRAMES
    return {
        "scene": name,
        "size": size,
        "bodies": scene.body_count,
        "workers": workers,
        **clock.per_body(scene.body_count),
        **sizes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", nargs="+", default=["bowl", "joint-grid"])
    parser.add_argument("--sizes", type=int, nargs="+", default=[50_000, 200_000, 1_000_000])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--csv", type=Path, default=RESULTS)
    parser.add_argument("--one", action="store_true", help="the first case alone, in this process, as JSON")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.scenes[0], arguments.sizes[0], arguments.workers)))
        return
    rows = []
    for name in arguments.scenes:
        for size in arguments.sizes:
            case = ["--scenes", name, "--sizes", str(size), "--workers", str(arguments.workers), "--one"]
            output = subprocess.run([sys.executable, __file__, *case], check=True, stdout=subprocess.PIPE, text=True)
            rows.append(json.loads(output.stdout.splitlines()[-1]))
            show(rows[-1])
    write_table(rows, arguments.csv)


if __name__ == "__main__":
    main()
