"""A simulation that begins again from its scene's start, and one whose partition is replaced while it runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lapjoint import Blend, LapjointError, Params, Sequential, Simulation, Sphere, scenes
from lapjoint.checkpoint import Checkpoint, CheckpointWriter


@pytest.mark.slow
@pytest.mark.parametrize(("coupling", "runtime"), [("blend", "inline"), ("tight", "inline"), ("tight", "process")])
def test_a_restart_is_bit_for_bit_a_new_simulation(coupling: str, runtime: str) -> None:
    scene = scenes.build("two-way-bridge", 106)
    is_swept = coupling == "blend"
    params = Params(
        workers=2, runtime=runtime, coupling=coupling, sequential=Sequential(iterations=20 if is_swept else None)
    )
    with Simulation(scene, params) as simulation:
        seen: list[int] = []
        simulation.on_step(lambda simulation: seen.append(simulation.step_count))
        simulation.step(12)
        expected = simulation.state_hash
        simulation.bodies.freeze([3])
        if is_swept:
            simulation.workers.set_iterations(5)
        simulation.workers.set_count(1)
        simulation.step(3)
        events = list(simulation.incidents)
        simulation.restart()
        assert (simulation.step_count, simulation.time, simulation.params.workers) == (0, 0.0, 2)
        assert simulation.bodies.frozen_ids.tolist() == []
        assert np.array_equal(simulation.states, scene.states)
        assert simulation.incidents == events, "what happened before is not forgotten"
        simulation.step(12)
        assert simulation.state_hash == expected
        assert seen == [*range(1, 16), *range(1, 13)], "callbacks stay"
    with pytest.raises(LapjointError, match="closed"):
        simulation.restart()


def test_a_restart_of_a_resumed_run_has_the_partition_of_its_start(tmp_path: Path) -> None:
    params = Params(workers=2, runtime="inline", coupling="blend", partition="boxes")
    with Simulation(scenes.build("two-way-bridge", 106), params) as simulation:
        start = simulation.workers.membership.bits.copy()
        simulation.step(2)
        CheckpointWriter(tmp_path, simulation).save(simulation)
    with Checkpoint(tmp_path).resume() as simulation:
        simulation.restart()
        assert np.array_equal(simulation.workers.membership.bits, start)
        assert simulation.resumed_from is None


def test_a_restart_that_fails_closes_the_simulation(tmp_path: Path) -> None:
    file = tmp_path / "partition.txt"
    file.write_text("0\n1\n" * 20)
    scene = scenes.build("chain")
    simulation = Simulation(scene, Params(workers=2, runtime="inline", partition=str(file)))
    file.unlink()
    with pytest.raises(LapjointError, match="there is no such file"):
        simulation.restart()
    with pytest.raises(LapjointError, match="closed"):
        simulation.step()
    scene.add_static(Sphere(1.0), position=(0, 0, -100))


@pytest.mark.parametrize("coupling", ["blend", "tight"])
def test_a_partition_replaces_that_of_a_running_simulation(coupling: str) -> None:
    scene = scenes.build("chain")
    params = Params(
        workers=2, runtime="inline", coupling=coupling, blend=Blend(growth_depth=None), repartition=0, validate=True
    )
    with Simulation(scene, params) as simulation:
        simulation.step(5)
        mirrored = 1 - simulation.workers.weights().argmax(axis=1)
        simulation.workers.repartition(mirrored)
        simulation.step(3)
        workers = simulation.workers.weights().argmax(axis=1)
        assert np.array_equal(workers[[0, -1]], mirrored[[0, -1]])
        assert np.mean(workers == mirrored) > 0.8, "but for what overlap decides"


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        (np.zeros(39, int), "repartition: 39 numbers for 40 bodies, expected one per body"),
        (np.zeros(40), "array of float64, expected whole numbers, a worker for each body"),
        (np.arange(40), "goes to worker 2, expected 0 to 1"),
        (np.arange(40) % 2 - 1, "goes to worker -1, expected 0 to 1"),
        (np.zeros(40, int), "worker 1 gets no body"),
    ],
)
def test_partitions_that_cannot_be_are_refused(partition: object, message: str) -> None:
    with Simulation(scenes.build("chain"), Params(workers=2, runtime="inline")) as simulation:
        with pytest.raises(LapjointError, match=message):
            simulation.workers.repartition(partition)  # type: ignore[arg-type]
        simulation.step()


def test_attributes_that_are_held_are_those_of_the_simulation_as_it_begins_again() -> None:
    with Simulation(scenes.build("chain", 6), Params(runtime="inline")) as simulation:
        joints, workers, queries = simulation.joints, simulation.workers, simulation.queries
        start = joints.positions([2])
        simulation.step(50)
        assert not np.array_equal(joints.positions([2]), start)
        simulation.restart()
        assert np.array_equal(joints.positions([2]), start)
        assert workers.membership is simulation._core.now.membership
        assert queries.closest_points(simulation.states[3, :3], statics=False).body.tolist() == [3]
    with pytest.raises(LapjointError, match="the simulation is closed"):
        joints.gaps()
