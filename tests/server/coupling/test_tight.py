"""Tight coupling: what rounds make of a divided scene, against one engine and against what must be conserved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapjoint import Params, Scene, Simulation, make_engine, scenes
from lapjoint.algorithms.extrapolation import Products
from lapjoint.engines import RoundEngine
from lapjoint.measures import angular_momentum, joint_gaps, kinetic_energy, linear_momentum, motion
from lapjoint.server.partition import write_partition
from tight_support import colliding, free_chain, simulate, start_from, wall

PRECISIONS = ["float64", "float32"]


def one_step_error(scene: Scene, rounds: int, reference: np.ndarray, workers: int = 4) -> float:
    """Of the velocities, against what gravity alone would do."""
    states = simulate(scene, 1, workers=workers, rounds=rounds, iterations=10 * rounds)
    scale = 9.81 * scene.timestep * np.sqrt(scene.body_count)
    return float(np.linalg.norm(states[:, 7:] - reference[:, 7:]) / scale)


def test_scenes_with_joints_are_coupled_tightly_unless_blend_is_asked_for() -> None:
    chain, bowl = scenes.build("chain"), scenes.build("bowl", 50)
    assert Params(workers=2).resolved(chain).coupling == "tight"
    assert Params(workers=1, max_workers=4).resolved(chain).coupling == "tight"
    others: list[dict[str, Any]] = [{"workers": 1}, {"growth_depth": 2}, {"engine": "rapier"}, {"solver": "dantzig"}]
    others += [{"sleeping": True}, {"coupling": "blend"}, {"weights": "equal"}, {"engine": "bullet,1=mujoco"}]
    for other in others:
        assert Params(**{"workers": 2, **other}).resolved(chain).coupling == "blend", other
    assert Params(workers=2).resolved(bowl).coupling == "blend"


# ---- alone -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", ["bridge", "plank"])
def test_plain_rounds_of_one_worker_are_the_plain_step_bit_for_bit(name: str, precision: str) -> None:
    scene = scenes.build(name)
    plain = simulate(scene, 30, coupling="blend", precision=precision, iterations=20)
    rounds = simulate(scene, 30, precision=precision, iterations=20, rounds=1, acceleration=False)
    assert np.array_equal(plain, rounds)


@pytest.mark.slow
def test_one_solve_is_better_than_a_thousand_sweeps() -> None:
    scene = scenes.build("bridge")
    together = simulate(scene, 20, rounds=1, iterations=1)
    swept = simulate(scene, 20, coupling="blend", iterations=1000)
    assert 5 * joint_gaps(scene, together).sum() < joint_gaps(scene, swept).sum()


def test_acceleration_does_more_than_as_many_sweeps() -> None:
    """Without joints solved together: Anderson alone."""
    scene = scenes.build("chain")
    gaps = [
        joint_gaps(scene, simulate(scene, 20, iterations=100, rounds=20, joints_together=False, **more)).sum()
        for more in ({}, {"acceleration": False})
    ]
    assert 3 * gaps[0] < gaps[1]


# ---- convergence -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("together", [True, False])
def test_the_chain_converges_to_one_engines_answer(together: bool) -> None:
    scene = scenes.build("chain")
    start_from(scene, simulate(scene, 50, workers=1))
    exact = simulate(scene, 1, rounds=300, iterations=3000, joints_together=together)
    errors = []
    for rounds in (2, 5, 20, 80):
        states = simulate(scene, 1, workers=4, rounds=rounds, iterations=10 * rounds, joints_together=together)
        scale = 9.81 * scene.timestep * np.sqrt(scene.body_count)
        errors.append(np.linalg.norm(states[:, 7:] - exact[:, 7:]) / scale)
    assert errors[-1] < 1e-6
    assert errors[0 if together else -1] < 1e-9
    assert together or errors[-1] < errors[0]


@pytest.mark.parametrize("seed", [None, 0])
def test_a_wall_converges_to_one_engines_answer(seed: int | None) -> None:
    """From left to right, and with owners at random."""
    scene = wall(seed=seed)
    exact = simulate(scene, 1, rounds=1000, iterations=10_000)
    errors = [one_step_error(scene, rounds, exact) for rounds in (5, 40, 240)]
    assert errors[2] < 1e-6
    assert errors[2] < errors[1] < errors[0]


def test_a_tolerance_is_kept_with_as_many_rounds_as_it_takes() -> None:
    scene = wall()
    taken = []
    for tolerance in (1e-2, 1e-4, 1e-8):
        params = Params(
            workers=4, runtime="inline", coupling="tight", precision="float64", tolerance=tolerance, rounds=500
        )
        with Simulation(scene, params) as simulation:
            simulation.step()
            assert simulation.profile.residual < tolerance
            taken.append(simulation.profile.rounds)
    assert taken[0] < taken[1] < taken[2] < 500


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chain", "bridge"])
def test_four_workers_move_as_one_engine(name: str) -> None:
    scene = scenes.build(name)
    one = simulate(scene, 60, rounds=10, iterations=50)
    four = simulate(scene, 60, workers=4, rounds=10, iterations=50)
    assert np.abs(four - one)[:, :3].max() < 1e-7
    assert joint_gaps(scene, four).sum() < 1.5 * joint_gaps(scene, one).sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at_random", "rounds", "sweeps", "precision"),
    [
        (False, 1, 1, "float64"),
        (False, 3, 1, "float32"),
        (True, 1, 1, "float32"),
        (True, 1, 5, "float64"),
        (True, 3, 1, "float64"),
    ],
)
def test_structures_in_pieces_do_not_gain_energy_in_however_few_rounds(
    at_random: bool, rounds: int, sweeps: int, precision: str, tmp_path: Path
) -> None:
    """Loops of joints over workers, and contacts at bodies that the server pushes: both have exploded."""
    scene = scenes.build("two-way-bridge", 106)
    owner = np.arange(scene.body_count) % 5
    file = tmp_path / "owners.txt"
    write_partition(file, np.random.default_rng(5).permutation(owner))
    exact = kinetic_energy(scene, simulate(scene, 120, rounds=10, iterations=50))
    states = simulate(
        scene,
        120,
        workers=5,
        rounds=rounds,
        iterations=rounds * sweeps,
        precision=precision,
        partition=str(file) if at_random else "metis",
        repartition=0,
    )
    assert kinetic_energy(scene, states) == pytest.approx(exact, rel=0.02)
    assert joint_gaps(scene, states).max() < 1e-3


def test_limits_and_motors_hold_across_interfaces() -> None:
    scene = free_chain(limits=(-0.1, 0.1))
    one = simulate(scene, 50, coupling="blend", iterations=2000)
    three = simulate(scene, 50, workers=3, rounds=10, iterations=100)
    assert np.allclose(three, one, atol=2e-3)


# ---- what is conserved -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "limit"), [("float64", 1e-12), ("float32", 1e-4)])
@pytest.mark.parametrize("rounds", [1, 3, 10])
@pytest.mark.parametrize("make", [free_chain, colliding])
def test_momentum_of_a_closed_scene_is_conserved_in_any_number_of_rounds(
    make: type, rounds: int, precision: str, limit: float
) -> None:
    scene = make()
    total = scene.bodies.mass.sum() * np.abs(scene.states[:, 7:10]).max()
    before = linear_momentum(scene, scene.states)
    states = simulate(scene, 100, workers=3, rounds=rounds, iterations=2 * rounds, precision=precision)
    assert np.abs(states[:, 7:] - scene.states[:, 7:]).max() > 0.1, "nothing happened"
    assert np.abs(linear_momentum(scene, states) - before).max() < limit * total


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("make", [free_chain, colliding])
def test_a_step_conserves_angular_momentum(make: type, rounds: int) -> None:
    scene = make()
    with Simulation(
        scene, Params(workers=3, runtime="inline", coupling="tight", precision="float64", rounds=rounds)
    ) as simulation:
        for _ in range(20):
            before = simulation.states
            simulation.step()
            after = simulation.states.copy()
            after[:, :7] = before[:, :7]  # impulses act where bodies are when a step begins
            change = angular_momentum(scene, after) - angular_momentum(scene, before)
            assert np.abs(change).max() < 1e-4 * scene.bodies.mass.sum()


# ---- at rest ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_wall_with_owners_at_random_stands_as_still_as_in_one_engine(precision: str) -> None:
    scene = wall(seed=1)
    energy, depth = {}, {}
    for workers, coupling in ((1, "blend"), (4, "tight")):
        params = Params(
            workers=workers, runtime="inline", coupling=coupling, precision=precision, iterations=50, repartition=0
        )
        with Simulation(scene, params) as simulation:
            simulation.step(150)
            seen = []
            for _ in range(50):
                simulation.step()
                seen.append(motion(scene, simulation.states)[0])
            energy[coupling], depth[coupling] = np.median(seen), simulation.profile.penetration
            assert np.abs(simulation.states[:, :3] - scene.states[:, :3]).max() < 1e-3
    speed = np.sqrt(2 * energy["tight"] / scene.bodies.mass.sum())
    assert speed < max(3e-4, 3 * np.sqrt(2 * energy["blend"] / scene.bodies.mass.sum()))
    assert depth["tight"] < 3 * depth["blend"] + 1e-5


# ---- what a step leaves behind ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["wall", "bridge"])
def test_a_step_that_was_abandoned_leaves_nothing_behind(name: str) -> None:
    """Bullet would add the rows of the next step to those of this one."""
    scene = wall() if name == "wall" else scenes.build("bridge", 106)
    params, ids = Params(coupling="tight", precision="float64").resolved(scene), np.arange(scene.body_count)
    begun, fresh = (make_engine(scene, params) for _ in range(2))
    for engine in (begun, fresh):
        engine.activate(ids, scene.states)
    assert isinstance(begun, RoundEngine)
    assert isinstance(fresh, RoundEngine)
    for _ in range(2):
        begun.begin_step([0, 1])
        begun.sweep(3)
        begun.abandon_step()
        begun.set_states(ids, scene.states)
    told = []
    for engine in (begun, fresh):
        engine.begin_step([])
        told.append(engine.sweep(3))
        engine.finish_step()
    assert Products.from_numbers(told[1]).contact_rows > 0
    assert np.array_equal(told[0], told[1])
    assert np.array_equal(begun.get_states(), fresh.get_states())


def test_workers_of_different_precision_hand_bodies_over() -> None:
    scene = wall()
    params = Params(
        workers=3, runtime="inline", coupling="tight", engine="bullet:float64,1=bullet:float32", validate=True
    )
    with Simulation(scene, params) as simulation:
        for seed in range(3):
            simulation.step(5)
            owner = np.random.default_rng(seed).permutation(np.arange(scene.body_count) % 3)
            simulation.repartition(owner.astype(np.int32))
        simulation.step(5)
        assert np.abs(simulation.states - scene.states)[:, :3].max() < 1e-3


@pytest.mark.slow
def test_shares_are_looked_at_whenever_the_scene_was_divided() -> None:
    scene = scenes.build("chain")
    with Simulation(scene, Params(workers=2, runtime="inline", coupling="tight", iterations=2)) as simulation:
        simulation.step(3)
        simulation.set_worker_count(3)
        looked: list[int] = []
        loads = simulation._now.loads
        ask = loads.are_uneven

        def noted(membership: Any, step_count: int, share: float) -> bool:
            if loads.is_time_to_look(step_count):
                looked.append(step_count)
            return ask(membership, step_count, share)

        loads.are_uneven = noted  # type: ignore[assignment]
        simulation.step(230)
    assert looked == [203, 223]
