"""A wall stands while its bricks change workers at random in every step.

`LAPJOINT_SOAK_STEPS=10000 python -m pytest tests/simulation/test_soak.py` takes 10,000 steps; benchmarks/soak.py is for
long runs.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from lapjoint import Box, Material, Params, Plane, Scene, Simulation

STEPS = int(os.environ.get("LAPJOINT_SOAK_STEPS", "1000"))
COURSES, COLUMNS = 4, 8
BRICK = (0.4, 0.4, 0.2)  # thickness, along the wall, height [m]
WORKERS = 4
CHANGES = 4  # bricks that join a worker in each step, and as many that leave one


def wall() -> Scene:
    """Bricks in running bond that touch from the start."""
    scene = Scene("wall", iterations=30)
    rough = Material(friction=0.7)
    scene.add_static(Plane(), material=rough)
    course, column = (grid.ravel() for grid in np.indices((COURSES, COLUMNS)))
    along = (column + np.where(course % 2, 0.25, 0.0)) * (BRICK[1] + 0.004)  # no brick overhangs by half
    places = np.stack([np.zeros(len(course)), along, (course + 0.5) * BRICK[2]], axis=1)
    scene.add_bodies(Box(BRICK), places, density=1800.0, material=rough, labels=column)
    return scene


class Shuffler:
    """Moves bodies between workers, whatever the load, and never so that a constraint loses its last worker."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.joined = self.left = 0

    def shuffle(self, simulation: Simulation) -> None:
        membership, graph = simulation.workers.membership, simulation.workers.graph
        for body in self.rng.integers(0, membership.body_count, CHANGES).tolist():
            worker = int(self.rng.integers(WORKERS))
            self.joined += not membership.has(body, worker)
            membership.activate([worker], body)
        for body in self.rng.permutation(membership.overlap())[: 2 * CHANGES].tolist():
            worker = int(self.rng.choice(sorted(membership.workers(body))))
            left = membership.workers(body) - {worker}
            if all(membership.workers(near) & left for near in graph.neighbors(body)):
                membership.deactivate([worker], body)
                self.left += 1
        membership.validate(graph)


@pytest.mark.slow
@pytest.mark.usefixtures("unpruned")  # pruning would undo most of the shuffling before a worker sees it
def test_a_wall_stands_while_its_bricks_change_workers() -> None:
    scene, shuffler = wall(), Shuffler(seed=1)
    start, seen, changes = scene.states[:, :3], set(), 0
    with Simulation(scene, Params(workers=WORKERS, runtime="inline", coupling="blend", validate=True)) as simulation:
        for _ in range(STEPS):
            simulation.step()
            changes += simulation.profile.activation_count
            seen |= {
                (body, worker) for worker in range(WORKERS) for body in simulation.workers.membership.active(worker)
            }
            shuffler.shuffle(simulation)
        states = simulation.states
    assert shuffler.joined > 2 * STEPS
    assert shuffler.left > STEPS
    assert changes > STEPS / 2, "and the workers saw it"
    assert len(seen) == scene.body_count * WORKERS, "every brick has been in every worker"
    # Bricks creep along the wall, for the blend lets them slide a little; none tips, sinks or falls.
    moved, tilt = np.abs(states[:, :3] - start), 1 - np.abs(states[:, 3])
    assert moved[:, 2].max() < 0.1 * BRICK[2]
    assert moved.max() < 0.25 * BRICK[1]
    assert tilt.max() < 1e-3
