"""A chain whose rounds do not end early, and the time of its steps: what the benchmarks of rounds share."""

from __future__ import annotations

import time
from typing import Any

from lapjoint import Hinge, Motor, Params, Scene, Simulation, Sphere


def chain(count: int) -> Scene:
    """Balls on a line, each joined to the next by two hinges whose motors contradict each other.

    Rounds end once one changes nothing. The motors never agree, so every round of the plan is run.
    """
    scene = Scene("chain")
    scene.add_bodies(Sphere(0.1), [(0.3 * i, 0.0, 0.0) for i in range(count)])
    for i in range(count - 1):
        for velocity in (1.0, -1.0):
            scene.add_joint(Hinge(motor=Motor(velocity, 1e9)), i, i + 1, anchor=(0.3 * i + 0.15, 0.0, 0.0))
    return scene


def plain_rounds(workers: int, **more: Any) -> Params:
    """Parameters with one body for each worker and rounds of sweeps alone."""
    common: dict[str, Any] = {"coupling": "tight", "partition": "equal", "repartition": 0.0}
    return Params(workers=workers, acceleration=False, joints_together=False, **common, **more)


def step_s(simulation: Simulation, rounds: int) -> float:
    """Wall time of a step with so many rounds of one sweep [s]."""
    simulation.set_iterations(rounds)
    simulation.set_rounds(rounds)
    start = time.perf_counter()
    simulation.step()
    wall_s = time.perf_counter() - start
    assert simulation.profile.rounds == rounds, "rounds ended early"
    return wall_s
