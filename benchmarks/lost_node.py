"""What a lost machine does to a run: the second of two nodes is killed, as if it had lost its power.

    python benchmarks/lost_node.py [SCENE] [--workers N] [--trials N] [--csv FILE]

The two nodes are network namespaces of this machine (needs root). The run is compared with one in this process, which
is the same to the last bit until the node is lost; the jump is what differs right after the step in which it happened.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from tables import write_table

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from ray_support import ADDRESS, OTHER, two_nodes, why_not

PROGRAM = f"""
import json, sys
import numpy as np
from lapjoint import Params, Simulation, scenes
name, workers, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
scene, common = scenes.build(name), dict(workers=workers, iterations=20)
with (
    Simulation(scene, Params(**common, runtime="ray", address="{ADDRESS}", hang_limit=2.0)) as simulation,
    Simulation(scene, Params(**common, runtime="inline")) as twin,
):
    simulation.step(steps)
    twin.step(steps)
    assert simulation.state_hash == twin.state_hash
    print("ready", flush=True)
    sys.stdin.readline()
    simulation.step()
    twin.step()
    apart = np.linalg.norm(simulation.states[:, :3] - twin.states[:, :3], axis=1)
    simulation.step(20)
    print(json.dumps({{
        "scene": name,
        "workers": workers,
        "steps": simulation.step_count,
        "failures": sum(event.is_failure for event in simulation.incidents),
        "bodies_lost": int((~np.isfinite(simulation.states).all(axis=1)).sum()),
        "largest_jump_m": float(apart.max()),
        "recovery_s": sum(event.recovery_s for event in simulation.incidents),
        "stopped": simulation.is_stopped,
    }}))
"""


def lose(name: str, workers: int, steps: int) -> dict[str, Any]:
    with two_nodes(os.environ.get("PYTHONPATH", "")) as nodes:
        program = nodes.popen(PROGRAM, name, str(workers), str(steps))
        assert program.stdout is not None
        line = program.stdout.readline()
        assert line == "ready\n", (line, program.communicate()[1])
        nodes.kill(OTHER)
        output, errors = program.communicate("\n", timeout=600)
        assert program.returncode == 0, errors
        row: dict[str, Any] = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
        return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", nargs="?", default="bowl")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--csv", type=Path)
    given = parser.parse_args()
    if why_not():
        sys.exit(f"no two nodes: {why_not()}")
    rows = []
    for trial in range(given.trials):
        rows.append(lose(given.scene, given.workers, 100 + 40 * trial))
        print(rows[-1], flush=True)
    if given.csv is not None:
        write_table(rows, given.csv)


if __name__ == "__main__":
    main()
