"""What the server costs: to the first step, in every step, and in memory, by how many bodies there are.

    python benchmarks/server.py [SCENE...] [--bodies N...] [--workers N] [--title TEXT] [--csv FILE]

Scenes are `fall`, balls in free fall that never meet, and `wall`, bricks at rest in twenty courses: the longer it is,
the more bodies, while what is between two workers stays as it is. Each size runs in a process of its own.

Seconds are wall time: to build the scene, to partition it, to start the workers, to find the contacts of the start,
and all of it up to the end of the first step. Milliseconds are CPU time: of the server in an ordinary step, the median
of steps that are taken one by one; of the server in a step that it decides before; of the slowest worker in a step.
Megabytes are those of the processes, memory that several share counted in shares (PSS), the server's largest ever
(peak) apart; bytes per body are what the server has by itself, besides the scene.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from tables import append_row, show

import lapjoint.simulation
from lapjoint import Box, Failures, Params, Plane, Scene, Simulation, Sphere

SIZES = (5_000, 50_000, 200_000, 500_000)
COURSES = 20
BEFORE, TOGETHER, AFTER = 12, 36, 6
"""Steps one by one, then at once up to near the first decision after the start, then one by one over it."""
HANG_LIMIT = 60.0
"""Others may use the machine [s]."""
TIMED = {
    "make_partition": "partition_s",
    "make_runtime": "workers_s",
    "Detection": "contacts_s",
    "find_start_contacts": "contacts_s",
}
"""What a simulation calls as it starts, and which part that is."""


def fall(count: int) -> Scene:
    side = int(np.ceil(count ** (1 / 3)))
    i = np.arange(count)
    scene = Scene("fall")
    scene.add_bodies(Sphere(0.5), 1.5 * np.stack([i % side, i // side % side, 100 + i // side**2], axis=1))
    return scene


def wall(count: int) -> Scene:
    course, place = np.divmod(np.arange(count), -(-count // COURSES))
    scene = Scene("wall")
    scene.add_static(Plane())
    scene.add_bodies(
        Box((1.0, 0.5, 0.4)), np.stack([1.03 * (place + 0.5 * (course % 2)), 0.0 * place, 0.2 + 0.4 * course], axis=1)
    )
    return scene


SCENES: dict[str, Callable[[int], Scene]] = {"fall": fall, "wall": wall}


def memory(pid: int | str = "self") -> dict[str, int]:
    """Of a process, bytes by the names that the kernel has for them."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {name: 1024 * int(value.split()[0]) for name, value in (line.split(":") for line in lines)}


def peak() -> int:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def own(numbers: dict[str, int]) -> int:
    return numbers["Private_Dirty"] + numbers["Private_Clean"]


def timed(spent: dict[str, float]) -> None:
    """Note how long the parts of the start take."""

    def wrap(call: Callable[..., Any], part: str) -> Callable[..., Any]:
        def measured(*arguments: Any, **named: Any) -> Any:
            start = time.perf_counter()
            try:
                return call(*arguments, **named)
            finally:
                spent[part] = spent.get(part, 0.0) + time.perf_counter() - start

        return measured

    for name, part in TIMED.items():
        if hasattr(lapjoint.simulation, name):
            setattr(lapjoint.simulation, name, wrap(getattr(lapjoint.simulation, name), part))


def measure(name: str, count: int, workers: int) -> dict[str, Any]:
    with Simulation(fall(10), Params(workers=2, runtime="inline")) as small:
        small.step()  # so that what is imported for it counts for nobody
    spent = {"scene_s": 0.0, "partition_s": 0.0, "workers_s": 0.0, "contacts_s": 0.0}
    timed(spent)
    start = time.perf_counter()
    scene = SCENES[name](count)
    spent["scene_s"] = time.perf_counter() - start
    before = own(memory())
    with Simulation(scene, Params(workers=workers, failures=Failures(hang_limit=HANG_LIMIT))) as simulation:
        simulation.step()
        first_s = time.perf_counter() - start
        ordinary, deciding, slowest = [], [], []
        for steps in [1] * BEFORE + [TOGETHER] + [1] * AFTER:
            is_due = simulation._core.coupling._next_decision <= simulation.step_count  # type: ignore[attr-defined]
            simulation.step(steps)
            if steps == 1:
                (deciding if is_due else ordinary).append(simulation.profile.server_ms)
                slowest.append(float(simulation.profile.worker_cpu_ms.max()))
        server = memory()
        of_workers = [memory(pid) for pid in simulation._core.runtime.process_ids]  # type: ignore[attr-defined]
        return {
            "scene": name,
            "bodies": count,
            "workers": workers,
            "interface": simulation.profile.interface_count,
            **{part: round(seconds, 3) for part, seconds in spent.items()},
            "first_step_s": round(first_s, 3),
            "server_ms": round(median(ordinary), 3),
            "decision_ms": round(median(deciding), 3) if deciding else "",
            "worker_ms": round(median(slowest), 2),
            "server_mb": round(server["Pss"] / 1e6, 1),
            "server_peak_mb": round(peak() / 1e6, 1),
            "server_bytes_per_body": round((own(server) - before) / count),
            "worker_mb": round(max(one["Pss"] for one in of_workers) / 1e6, 1),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", nargs="*", default=list(SCENES))
    parser.add_argument("--bodies", type=int, nargs="+", default=SIZES)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--title", default="now", help="what the rows are of, in their first column")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.alone:
        print(json.dumps(measure(arguments.scene[0], arguments.bodies[0], arguments.workers)))
        return
    for name in arguments.scene:
        for count in arguments.bodies:
            words = [name, "--bodies", str(count), "--workers", str(arguments.workers), "--alone"]
            found = subprocess.run([sys.executable, __file__, *words], check=True, stdout=subprocess.PIPE)
            row = {"title": arguments.title, **json.loads(found.stdout.splitlines()[-1])}
            show(row)
            if arguments.csv:
                append_row(row, arguments.csv)


if __name__ == "__main__":
    main()
