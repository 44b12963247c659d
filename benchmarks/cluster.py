"""What Ray adds to a step over processes: both runtimes side by side, on one node and on two.

    python benchmarks/cluster.py [SCENE...] [--workers N...] [--csv FILE]

All simulations of a row take the same steps, one simulation after the other, in repetitions. Times are the best of
the repetitions; the ratio and the difference are those of the best. The two nodes are network namespaces of this
machine, made and removed here (needs root): what they show is what messages cost, not what a real network adds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

# In a network namespace this file is run by its path, which puts neither folder there.
sys.path += [str(Path(__file__).parent.parent / "tests"), str(Path(__file__).parent)]

from tables import show, write_table

from lapjoint import Params, Simulation, scenes

KINDS = {
    # what travels with every step: what the server needs, and copies between the machines; or all states
    "border": {"send": "border"},
    "all": {"send": "all"},
}


def measure(case: dict[str, Any]) -> list[dict[str, Any]]:
    scene = scenes.build(case["scene"])
    common: dict[str, Any] = {"workers": case["workers"], "coupling": case["coupling"]}
    if case["coupling"] == "blend":
        common["iterations"] = case["iterations"]
    made = {"process": Params(**common)}
    for kind, more in KINDS.items():
        made[kind] = Params(**common, **more, runtime="ray", address=case["address"])
    walls: dict[str, list[float]] = {name: [] for name in made}
    sent: dict[str, list[int]] = {name: [] for name in made}
    hashes = set()
    for _ in range(case["repetitions"]):
        for name, params in made.items():
            # One at a time: Ray's actors look for work even while there is none.
            with Simulation(scene, params) as simulation:
                simulation.step(case["warmup"])
                start = time.perf_counter()
                simulation.step(case["steps"])
                walls[name].append(1e3 * (time.perf_counter() - start) / case["steps"])
                if name != "process":
                    sent[name].append(simulation._runtime._remote.byte_count)  # type: ignore[attr-defined]
                hashes.add(simulation.state_hash)
    assert len(hashes) == 1, "runtimes differ"
    rows = []
    for kind in KINDS:
        best, process = min(walls[kind]), min(walls["process"])
        rows.append(
            {
                "scene": case["scene"],
                "workers": case["workers"],
                "coupling": case["coupling"],
                "nodes": case["nodes"],
                "states": kind,
                "process_ms": round(process, 3),
                "ray_ms": round(best, 3),
                "added_ms": round(best - process, 3),
                "ratio": round(best / process, 3),
                "bytes": round(median(sent[kind])),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", nargs="*", default=["bowl"])
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--coupling", nargs="+", default=["tight", "blend"])
    parser.add_argument("--iterations", type=int, default=50, help="sweeps, with blend")
    parser.add_argument("--warmup", type=int, default=200)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=4)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(measure(json.loads(given.case))))
        return
    from ray_support import ADDRESS, two_nodes, why_not

    numbers = {name: getattr(given, name) for name in ("iterations", "warmup", "steps", "repetitions")}
    cases = [
        {"scene": scene, "workers": workers, "coupling": coupling, **numbers}
        for scene in given.scene
        for workers in given.workers
        for coupling in given.coupling
    ]
    rows = []
    for case in cases:
        rows += measure({**case, "nodes": 1, "address": None})
        for row in rows[-2:]:
            show(row)
    if why_not():
        print(f"no two nodes: {why_not()}")
    else:
        with two_nodes(os.environ.get("PYTHONPATH", "")) as nodes:
            for case in cases:
                text = json.dumps({**case, "nodes": 2, "address": ADDRESS})
                code = f"import runpy, sys; runpy.run_path({str(Path(__file__).resolve())!r}, run_name='__main__')"
                rows += json.loads(nodes.run(code, "--case", text, seconds=1800).splitlines()[-1])
                for row in rows[-2:]:
                    show(row)
    if given.csv:
        write_table(rows, given.csv)


if __name__ == "__main__":
    main()
