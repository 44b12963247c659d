"""What a round of tight coupling takes between server and workers: processes, Ray on one node, Ray on two.

    python benchmarks/cluster_rounds.py [--workers N...] [--runs N] [--csv FILE]

A chain with one body for each worker steps with few plain rounds of one sweep, then with many: `round_us` is what one
more round takes, `step_ms` what is left of a step without any. Each run starts its workers anew: where they come to lie
makes much of the difference. The two nodes are network namespaces of this machine, made and removed here (needs root):
what they show is what messages cost, not what a real network adds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from statistics import median
from typing import Any

# In a network namespace this file is run by its path, which puts neither folder there.
sys.path += [str(Path(__file__).parent.parent / "tests"), str(Path(__file__).parent)]

from rounds import chain, plain_rounds, step_s
from tables import show, write_table

from lapjoint import Simulation

FEW, MANY = 10, 210


def measure(case: dict[str, Any]) -> dict[str, Any]:
    params = plain_rounds(case["workers"], runtime=case["runtime"], address=case["address"])
    rounds_s, steps_s = [], []
    with Simulation(chain(case["workers"]), params) as simulation:
        for _ in range(10):
            step_s(simulation, FEW)
        for _ in range(case["repetitions"]):
            few, many = step_s(simulation, FEW), step_s(simulation, MANY)
            rounds_s.append((many - few) / (MANY - FEW))
            steps_s.append(few - FEW * rounds_s[-1])
    return {
        "runtime": case["runtime"],
        "nodes": case["nodes"],
        "workers": case["workers"],
        "round_us": round(1e6 * median(rounds_s), 1),
        "round_us_lowest": round(1e6 * min(rounds_s), 1),
        "round_us_highest": round(1e6 * max(rounds_s), 1),
        "step_ms": round(1e3 * median(steps_s), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(measure(json.loads(given.case))))
        return
    from ray_support import ADDRESS, two_nodes, why_not

    here = {"nodes": 1, "address": None, "repetitions": given.repetitions}
    rows = []
    for _ in range(given.runs):
        for workers in given.workers:
            for runtime in ("process", "ray"):
                rows.append(measure({**here, "workers": workers, "runtime": runtime}))
                show(rows[-1])
    if why_not():
        print(f"no two nodes: {why_not()}")
    else:
        with two_nodes(os.environ.get("PYTHONPATH", "")) as nodes:
            code = f"import runpy, sys; runpy.run_path({str(Path(__file__).resolve())!r}, run_name='__main__')"
            for workers in given.workers * given.runs:
                text = json.dumps({**here, "nodes": 2, "address": ADDRESS, "workers": workers, "runtime": "ray"})
                rows.append(json.loads(nodes.run(code, "--case", text, seconds=1800).splitlines()[-1]))
                show(rows[-1])
    if given.csv:
        write_table(rows, given.csv)


if __name__ == "__main__":
    main()
