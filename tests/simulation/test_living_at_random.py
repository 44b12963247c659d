"""Whatever happens to a scene in motion, in whatever order: all invariants hold after each step, and it is the same in
every runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapjoint import (
    Ball,
    Box,
    Breaks,
    ConstantVelocity,
    Fixed,
    Oscillation,
    Params,
    Plane,
    Rotation,
    Scene,
    Simulation,
    Sphere,
)
from lapjoint.scene.joints import WORLD


def begin() -> Scene:
    """Boxes in two rows, some of them joined, and a plate below that can move."""
    scene = Scene("rows", timestep=0.005)
    scene.add_static(Plane(), (0.0, 0.0, -1.0))
    scene.add_kinematic(Box((8.0, 8.0, 0.2)), (1.5, 0.3, -0.1), motion=Oscillation((0.0, 0.0, 0.01), frequency=2.0))
    scene.add_bodies(Box((0.6, 0.6, 0.6)), [[0.7 * i, 0.65 * j, 0.3] for i in range(6) for j in range(2)])
    scene.add_joints(Fixed(), [0, 4, 8], [2, 6, 10], [[0.35, 0, 0.3], [1.75, 0, 0.3], [3.15, 0, 0.3]])
    return scene


class Changes:
    """Makes the same changes to any simulation that is given the same numbers."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.mass: dict[int, float] = dict(enumerate(simulation.scene.bodies.mass.tolist()))

    def _living(self, pick: int, count: int) -> np.ndarray:
        there = np.flatnonzero(self.simulation.alive)
        return np.unique(there[(pick * np.arange(1, count + 1)) % len(there)]) if len(there) else there

    def add(self, pick: int, count: int) -> None:
        places = [[0.5 * ((pick + 7 * i) % 9), 0.4 * (i % 3), 1.2 + 0.5 * i] for i in range(count)]
        shape = Sphere(0.2) if pick % 2 else Box((0.3, 0.3, 0.3))
        for body in self.simulation.bodies.add(shape, places, linear_velocities=(0.1 * (pick % 5), 0, -1.0)):
            self.mass[body] = float(self.simulation.scene.bodies.mass[body])

    def remove(self, pick: int, count: int) -> None:
        living = self._living(pick, min(count, int(self.simulation.alive.sum()) - 4))
        if self.simulation.alive.sum() > 4:
            self.simulation.bodies.remove(living)
            for body in living.tolist():
                del self.mass[body]

    def join(self, pick: int, count: int) -> None:
        bodies = self._living(pick, 2)
        if len(bodies) == 2:
            anchor = self.simulation.states_of(bodies)[:, :3].mean(axis=0)
            breaks = Breaks(force=5.0 * count) if pick % 3 else None
            self.simulation.joints.add(Ball(), bodies[:1], bodies[1:], [anchor], breaks=breaks)
        elif len(bodies):
            self.simulation.joints.add(Ball(), bodies, [WORLD], self.simulation.states_of(bodies)[:, :3])

    def unjoin(self, pick: int, count: int) -> None:
        holding = np.flatnonzero(self.simulation.scene.joint_alive)
        if len(holding):
            self.simulation.joints.remove([holding[pick % len(holding)]])

    def push(self, pick: int, count: int) -> None:
        bodies = self._living(pick, count)
        self.simulation.bodies.add_forces(bodies, [100.0 * count, 0.0, 300.0])

    def drive(self, pick: int, count: int) -> None:
        motions = (None, ConstantVelocity((0.1 * count, 0.0, 0.0)), Rotation((0.0, 0.0, 1.0), 0.2 * count))
        if pick % 4 < 3:
            self.simulation.kinematic.set_motion([1], motions[pick % 4])
        else:
            self.simulation.kinematic.move_to(
                [1], self.simulation.kinematic.static_poses[1, :3] + [0.0, 0.0, 0.001 * count]
            )

    def freeze(self, pick: int, count: int) -> None:
        self.simulation.bodies.freeze(self._living(pick, 1))

    def repartition(self, pick: int, count: int) -> None:
        alive = self.simulation.alive
        partition = np.zeros(len(alive), int)
        partition[alive] = (np.arange(alive.sum()) + pick) // count % self.simulation.workers.membership.worker_count
        if len(np.unique(partition[alive])) == self.simulation.workers.membership.worker_count:
            self.simulation.workers.repartition(partition)

    def lose(self, pick: int, count: int) -> None:
        """A worker dies; inline, where none can, a fresh one takes its place without its contact cache."""
        simulation = self.simulation
        if simulation.params.coupling == "tight":
            children = getattr(simulation._core.runtime, "_children", None)
            if children is not None:
                children[pick % len(children)]._process.kill()
                children[pick % len(children)]._process.wait(10)
            else:
                fail_in_next_step(simulation, pick % simulation.workers.membership.worker_count)


def fail_in_next_step(simulation: Simulation, worker: int) -> None:
    """As if the worker had died before the step."""
    runtime: Any = simulation._core.runtime
    from lapjoint.workers.messages import WorkerFailure

    runtime._failures[worker] = WorkerFailure(worker, "gone", "was killed")


def check(changes: Changes) -> None:
    simulation = changes.simulation
    scene, states, alive = simulation.scene, simulation.states, simulation.alive
    assert np.isfinite(states).all()
    assert not states[~alive].any()
    assert np.allclose(np.linalg.norm(states[alive, 3:7], axis=1), 1.0, atol=1e-5)
    assert sorted(changes.mass) == np.flatnonzero(alive).tolist(), "a body is lost, or found"
    ends = np.stack([scene.joints.body_a, scene.joints.body_b], axis=1)[scene.joint_alive]
    assert all(alive[end] for end in ends.ravel().tolist() if end != WORLD), "a joint holds a body that is gone"
    assert (simulation.workers.membership.bits.any(axis=1) == alive).all()
    assert set(simulation.joints.broken_ids.tolist()) == set(np.flatnonzero(~scene.joint_alive).tolist())
    events = simulation.events.all
    order = np.lexsort((events.number, events.kind, events.step))
    assert (order == np.arange(len(events))).all()
    assert len(events.of("made")) - len(events.of("removed")) == int(alive.sum()) - 12


KINDS = ("add", "remove", "join", "unjoin", "push", "drive", "freeze", "repartition", "lose")
ACTIONS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 50), st.integers(1, 6), st.integers(0, 3)), min_size=3, max_size=12
)


def run(actions: list[tuple[str, int, int, int]], **params: Any) -> list[str]:
    hashes = []
    with Simulation(begin(), Params.from_options(validate=True, quarantine=False, **params)) as simulation:
        changes = Changes(simulation)
        simulation.step(2)
        for kind, pick, count, steps in actions:
            getattr(changes, kind)(pick, count)
            for _ in range(steps):
                simulation.step()
                check(changes)
            hashes.append(simulation.state_hash)
        simulation.step()
        check(changes)
    return hashes


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(ACTIONS)
@pytest.mark.parametrize("coupling", ["tight", "blend"])
def test_whatever_happens_in_whatever_order(coupling: str, actions: list[tuple[str, int, int, int]]) -> None:
    inline = run(actions, workers=3, runtime="inline", coupling=coupling)
    assert run(actions, workers=3, runtime="process", coupling=coupling) == inline


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(ACTIONS)
def test_whatever_happens_on_one_worker(actions: list[tuple[str, int, int, int]]) -> None:
    run([one for one in actions if one[0] != "lose"], workers=1, runtime="inline")
