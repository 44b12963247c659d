"""Tight coupling: what workers make of a divided scene, against one engine and against what must be conserved."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from lapjoint import Box, LapjointError, Params, Plane, Scene, Simulation, Substeps, scenes
from lapjoint.measures import angular_momentum, joint_gaps, kinetic_energy, linear_momentum, motion, potential_energy
from tight_support import colliding, free_chain, simulate, start_from, wall


def stack(count: int = 10) -> Scene:
    scene = Scene("stack")
    scene.add_static(Plane())
    scene.add_bodies(Box((0.5, 0.5, 0.5)), [(0.0, 0.0, 0.25 + 0.5 * k) for k in range(count)], density=1000.0)
    return scene


def owners_at_random(scene: Scene, workers: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).permutation(np.arange(scene.body_count) % workers).astype(np.int32)


def test_everything_is_coupled_tightly_unless_blend_is_asked_for() -> None:
    chain, bowl = scenes.build("chain"), scenes.build("bowl", 50)
    for scene in (chain, bowl):
        assert Params(workers=2).resolved(scene).coupling == "tight"
        assert Params(workers=1, max_workers=4).resolved(scene).coupling == "tight"
    others: list[dict[str, Any]] = [{"workers": 1}, {"growth_depth": 2}, {"engine": "rapier"}, {"solver": "dantzig"}]
    others += [{"coupling": "blend"}, {"weights": "computed"}, {"engine": "bullet,1=mujoco"}]
    others += [{"iterations": 20}, {"solver": "sequential"}]
    for other in others:
        assert Params.from_options(**{"workers": 2, **other}).resolved(chain).coupling == "blend", other
    assert Params(workers=2, substeps=Substeps(8)).resolved(chain).coupling == "tight"


def test_one_worker_is_the_plain_engine_bit_for_bit() -> None:
    scene = scenes.build("bridge", 106)
    assert np.array_equal(simulate(scene, 20), simulate(scene, 20, coupling="blend"))


# ---- as right as one worker ------------------------------------------------------------------------------------------


def at_rest(scene: Scene, **params: Any) -> tuple[float, float]:
    """Sum of penetrations [m] and kinetic energy [J], once a scene has come to rest; means over 50 steps."""
    with Simulation(scene, Params.from_options(runtime="inline", **params)) as simulation:
        simulation.step(200)
        depth, energy = [], []
        for _ in range(50):
            simulation.step()
            depth.append(np.maximum(simulation.contacts.pairs().depth, 0).sum())
            energy.append(motion(scene, simulation.states)[0])
        assert np.abs(simulation.states[:, :3] - scene.states[:, :3]).max() < 1e-3
    return float(np.mean(depth)), float(np.median(energy))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "workers", "at_random"), [("wall", 4, True), ("wall", 8, False), ("pyramid", 3, True)]
)
def test_walls_stand_as_in_one_worker(name: str, workers: int, at_random: bool) -> None:
    scene = wall() if name == "wall" else scenes.build("pyramid", 12)
    partition: Any = owners_at_random(scene, workers) if at_random else "metis"
    one = at_rest(scene)
    many = at_rest(scene, workers=workers, coupling="tight", partition=partition, repartition=0.0)
    assert many[0] == pytest.approx(one[0], rel=0.1)
    speed = np.sqrt(2 * many[1] / scene.bodies.mass.sum())
    assert speed < max(3e-4, 3 * np.sqrt(2 * one[1] / scene.bodies.mass.sum()))


@pytest.mark.slow
def test_a_pile_that_falls_together_is_no_deeper_than_in_one_worker() -> None:
    scene = scenes.build("bowl", 300)
    sums = []
    for workers in (1, 4):
        more: dict[str, Any] = {"workers": workers, "coupling": "tight", "validate": True} if workers > 1 else {}
        with Simulation(scene, Params.from_options(runtime="inline", **more)) as simulation:
            simulation.step(150)
            depth = []
            for _ in range(150):
                simulation.step()
                depth.append(np.maximum(simulation.contacts.pairs().depth, 0).sum())
            sums.append(np.mean(depth))
            assert simulation.states[:, 2].min() > -1
    assert max(sums[1:]) < 1.1 * sums[0] + 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(("name", "precision"), [("chain", "float32"), ("bridge", "float64")])
def test_four_workers_move_a_structure_as_one(name: str, precision: str) -> None:
    scene = scenes.build(name)
    one, four = (simulate(scene, 60, workers=workers, precision=precision) for workers in (1, 4))
    assert np.abs(four - one)[:, :3].max() < (1e-7 if precision == "float64" else 1e-4)
    assert joint_gaps(scene, four).sum() < 1.1 * joint_gaps(scene, one).sum() + 2e-6  # rounding, of all


@pytest.mark.slow
def test_structures_in_pieces_of_any_kind_do_not_gain_energy() -> None:
    """With owners at random interfaces are too wide to be solved at once: joints are swept, and hold."""
    scene = scenes.build("two-way-bridge", 106)
    one = simulate(scene, 120, joints="swept")
    states = simulate(scene, 120, workers=5, partition=owners_at_random(scene, 5), repartition=0.0, joints="swept")
    assert kinetic_energy(scene, states) == pytest.approx(kinetic_energy(scene, one), rel=0.05)
    assert joint_gaps(scene, states).sum() < 1.1 * joint_gaps(scene, one).sum()


def test_limits_and_motors_hold_across_interfaces() -> None:
    scene = free_chain(limits=(-0.1, 0.1))
    one, three = simulate(scene, 50), simulate(scene, 50, workers=3)
    assert np.abs(one - scene.states)[:, 7:].max() > 0.1, "nothing happened"
    assert np.allclose(three, one, atol=2e-3)


@pytest.mark.slow
def test_a_bounce_between_workers_is_that_of_one() -> None:
    """A single scene is chaotic: it ends with 10% more or less energy, whatever the number of workers."""
    energy = dict.fromkeys((1, 3), 0.0)
    for seed in range(3, 8):
        scene = colliding(seed=seed)
        scene.bodies.restitution[:] = 0.8
        for workers in energy:
            energy[workers] += kinetic_energy(scene, simulate(scene, 60, workers=workers))
    assert energy[3] == pytest.approx(energy[1], rel=0.05)


# ---- what is conserved -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "joints", "substeps", "precision"),
    [
        (free_chain, "auto", 4, "float64"),
        (free_chain, "swept", 1, "float64"),
        (free_chain, "swept", 4, "float32"),
        (colliding, "auto", 1, "float64"),
        (colliding, "auto", 4, "float32"),
        (colliding, "swept", 1, "float32"),
    ],
)
def test_momentum_of_a_closed_scene_is_conserved(make: type, joints: str, substeps: int, precision: str) -> None:
    """Every two of these go together somewhere."""
    scene, limit = make(), {"float64": 1e-12, "float32": 1e-4}[precision]
    total = scene.bodies.mass.sum() * np.abs(scene.states[:, 7:10]).max()
    before = linear_momentum(scene, scene.states)
    states = simulate(scene, 100, workers=3, precision=precision, substeps=substeps, joints=joints)
    assert np.abs(states[:, 7:] - scene.states[:, 7:]).max() > 0.1, "nothing happened"
    assert np.abs(linear_momentum(scene, states) - before).max() < limit * total


@pytest.mark.parametrize("make", [free_chain, colliding])
def test_angular_momentum_changes_as_in_one_engine(make: type) -> None:
    scene = make()
    start = angular_momentum(scene, scene.states)
    changes = [
        np.linalg.norm(angular_momentum(scene, simulate(scene, 40, workers=workers)) - start) for workers in (1, 3)
    ]
    assert changes[1] < 2 * changes[0] + 1e-3 * np.linalg.norm(start)


# ---- bad starts ------------------------------------------------------------------------------------------------------


@cache
def badly_swept_bridge() -> Scene:
    """It starts with the gaps that a run of too few sweeps has left."""
    scene = scenes.build("two-way-bridge", 200)
    start_from(scene, simulate(scene, 100, joints="swept", substeps=1))
    return scene


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_gaps_at_the_start_are_closed_without_energy(workers: int) -> None:
    """A run that swept badly leaves gaps of millimetres. To close them all at once must not give speed."""
    scene = badly_swept_bridge()
    before, gaps = kinetic_energy(scene, scene.states), joint_gaps(scene, scene.states)
    assert gaps.max() > 1e-3
    after = {steps: simulate(scene, steps, workers=workers) for steps in (1, 5, 20)}
    fallen = scene.bodies.mass.sum() * 9.81 * 0.5 * 9.81 * (0.04 + 20 * scene.timestep) ** 2
    assert max(kinetic_energy(scene, states) for states in after.values()) < before + fallen
    assert joint_gaps(scene, after[20]).sum() < 0.2 * gaps.sum()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 4])
def test_a_dragged_body_brings_no_more_energy_than_the_work_of_the_pull(workers: int) -> None:
    scene = scenes.build("bridge", 106)

    def energy(states: np.ndarray) -> float:
        return kinetic_energy(scene, states) + potential_energy(scene, states)

    body, work = scene.body_count // 2, 0.0
    with Simulation(scene, Params(workers=workers, runtime="inline", precision="float64")) as simulation:
        simulation.step(10)
        before, start = energy(simulation.states), simulation.states[body, :3]
        for _ in range(60):  # to a place 0.3 m above, by a stiff spring
            state = simulation.states[body]
            force = 2e4 * scene.bodies.mass[body] * (start + [0.0, 0.0, 0.3] - state[:3])
            simulation.bodies.add_forces([body], [force])
            simulation.step()
            work += float(force @ (simulation.states[body, :3] - state[:3]))
        assert simulation.states[body, 2] - start[2] > 0.05, "nothing happened"
        assert energy(simulation.states) < before + 1.05 * work
        after = energy(simulation.states)
        simulation.step(60)  # let go
        assert energy(simulation.states) < after + 0.01 * work
        assert simulation.joints.gaps().max() < 1e-3


@pytest.mark.slow
def test_a_body_set_elsewhere_and_let_go_moves_as_in_one_worker() -> None:
    """Joints of 0.3 m are closed without an explosion, whoever has their bodies."""
    scene = scenes.build("bridge", 106)
    body, energies = scene.body_count // 2, []
    for count in (1, 4):
        with Simulation(scene, Params(workers=count, runtime="inline", precision="float64")) as simulation:
            for _ in range(10):
                state = simulation.states[body].copy()
                state[2] += 0.03
                simulation.set_states([body], [state])
                simulation.step()
            energies.append([kinetic_energy(scene, simulation.states)])
            for _ in range(3):
                simulation.step(20)
                energies[-1].append(kinetic_energy(scene, simulation.states))
    assert np.allclose(energies[1], energies[0], rtol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stack", "wall"])
def test_owners_at_random_bring_no_energy_in_the_long_run(name: str) -> None:
    scene = {"stack": stack, "wall": wall}[name]()
    params = Params(
        workers=4, runtime="inline", coupling="tight", partition=owners_at_random(scene, 4), repartition=0.0
    )
    speeds = []
    with Simulation(scene, params) as simulation:
        for steps in (200, 700):
            simulation.step(steps)
            energy = []
            for _ in range(10):
                simulation.step()
                energy.append(kinetic_energy(scene, simulation.states))
            speeds.append(np.sqrt(2 * np.mean(energy) / scene.bodies.mass.sum()))
        assert np.abs(simulation.states[:, :3] - scene.states[:, :3]).max() < 2e-3
    assert speeds[1] < max(1.5 * speeds[0], 1e-4)


# ---- what is refused -------------------------------------------------------------------------------------------------


def test_workers_of_different_precision_are_refused() -> None:
    params = Params(workers=2, runtime="inline", coupling="tight", engine="bullet:float64,1=bullet:float32")
    with pytest.raises(LapjointError, match="coupling is tight and workers have float32 and float64, expected one"):
        Simulation(wall(), params)


@pytest.mark.slow
def test_shares_are_looked_at_whenever_the_scene_was_divided() -> None:
    scene = scenes.build("chain")
    with Simulation(scene, Params(workers=2, runtime="inline", coupling="tight")) as simulation:
        simulation.step(3)
        simulation.workers.set_count(3)
        looked: list[int] = []
        loads = simulation._core.now.loads
        ask = loads.are_uneven

        def noted(membership: Any, share: float) -> bool:
            looked.append(simulation.step_count)
            return ask(membership, share)

        loads.are_uneven = noted  # type: ignore[assignment]
        simulation.step(230)
    assert looked == [203]
