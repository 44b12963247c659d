"""Tight coupling of structures that touch something: joints solved at once among contacts that are swept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lapjoint import WORLD, Ball, Box, Material, Params, Plane, Scene, Simulation, Sphere, scenes
from lapjoint.measures import angular_momentum, joint_gaps, linear_momentum
from lapjoint.run import run
from tight_support import simulate, start_from


def mat(rows: int = 3, columns: int = 5) -> Scene:
    """Boxes joined edge to edge that sag onto a few posts, with a load on top. Without friction, for velocities are
    unique then."""
    scene = Scene("mat")
    smooth = Material(friction=0.0)
    scene.add_static(Plane())
    places = [(0.5 * x, 0.5 * y, 0.65) for x in range(columns) for y in range(rows)]
    ids = scene.add_bodies(Box((0.48, 0.48, 0.1)), places, density=500.0, material=smooth)
    for x in range(columns):
        for y in range(rows):
            own = ids[rows * x + y]
            if x + 1 < columns:
                scene.add_joint(Ball(), own, ids[rows * (x + 1) + y], (0.5 * x + 0.25, 0.5 * y, 0.65))
            if y + 1 < rows:
                scene.add_joint(Ball(), own, ids[rows * x + y + 1], (0.5 * x, 0.5 * y + 0.25, 0.65))
    posts = [(0.0, 0.0, 0.3), (2.0, 0.0, 0.3), (0.0, 1.0, 0.3), (2.0, 1.0, 0.3), (1.0, 0.5, 0.3)]
    scene.add_bodies(Box((0.3, 0.3, 0.6)), posts, density=1000.0, material=smooth)
    scene.add_bodies(Box((0.4, 0.4, 0.4)), [(1.0, 0.5, 0.9)], density=2000.0, material=smooth)
    return scene


def pairs(gravity: float = 0.0) -> Scene:
    """Two boxes with a joint each, one of each worker: nobody has a joint that he could tell masses of."""
    scene = Scene("pairs", gravity=(0.0, 0.0, -gravity))
    if gravity:
        scene.add_static(Plane())
    velocities = np.random.default_rng(4).normal(size=(6, 3))
    places = [(0.6 * k, 1.0 * i, 0.4) for i in range(3) for k in range(2)]
    ids = scene.add_bodies(Box((0.5, 0.3, 0.3)), places, mass=1.0, linear_velocities=velocities, labels=[0, 1] * 3)
    for i in range(3):
        scene.add_joint(Ball(), ids[2 * i], ids[2 * i + 1], (0.3, 1.0 * i, 0.4))
    return scene


def velocity_error(states: np.ndarray, exact: np.ndarray, scene: Scene) -> float:
    scale = 9.81 * scene.timestep * np.sqrt(scene.body_count)
    return float(np.linalg.norm(states[:, 7:] - exact[:, 7:]) / scale)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
def test_a_structure_on_supports_converges(workers: int) -> None:
    scene = mat()
    start_from(scene, simulate(scene, 100, rounds=20, iterations=200))
    exact = simulate(scene, 1, rounds=1000, iterations=10000)
    states = simulate(scene, 1, workers=workers, rounds=40, iterations=400)
    assert velocity_error(states, exact, scene) < 1e-8
    plain = simulate(scene, 1, workers=3, rounds=40, iterations=400, acceleration=False)
    assert velocity_error(plain, exact, scene) > 1e-2, "it needs no acceleration"


def test_how_often_bodies_are_answered_is_no_matter() -> None:
    """One sweep between answers of the whole structure, or many: the same end."""
    scene = mat()
    start_from(scene, simulate(scene, 100, rounds=20, iterations=200))
    few, many = (simulate(scene, 1, rounds=200, iterations=200 * sweeps) for sweeps in (1, 10))
    assert velocity_error(few, many, scene) < 1e-9


def test_joints_that_start_from_their_impulses_end_with_the_same() -> None:
    scene = mat()
    cold, warm = (simulate(scene, 10, rounds=40, iterations=400, joint_warm_start=share) for share in (0.0, 0.9))
    assert velocity_error(warm, cold, scene) < 1e-6


def strip(length: int) -> Scene:
    """A cloth four boxes wide, without gravity, every box on its own way; cut lengthwise."""
    scene = Scene("strip", gravity=(0.0, 0.0, 0.0))
    places = np.stack(np.meshgrid(np.arange(length), np.arange(4), [0.0], indexing="ij"), axis=-1).reshape(-1, 3)
    velocities = np.random.default_rng(0).normal(size=places.shape)
    labels = (places[:, 1] >= 2).astype(int)
    scene.add_bodies(Box((0.8, 0.8, 0.2)), places, density=500.0, linear_velocities=velocities, labels=labels)
    ids = np.arange(4 * length).reshape(length, 4)
    for one, other in ((ids[:-1], ids[1:]), (ids[:, :-1], ids[:, 1:])):
        for a, b in zip(one.ravel(), other.ravel(), strict=True):
            scene.add_joint(Ball(), a, b, 0.5 * (places[a] + places[b]))
    return scene


@pytest.mark.slow
@pytest.mark.parametrize(("length", "rounds", "limit"), [(45, 2, 1e-8), (100, 10, 5e-3), (210, 10, 1.5e-2)])
def test_wide_interfaces(length: int, rounds: int, limit: float) -> None:
    """One that the server answers for, one that is too much for it, and one that nobody tells masses of."""
    scene = strip(length)
    one = simulate(scene, 1, rounds=20, iterations=60)
    two = simulate(scene, 1, workers=2, rounds=rounds, iterations=3 * rounds)
    change = one[:, 7:] - scene.states[:, 7:]
    assert np.linalg.norm(two[:, 7:] - one[:, 7:]) < limit * np.linalg.norm(change)


@pytest.mark.parametrize("rounds", [1, 2, 10])
def test_pairs_between_workers_conserve_momentum(rounds: int) -> None:
    scene = pairs()
    states = simulate(scene, 100, workers=2, rounds=rounds, iterations=3 * rounds)
    assert np.abs(states[:, 7:] - scene.states[:, 7:]).max() > 0.1, "nothing happened"
    change = linear_momentum(scene, states) - linear_momentum(scene, scene.states)
    assert np.abs(change).max() < 1e-12


@pytest.mark.slow
def test_pairs_between_workers_fall_as_in_one_engine() -> None:
    scene = pairs(gravity=9.81)
    one = simulate(scene, 150, rounds=60, iterations=600)
    two = simulate(scene, 150, workers=2, rounds=60, iterations=600)
    assert one[:, 2].min() < 0.2, "they have landed"
    assert np.abs(two - one)[:, :3].max() < 1e-3
    assert joint_gaps(scene, two).max() < 1.5 * joint_gaps(scene, one).max()


@pytest.mark.filterwarnings("ignore::lapjoint.PenetrationWarning")
@pytest.mark.parametrize("workers", [1, 2])
def test_pushes_alone_are_no_reason_to_stop(workers: int) -> None:
    """Boxes at rest that overlap are pushed apart: no velocity changes, and still every round has something to do."""
    scene = Scene("overlap", gravity=(0.0, 0.0, 0.0))
    scene.add_bodies(Box((0.5, 0.5, 0.5)), [(0.45 * i, 0.0, 0.0) for i in range(6)], labels=[0, 1] * 3)
    params = Params(workers=workers, runtime="inline", coupling="tight", rounds=8, iterations=16)
    with Simulation(scene, params) as simulation:
        simulation.step()
        assert simulation.profile.rounds == 8
        assert simulation.profile.residual > 0


@pytest.mark.filterwarnings("ignore::lapjoint.PenetrationWarning")
@pytest.mark.parametrize("rounds", [1, 5])
def test_plain_rounds_push_as_the_plain_step_does(rounds: int) -> None:
    scene = Scene("overlap", gravity=(0.0, 0.0, 0.0))
    scene.add_bodies(Box((0.5, 0.5, 0.5)), [(0.45 * i, 0.0, 0.0) for i in range(6)])
    plain = simulate(scene, 10, coupling="blend", iterations=20)
    assert np.array_equal(simulate(scene, 10, iterations=20, rounds=rounds, acceleration=False), plain)


def test_joints_that_are_too_much_work_to_solve_together_are_counted() -> None:
    """A tangle has no good order: its factorization is nearly a full matrix, and its joints are swept."""
    chance, count = np.random.default_rng(1), 500
    places = 20 * chance.random((count, 3))
    tangle = Scene("tangle", iterations=5, gravity=(0.0, 0.0, 0.0))
    tangle.add_bodies(Sphere(0.01), places)
    for order in (chance.permutation(count), chance.permutation(count)):
        for a, b in zip(order.tolist(), np.roll(order, 1).tolist(), strict=True):
            tangle.add_joint(Ball(), a, b, (places[a] + places[b]) / 2)
    found = {}
    for scene in (tangle, scenes.build("bridge", 106)):
        with Simulation(scene, Params(runtime="inline", coupling="tight", rounds=2)) as simulation:
            summary = run(simulation, 2)
            found[scene.name] = simulation.profile.fallback_count, summary.fallback_count_mean
    assert found == {"tangle": (1, 1.0), "bridge": (0, 0.0)}


def sheet(side: int) -> Scene:
    """Boxes joined edge to edge, held at two sides."""
    scene = Scene("sheet", iterations=20, timestep=0.004)
    places = np.array([(0.5 * x, 0.5 * y, 0.0) for x in range(side) for y in range(side)])
    scene.add_bodies(Box((0.4, 0.4, 0.05)), places, density=300.0)
    for body, (x, y, _) in enumerate(places.tolist()):
        if body + side < side**2:
            scene.add_joint(Ball(), body, body + side, (x + 0.25, y, 0.0))
        if (body + 1) % side:
            scene.add_joint(Ball(), body, body + 1, (x, y + 0.25, 0.0))
        if not side <= body < side * (side - 1):
            scene.add_joint(Ball(), body, WORLD, (x - 0.25 if body < side else x + 0.25, y, 0.0))
    return scene


@pytest.mark.slow
@pytest.mark.parametrize(("side", "off"), [(20, 1e-9), (60, 1e-3)])
def test_a_sheet_cut_in_the_middle_moves_as_one_engine_or_nearly_so(side: int, off: float) -> None:
    """Nearly, where the cut is so wide that a worker sends no interface masses (docs/coupling.md)."""
    scene, half = sheet(side), (np.arange(side**2) >= side**2 // 2).astype(int)
    states, gaps = [], []
    for more in ({"workers": 1}, {"workers": 2, "partition": half}):
        params = Params(runtime="inline", coupling="tight", rounds=5, precision="float64", **more)
        with Simulation(scene, params) as simulation:
            simulation.step(3)
            states.append(simulation.states)
            gaps.append(simulation.joint_gaps().max())
    assert np.abs(states[1] - states[0])[:, :3].max() < off
    assert max(gaps) < 1e-5


@pytest.mark.slow
def test_angular_momentum_changes_as_in_one_engine_and_linear_momentum_not_at_all() -> None:
    chance, count = np.random.default_rng(0), 40
    scene = Scene("cloud", gravity=(0.0, 0.0, 0.0), iterations=20, timestep=0.005)
    places = 0.52 * np.stack(np.unravel_index(np.arange(count), (4, 4, 3)), axis=1) + 0.01 * chance.random((count, 3))
    velocities = chance.normal(size=(2, count, 3))
    scene.add_bodies(Box((0.5, 0.4, 0.3)), places, linear_velocities=velocities[0], angular_velocities=velocities[1])
    turned = []
    for params in (Params(), Params(workers=3, coupling="tight")):
        with Simulation(scene, replace(params, runtime="inline", precision="float64")) as simulation:
            before, spin, changes = linear_momentum(scene, scene.states), angular_momentum(scene, scene.states), []
            for _ in range(40):
                simulation.step()
                now = angular_momentum(scene, simulation.states)
                changes.append(np.linalg.norm(now - spin) / np.linalg.norm(spin))
                spin = now
            assert linear_momentum(scene, simulation.states) == pytest.approx(before, rel=1e-11)
            turned.append(max(changes))
    assert turned[1] < 1.5 * turned[0] < 1e-3
