"""What a scene costs as it grows from 5,000 to a million bodies: start, memory, steps, messages and errors.

    python benchmarks/scale.py [--scenes NAME...] [--sizes N...] [--workers N...] [--csv FILE]

Every case runs in a process of its own, and its row is appended to the file at once; cases that the file has already
are not run again, so that the table can be made in pieces. Up to eight workers are processes; more are threads of one
process (`inline`), whose steps are projected to a machine with a core for each.

Memory is what belongs to a process alone (USS); of `inline`, all workers and the server together. What the server has
per body is without the scene, which has a column of its own. Times of server and
workers are CPU times. Errors are of the last measured step but one: the deepest contact, the mean over contacts, the
widest joint gap and the mean over joints.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from tables import append_row, show

from lapjoint import Params, Scene, Simulation, scenes

SCENES = ("bowl", "walls", "chain-mail", "joint-grid")
SIZES = (5_000, 50_000, 200_000, 1_000_000)
WORKERS = (1, 2, 8, 64)
MOST_PROCESSES = 8
RESULTS = Path(__file__).parent / "results" / "2-core-x86-64" / "scale.csv"


def build(name: str, size: int) -> Scene:
    # The size of the joint grid is its longer side.
    return scenes.build(name, round(math.sqrt(size) + 0.5) if name == "joint-grid" else size)


def own_mb(process: psutil.Process) -> float:
    return float(process.memory_full_info().uss) / 1e6


def worker_processes() -> list[psutil.Process]:
    """They are forked off a process that is called lapjoint-fork, and have numbers for it."""
    children = psutil.Process().children(recursive=True)
    return [child for child in children if re.fullmatch(r"lapjoint-\d+", child.name())]


def measure(name: str, size: int, workers: int, warmup: int, steps: int) -> dict[str, Any]:
    """One case, in this process."""
    this = psutil.Process()
    runtime = "process" if workers <= MOST_PROCESSES else "inline"
    params = Params(workers=workers, runtime=runtime, coupling="tight")
    with Simulation(scenes.build("bowl", 100), params) as simulation:  # so that everything is imported
        simulation.step(2)
    before = own_mb(this)
    start = time.perf_counter()
    scene = build(name, size)
    built, with_scene = time.perf_counter(), own_mb(this)
    with Simulation(scene, params) as simulation:
        started = time.perf_counter()
        simulation.step()
        stepped = time.perf_counter()
        server_mb_first = own_mb(this)
        simulation.step(warmup - 1)
        turn = take_turn(simulation, steps)
        children = [own_mb(child) for child in worker_processes()]
        server = own_mb(this)
    return {
        "scene": name,
        "size": size,
        "bodies": scene.body_count,
        "joints": scene.joint_count,
        "workers": workers,
        "runtime": runtime,
        "steps": f"{warmup + 1} to {warmup + steps}",
        "build_s": round(built - start, 2),
        "start_s": round(started - built, 2),
        "first_step_s": round(stepped - started, 2),
        "server_mb": round(server),
        "scene_bytes_per_body": round((with_scene - before) * 1e6 / scene.body_count),
        "server_bytes_per_body": (
            round((max(server, server_mb_first) - with_scene) * 1e6 / scene.body_count) if runtime == "process" else ""
        ),
        "worker_mb_mean": round(float(np.mean(children))) if children else "",
        "worker_mb_largest": round(max(children)) if children else "",
        **turn,
    }


def take_turn(simulation: Simulation, steps: int) -> dict[str, Any]:
    """Take steps, as many at once as workers take by themselves, and measure them; all figures are per step."""
    sums: dict[str, float] = {}
    done = 0
    while done < steps:
        start = time.perf_counter()
        count = simulation.step_at_once(steps - done)
        wall_ms = 1e3 * (time.perf_counter() - start)
        profile = simulation.profile
        done += count
        of_all = {
            "step_ms": wall_ms,
            "projected_ms": count * profile.projected_ms,
            "server_ms": count * profile.server_ms,
            "worker_ms_mean": count * float(profile.worker_cpu_ms.mean()),
            "worker_ms_largest": count * float(profile.worker_cpu_ms.max()),
            "sweep_wait_ms": count * profile.sweep_wait_ms,
            "exchanges": float(count * profile.exchanges),
            "exchange_kb": profile.exchange_bytes / 1e3,
            "server_kb": (profile.byte_count - profile.exchange_bytes) / 1e3,
            "interface": float(count * profile.interface_count),
        }
        for key, value in of_all.items():
            sums[key] = sums.get(key, 0.0) + value
    series = profile.series
    assert series is not None  # with tight coupling workers measure every step
    contacts, joints = max(float(series.contact_count[-1]), 1.0), max(simulation.scene.joint_count, 1)
    return {
        **{key: round(value / steps, 3) for key, value in sums.items()},
        "contacts": int(series.contact_count[-1]),
        "cut_share": round(profile.cut_share, 5),
        "penetration_max_mm": round(1e3 * float(series.penetration_max[-1]), 4),
        "penetration_mean_mm": round(1e3 * float(series.penetration_sum[-1]) / contacts, 5),
        "joint_gap_max_mm": round(1e3 * float(series.joint_gap_max[-1]), 4),
        "joint_gap_mean_mm": round(1e3 * float(series.joint_gap_sum[-1]) / joints, 5),
        "residual": round(float(series.residual[-1]), 5),
    }


def known(file: Path) -> set[tuple[str, int, int]]:
    """Cases that the file has."""
    if not file.exists():
        return set()
    with file.open(newline="") as opened:
        return {(row["scene"], int(row["size"]), int(row["workers"])) for row in csv.DictReader(opened)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", nargs="+", choices=SCENES, default=SCENES)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--workers", type=int, nargs="+", default=WORKERS)
    parser.add_argument("--warmup", type=int, default=150, help="steps before those that are measured")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--csv", type=Path, default=RESULTS)
    parser.add_argument("--one", action="store_true", help="the first case alone, in this process, as JSON")
    arguments = parser.parse_args()
    if arguments.one:
        scene, size, workers = arguments.scenes[0], arguments.sizes[0], arguments.workers[0]
        print(json.dumps(measure(scene, size, workers, arguments.warmup, arguments.steps)))
        return
    for size in arguments.sizes:
        for scene in arguments.scenes:
            for workers in arguments.workers:
                if (scene, size, workers) in known(arguments.csv):
                    continue
                case = ["--scenes", scene, "--sizes", str(size), "--workers", str(workers)]
                amounts = ["--warmup", str(arguments.warmup), "--steps", str(arguments.steps)]
                command = [sys.executable, __file__, "--one", *case, *amounts]
                output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                row = json.loads(output.splitlines()[-1])
                show(row)
                append_row(row, arguments.csv)


if __name__ == "__main__":
    main()
