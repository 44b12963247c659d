"""Bytes that a body takes of one engine, for bodies apart, side by side, and in contact.

    python benchmarks/memory.py [--bodies N] [--csv FILE]

Each case in a process of its own; what belongs to it alone (USS), more than before the bodies were activated: after
that, and after three steps.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
from tables import show, write_table

from lapjoint import Box, Params, Scene, Sphere, make_engine, scenes

CASES = {
    "spheres apart": (Sphere(0.5), 3.0),
    "boxes apart": (Box((1.0, 1.0, 1.0)), 3.0),
    "boxes side by side": (Box((1.0, 1.0, 1.0)), 1.05),
    "spheres in contact": (Sphere(0.5), 1.01),
    "walls": None,
    "chain-mail": None,
}


def build(name: str, count: int) -> Scene:
    case = CASES[name]
    if case is None:
        return scenes.build(name, count)
    shape, apart = case
    side = np.arange(round(count ** (1 / 3)) + 1)
    scene = Scene(name)
    scene.add_bodies(shape, apart * np.stack(np.meshgrid(side, side, side), axis=-1).reshape(-1, 3)[:count])
    return scene


def measure(name: str, count: int) -> dict[str, object]:
    scene = build(name, count)
    engine, process = make_engine(scene, Params()), psutil.Process()
    before = process.memory_full_info().uss
    engine.activate(np.arange(scene.body_count), scene.states)
    activated = process.memory_full_info().uss
    engine.step(3)
    stepped = process.memory_full_info().uss
    return {
        "case": name,
        "bodies": scene.body_count,
        "contacts_per_body": round(len(engine.contacts()) / scene.body_count, 2),
        "activated": round((activated - before) / scene.body_count),
        "stepped": round((stepped - before) / scene.body_count),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bodies", type=int, default=50_000)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--one", choices=CASES, help="this case alone, in this process, as JSON")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.bodies)))
        return
    rows = []
    for name in CASES:
        command = [sys.executable, __file__, "--one", name, "--bodies", str(arguments.bodies)]
        rows.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))
        show(rows[-1])
    if arguments.csv:
        write_table(rows, arguments.csv)


if __name__ == "__main__":
    main()
