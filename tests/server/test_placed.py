"""Bodies that are put elsewhere, or added: the partition follows where they are many."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lapjoint import Box, Checkpoint, CheckpointWriter, Params, Plane, Scene, Simulation
from lapjoint.server.placed import FEWEST, PlacedBodies

COUPLINGS = ("tight", "blend")
WORKERS = 4
SIDE = 16


def floor() -> Scene:
    """Boxes on a plane, a square of them, that touch their neighbours."""
    scene = Scene("floor", timestep=0.004)
    scene.add_static(Plane())
    place = np.indices((SIDE, SIDE)).reshape(2, -1).T
    scene.add_bodies(Box((1.0, 1.0, 1.0)), np.column_stack([place, np.full(SIDE**2, 0.5)]))
    return scene


def start(coupling: str, **params: object) -> Simulation:
    return Simulation(floor(), Params.from_options(workers=WORKERS, coupling=coupling, runtime="inline", **params))


@pytest.fixture(params=COUPLINGS)
def simulation(request: pytest.FixtureRequest) -> Iterator[Simulation]:
    with start(request.param) as made:
        made.step(3)
        yield made


def shared(simulation: Simulation) -> int:
    return len(simulation.workers.interface if simulation.params.coupling == "tight" else simulation.workers.overlap)


def shuffle(simulation: Simulation, seed: int = 1) -> None:
    """Bodies in each other's places, all of them."""
    states = simulation.states.copy()
    states[:, :3] = states[np.random.default_rng(seed).permutation(len(states)), :3]
    simulation.set_states(np.arange(len(states)), states)


def repartitions(simulation: Simulation, steps: int) -> int:
    count = 0
    for _ in range(steps):
        simulation.step()
        count += simulation.profile.divided
    return count


def test_the_partition_follows_bodies_that_are_put_elsewhere(simulation: Simulation) -> None:
    before = shared(simulation)
    shuffle(simulation)
    assert repartitions(simulation, 4) == 1
    assert shared(simulation) < 1.5 * before
    if simulation.params.coupling == "tight":
        assert simulation.profile.cut_share < 0.2, "of the contacts that there are now"


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_it_does_so_from_the_first_step_on(coupling: str) -> None:
    with start(coupling) as simulation:
        shuffle(simulation)
        assert repartitions(simulation, 3) == 1
        assert shared(simulation) < SIDE**2 / 2


def test_it_stays_where_bodies_keep_their_neighbours(simulation: Simulation) -> None:
    states = simulation.states.copy()
    states[:, :2] += 5.0
    simulation.set_states(np.arange(SIDE**2), states)
    assert repartitions(simulation, 3) == 0
    states[:, 9] = 1.0  # and where they only become faster
    simulation.set_states(np.arange(SIDE**2), states)
    assert repartitions(simulation, 3) == 0


def test_it_stays_where_few_move_and_where_it_is_to_stay(simulation: Simulation) -> None:
    states = simulation.states.copy()
    few = np.arange(FEWEST)
    states[few, :2] = [SIDE, SIDE] - states[few, :2]
    states[few, 2] += 3.0
    simulation.set_states(few, states[few])
    assert repartitions(simulation, 2) == 0
    with start(simulation.params.coupling, repartition=0) as fixed:
        shuffle(fixed)
        assert repartitions(fixed, 3) == 0


def test_many_moves_of_few_count_together() -> None:
    with start("tight") as simulation:
        states = simulation.states.copy()
        order = np.random.default_rng(1).permutation(SIDE**2)
        counts = []
        for bodies in order[: 6 * 10].reshape(6, 10):
            states[bodies, :2] = [SIDE, SIDE] - states[bodies, :2]
            states[bodies, 2] += 1.0
            simulation.set_states(bodies, states[bodies])
            counts.append(repartitions(simulation, 1))
        assert counts[:2] == [0, 0]
        assert 1 <= sum(counts) <= 2


def test_bodies_that_are_added_far_away_are_shared(simulation: Simulation) -> None:
    place = np.indices((12, 12)).reshape(2, -1).T + 100.0
    simulation.bodies.add(Box((1.0, 1.0, 1.0)), np.column_stack([place, np.full(144, 0.5)]))
    assert repartitions(simulation, 4) == 1
    counts = simulation.profile.worker_body_count
    assert counts.max() < 1.4 * counts.mean()


def test_bodies_that_are_gone_again_do_not_count(simulation: Simulation) -> None:
    place = np.indices((8, 8)).reshape(2, -1).T + 100.0
    simulation.bodies.remove(simulation.bodies.add(Box((1.0, 1.0, 1.0)), np.column_stack([place, np.full(64, 0.5)])))
    assert repartitions(simulation, 2) == 0


def test_bodies_that_come_one_by_one_cost_no_repartition(simulation: Simulation) -> None:
    counts = []
    for k in range(2 * FEWEST):
        simulation.bodies.add_one(Box((1.0, 1.0, 1.0)), (k % SIDE, k // SIDE, 1.5))
        counts.append(repartitions(simulation, 1))
    assert sum(counts) == 0


@pytest.mark.slow
@pytest.mark.parametrize("coupling", COUPLINGS)
def test_it_depends_neither_on_batches_nor_on_checkpoints(coupling: str, tmp_path: Path) -> None:
    def hashes(batch: int, resumes: bool) -> str:
        simulation = start(coupling)
        rng = np.random.default_rng(2)
        for moved in (12, 12, 12, SIDE**2):
            bodies = np.sort(rng.permutation(SIDE**2)[:moved]).astype(np.int32)
            states = simulation.states_of(bodies)
            states[:, :3] = states[rng.permutation(moved), :3] + [0.0, 0.0, 0.5]
            simulation.set_states(bodies, states)
            if resumes:
                path = CheckpointWriter(tmp_path / str(moved), simulation).save(simulation)
                simulation.close()
                simulation = Checkpoint(path).resume()
            for _ in range(12 // batch):
                simulation.step(batch)
        found = simulation.state_hash
        simulation.close()
        return found

    assert len({hashes(12, False), hashes(1, False), hashes(4, True)}) == 1


def test_a_body_that_is_moved_again_and_again_is_one() -> None:
    placed = PlacedBodies()
    for _ in range(10):
        placed.add(np.arange(FEWEST, dtype=np.int32))
        assert placed.take_many(FEWEST) is None
    placed.add(np.array([FEWEST], np.int32))
    found = placed.take_many(FEWEST)
    assert found is not None
    assert found.tolist() == list(range(FEWEST + 1))
    assert len(placed.ids) == 0
