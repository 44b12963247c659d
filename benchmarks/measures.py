"""What measures cost: CPU time of the server for each kind, and the step beside it, on two workers.

    python benchmarks/measures.py [SCENE...] [--steps N] [--csv FILE]

A scene runs for `--warmup` steps, so that bodies are in contact. Then every step is measured by each kind alone, in
turn; a figure is the median over the steps. Penetration and residuals are what workers send with their step.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import median

from tables import show, write_table

from lapjoint import Measures, Params, Simulation, scenes

KINDS = {
    "joint_gap": ["joint_gap_sum", "joint_gap_max"],
    "penetration": ["penetration_sum", "penetration_max"],
    "residual": ["worker_residual"],
    "motion": ["kinetic_energy", "linear_momentum", "angular_momentum"],
    "potential_energy": ["potential_energy"],
    "disagreement": ["disagreement_position_max", "disagreement_velocity_max"],
    "one_step": ["one_step_error"],
}


def measure(name: str, coupling: str, warmup: int, steps: int) -> dict[str, object]:
    with Simulation(scenes.build(name), Params(workers=2, coupling=coupling)) as simulation:
        simulation.step(warmup)
        kinds = {kind: Measures(simulation, names) for kind, names in KINDS.items()}
        times: dict[str, list[float]] = {kind: [] for kind in (*kinds, "step")}
        for _ in range(steps):
            before = dict.fromkeys(kinds, 0.0)
            for kind, measures in kinds.items():
                start = time.thread_time()
                measures.before_step(simulation)
                before[kind] = time.thread_time() - start
            start = time.perf_counter()
            simulation.step()
            times["step"].append(time.perf_counter() - start)
            for kind, measures in kinds.items():
                start = time.thread_time()
                measures.after_step(simulation)
                times[kind].append(before[kind] + time.thread_time() - start)
        profile, scene = simulation.profile, simulation.scene
        return {
            "scene": name,
            "coupling": coupling,
            "body_count": scene.body_count,
            "joint_count": scene.joint_count,
            "contact_count": profile.contact_count,
            "overlap_count": profile.overlap_count,
            **{f"{kind}_ms": round(1e3 * median(values), 3) for kind, values in times.items()},
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", nargs="*", default=["bowl", "four-way-bridge"])
    parser.add_argument("--warmup", type=int, default=600)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    rows = []
    for name in arguments.scene:
        for coupling in ("tight", "blend"):
            rows.append(measure(name, coupling, arguments.warmup, arguments.steps))
            show(rows[-1])
    if arguments.csv:
        write_table(rows, arguments.csv)


if __name__ == "__main__":
    main()
