"""A tolerance with several workers: all take as many substeps, whoever needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapjoint import Checkpoint, CheckpointWriter, Params, Scene, Simulation, Substeps, make_engine, scenes
from lapjoint.run import RunSummary, run

TOLERANCE = 1e-5


def bowl() -> Scene:
    return scenes.build("bowl", 120)


def simulation_of(scene: Scene, **params: Any) -> Simulation:
    given: dict[str, Any] = {"runtime": "inline", "solver": "substeps", "tolerance": TOLERANCE, "validate": True}
    return Simulation(scene, Params.from_options(**{**given, **params}))


def summary_of(scene: Scene, steps: int, **params: Any) -> RunSummary:
    with Simulation(scene, Params.from_options(runtime="inline", workers=2, **params)) as simulation:
        return run(simulation, steps)


def at_random(scene: Scene, workers: int) -> np.ndarray:
    return np.random.default_rng(5).permutation(np.arange(scene.body_count) % workers).astype(np.int32)


def test_one_worker_is_the_plain_engine() -> None:
    scene = bowl()
    engine = make_engine(scene, Params(solver="substeps", substeps=Substeps(tolerance=TOLERANCE)))
    engine.activate(np.arange(scene.body_count), scene.states)
    engine.step(120)
    with simulation_of(scene) as simulation:
        simulation.step(120)
        assert np.array_equal(simulation.states, engine.get_states())


@pytest.mark.slow
@pytest.mark.parametrize("partition", ["metis", "random"])
def test_all_workers_take_as_many_substeps(partition: str) -> None:
    scene = bowl()
    given: Any = at_random(scene, 3) if partition == "random" else partition
    counts = []
    with simulation_of(scene, workers=3, coupling="tight", partition=given) as simulation:
        for _ in range(200):
            simulation.step()
            profile = simulation.profile
            assert len({reply.substeps for reply in profile.replies}) == 1
            counts.append(profile.substeps)
            # At the start of the step: what the last one left, and what has come besides.
            assert profile.penetration < 1.5 * TOLERANCE
    assert min(counts) == 4 < max(counts)


@pytest.mark.slow
@pytest.mark.parametrize("joints", ["direct", "swept"])
def test_processes_have_the_same_bits(joints: str) -> None:
    """On a bridge across workers, with contacts, whose structures are solved by all of them."""
    scene = scenes.build("bridge", 106)
    hashes, counts = set(), set()
    for runtime in ("inline", "process"):
        with simulation_of(scene, workers=3, runtime=runtime, joints=joints, tolerance=2e-7) as simulation:
            for _ in range(20):
                simulation.step()
                counts.add(simulation.profile.substeps)
            hashes.add(simulation.state_hash)
    assert len(hashes) == 1
    assert max(counts) > 4


def test_workers_take_the_step_of_as_many_substeps() -> None:
    """A step that needs the limit is that of a run with as many, to the last bit."""
    scene = scenes.build("pyramid", 8)
    partition, ends = at_random(scene, 3), []
    tried = {"tolerance": 1e-12, "max_substeps": 16}
    for more in (tried, {"tolerance": 0.0, "substeps": 16}):
        with simulation_of(scene, workers=3, coupling="tight", partition=partition, **more) as simulation:
            simulation.step(5)
            ends.append(simulation.state_hash)
            assert simulation.profile.substeps == 16
    assert ends[0] == ends[1]


def test_there_is_no_message_more_without_a_tolerance() -> None:
    """With one that is never exceeded there is one for every step."""
    found = []
    for tolerance in (0.0, 1.0):
        with simulation_of(scenes.build("pyramid", 8), workers=2, coupling="tight", tolerance=tolerance) as simulation:
            simulation.step(3)
            found.append((simulation.profile.exchanges, simulation.state_hash))
    (without, states), (loose, same_states) = found
    assert loose == without + 1
    assert states == same_states


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
def test_a_resumed_run_equals_one_that_never_stopped(workers: int, tmp_path: Path) -> None:
    with simulation_of(bowl(), workers=workers) as first:
        first.step(100)
        checkpoint = Checkpoint(CheckpointWriter(tmp_path / "c", first).save(first))
        first.step(25)
        with checkpoint.resume() as second:
            assert second.params.substeps.tolerance == TOLERANCE
            second.step(25)
            assert second.state_hash == first.state_hash
            assert second.profile.substeps == first.profile.substeps


@pytest.mark.slow
def test_a_summary_counts_substeps() -> None:
    scene = bowl()
    found = summary_of(scene, 140, tolerance=TOLERANCE)
    assert found.substeps_mean is not None
    assert found.substeps_max is not None
    assert 4 < found.substeps_mean < found.substeps_max <= 64
    plain, other = summary_of(scene, 3), summary_of(scene, 3, solver="sequential")
    assert (plain.substeps_mean, plain.substeps_max) == (4.0, 4)
    assert (other.substeps_mean, other.substeps_max) == (None, None)
