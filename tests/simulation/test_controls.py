"""What a user changes while a simulation runs: states, frozen bodies, depths, loads."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from lapjoint import LapjointError, Params, Simulation, Sphere, Substeps, scenes
from lapjoint.checkpoint import CheckpointWriter


def make(workers: int = 3, **params: object) -> Simulation:
    return Simulation(
        scenes.build("bridge"),
        Params.from_options(
            workers=workers, runtime="inline", coupling="blend", validate=True, iterations=20, **params
        ),
    )


def test_a_body_that_is_set_elsewhere_is_there_in_all_its_workers() -> None:
    with make(growth_depth=2) as simulation:
        simulation.step(5)
        overlap, alone = (
            int(simulation.workers.overlap[0]),
            int(np.flatnonzero(simulation.workers.membership.worker_counts() == 1)[0]),
        )
        states = simulation.states[[overlap, alone]]
        states[:, 7:10] = [[0.0, 0.0, 3.0], [0.0, 0.0, 2.0]]
        simulation.set_states([overlap, alone], states)
        assert np.array_equal(simulation.states[[overlap, alone]], states)
        simulation.step()
        moved = simulation.states[[overlap, alone], 2] - states[:, 2]
        assert (moved > 1e-4).all()


def test_set_states_is_the_same_with_one_worker_as_in_a_new_scene() -> None:
    scene = scenes.build("chain")
    with Simulation(scene, Params(runtime="inline")) as one, Simulation(scene, Params(runtime="inline")) as other:
        one.step(3)
        other.set_states(np.arange(scene.body_count), one.states)
        assert other.state_hash == one.state_hash


def test_frozen_bodies_stay_and_released_ones_go_on() -> None:
    scene = scenes.build("bowl", size=200)
    with Simulation(scene, Params(workers=2, runtime="inline", validate=True)) as simulation:
        simulation.step(3)
        body = 190
        before = simulation.states[body, :7]
        simulation.bodies.freeze([body])
        assert simulation.bodies.frozen_ids.tolist() == [body]
        simulation.step(40)
        assert np.array_equal(simulation.states[body, :7], before)
        assert not simulation.states[body, 7:].any()
        simulation.bodies.release(body)
        simulation.step(20)
        assert simulation.states[body, 2] < before[2] - 1e-3
        assert simulation.bodies.frozen_ids.tolist() == []


@pytest.mark.parametrize("depths", [(0, 4), (4, 0)])
def test_growth_depth_changes_the_width_of_the_overlap_while_running(depths: tuple[int, int]) -> None:
    before, after = depths
    with make(growth_depth=before) as simulation, make(growth_depth=after) as wanted:
        simulation.step(5)
        wanted.step(5)
        start = len(simulation.workers.overlap)
        simulation.workers.set_growth_depth(after)
        simulation.step(5)
        assert simulation.workers.growth_depth == simulation.params.blend.growth_depth == after
        assert (
            abs(len(simulation.workers.overlap) - len(wanted.workers.overlap))
            < abs(start - len(wanted.workers.overlap)) / 4
        )


def test_a_worker_that_an_overlap_swallowed_has_bodies_of_its_own_again() -> None:
    with make(growth_depth=6) as simulation:
        simulation.step(3)
        swallowed = set(range(3)) - set(np.argmax(simulation.workers.weights(), axis=1).tolist())
        assert swallowed, "the test needs a worker that has the most to say about no body"
        simulation.workers.set_growth_depth(1)
        simulation.step(4)
        assert set(np.argmax(simulation.workers.weights(), axis=1).tolist()) == {0, 1, 2}


def test_a_change_of_growth_depth_moves_no_body_by_itself() -> None:
    with make(growth_depth=1) as simulation, make(growth_depth=1) as unchanged:
        for each in (simulation, unchanged):
            each.step(20)
        simulation.workers.set_growth_depth(5)
        for each in (simulation, unchanged):
            each.step()
        apart = np.linalg.norm(simulation.states[:, :3] - unchanged.states[:, :3], axis=1)
        assert apart.max() < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("load", ["bodies", "contacts", "time"])
def test_the_load_can_change_while_running(load: str) -> None:
    with make(load="contacts") as simulation:
        simulation.step(12)
        simulation.workers.set_load(load)
        simulation.step(12)
        assert simulation.params.load == load
        if load == "bodies":
            assert simulation.workers.membership.cost.tolist() == [1] * simulation.scene.body_count


def test_what_cannot_be_is_refused() -> None:
    with make() as simulation:
        with pytest.raises(LapjointError, match="set_states: body 999999 does not exist"):
            simulation.set_states([999999], np.zeros((1, 13)))
        with pytest.raises(LapjointError, match=r"set_states: body 0: state is .*nan.*expected finite"):
            simulation.set_states([0], np.full((1, 13), np.nan))
        with pytest.raises(LapjointError, match="freeze: body -1 does not exist"):
            simulation.bodies.freeze([-1])
        with pytest.raises(LapjointError, match="growth_depth is -1"):
            simulation.workers.set_growth_depth(-1)
        with pytest.raises(LapjointError, match="load is 'weight', expected one of contacts, bodies, time"):
            simulation.workers.set_load("weight")
        simulation.step()


def test_mistakes_are_refused_by_name() -> None:
    with pytest.raises(
        LapjointError, match=r"scene is 'bridge', expected a Scene: scenes\.build\('bridge'\) makes one"
    ):
        Simulation("bridge")  # type: ignore[arg-type]
    scene = scenes.build("chain")
    with Simulation(scene, Params(workers=2, runtime="inline")) as simulation:
        for count in (-1, 1.5, "3"):
            with pytest.raises(LapjointError, match=r"step: count is .* expected a whole number of steps"):
                simulation.step(count)  # type: ignore[arg-type]
        state = simulation.states[3].copy()
        state[3:7] = 0
        with pytest.raises(LapjointError, match="set_states: body 3: the state's quaternion is"):
            simulation.set_states([3], state)
        with pytest.raises(LapjointError, match="cannot be changed now: a simulation of it is running"):
            scene.add_body(Sphere(0.1), (0, 0, 9))
        assert simulation.step_count == 0
    scene.add_body(Sphere(0.1), (0, 0, 9))  # once it is closed


@pytest.mark.slow
def test_a_scene_is_free_when_its_simulation_is_gone_without_a_close() -> None:
    scene = scenes.build("chain")
    simulation = Simulation(scene, Params(workers=1, runtime="inline"))
    simulation.restart()
    del simulation
    gc.collect()
    scene.add_body(Sphere(0.1), (0, 0, 9))
    with pytest.raises(LapjointError, match="workers for"):
        Simulation(scene, Params(workers=1000, runtime="inline"))
    scene.add_body(Sphere(0.1), (0, 0, 9))  # one that did not start has locked nothing


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["blend", "tight"])
def test_a_simulation_that_nobody_has_any_more_lets_go_of_its_scene_at_once(coupling: str) -> None:
    scene = scenes.build("two-way-bridge", 106)
    simulation = Simulation(scene, Params(workers=2, runtime="inline", coupling=coupling))
    simulation.step()
    gc.collect()
    gc.disable()  # a cycle of references would keep it until a collection that may be long in coming
    try:
        del simulation
        scene.add_static(Sphere(0.1), position=(0, 0, -100))
    finally:
        gc.enable()


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["blend", "tight"])
def test_numbers_may_be_those_of_numpy(coupling: str, tmp_path: Path) -> None:
    def run(number: type) -> str:
        solver = {"blend": "sequential", "tight": "substeps"}[coupling]
        params = Params(
            workers=number(1), runtime="process", coupling=coupling, solver=solver, substeps=Substeps(number(4))
        )
        with Simulation(scenes.build("chain"), params) as simulation:
            if coupling == "blend":
                simulation.workers.set_iterations(number(7))
            simulation.step(number(2))
            if coupling == "blend":
                simulation.workers.set_iterations(number(5))
            simulation.workers.set_count(number(2))
            CheckpointWriter(tmp_path / number.__name__, simulation).save(simulation)
            simulation.step()
            return simulation.state_hash

    assert run(np.int64) == run(int)
