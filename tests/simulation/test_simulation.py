"""The server: one worker is the plain engine, many workers give the same bits wherever they live, and what users do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine_support import gaps_of
from lapjoint import Ball, Blend, LapjointError, Params, Scene, Sequential, Simulation, Sphere, make_engine, scenes
from lapjoint.errors import SimulationStopped
from lapjoint.server.profile import PHASES
from parallel_support import children

# Of the ray runtime, for which each of these would start a cluster, test_ray.py says that its bits are the same.
every_runtime = pytest.mark.parametrize("runtime", ["inline", pytest.param("process", marks=pytest.mark.slow)])

# Scene, about how many bodies, workers, growth depth. Steps of 5 ms, so that things meet within a hundred of them.
SCENES = [("chain", None, 4, 2), ("bowl", 120, 3, 0), ("building", 148, 4, 0), ("plank", None, 2, 1)]
TIMESTEP, STEPS = 0.005, 100


def final_hash(scene: Scene, steps: int = STEPS, **params: Any) -> str:
    with Simulation(scene, Params.from_options(timestep=TIMESTEP, validate=True, **params)) as simulation:
        simulation.step(steps)
        return simulation.state_hash


def row_of_balls(count: int = 4, *, gap: float = 1.0, **options: Any) -> Scene:
    """Balls beside each other in the air, without gravity; they touch nothing if there is a gap."""
    scene = Scene("balls", gravity=(0, 0, 0), iterations=20, **options)
    scene.add_bodies(Sphere(0.5), np.arange(count)[:, None] * [1.0 + gap, 0.0, 0.0], labels=np.arange(count))
    return scene


# ---- bit for bit -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runtime", "name", "size"),
    [("inline", "chain", None), ("inline", "bridge", 106), ("inline", "building", 148), ("process", "bowl", 120)],
)
def test_one_worker_is_the_plain_engine(runtime: str, name: str, size: int | None) -> None:
    scene = scenes.build(name, size)
    params = Params(timestep=TIMESTEP, runtime=runtime)
    engine = make_engine(scene, params)
    engine.activate(np.arange(scene.body_count), scene.states)
    with Simulation(scene, params) as simulation:
        for _ in range(4):
            engine.step(25)
            simulation.step(25)
            assert np.array_equal(simulation.states, engine.get_states())
            assert simulation.contacts.pairs().bodies.tolist() == engine.contacts().bodies.tolist()
        assert np.array_equal(simulation.joints.gaps(), gaps_of(engine)[1])
        assert simulation.profile.residual == engine.report().residual


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size", "workers", "growth_depth", "precision"),
    [("chain", None, 4, 2, "float64"), ("building", 148, 3, 0, "float32")],
)
def test_the_same_bits_in_every_runtime(
    name: str, size: int | None, workers: int, growth_depth: int, precision: str
) -> None:
    """And every time, and in other scenes: test_determinism.py."""
    scene = scenes.build(name, size)
    options = {"workers": workers, "growth_depth": growth_depth, "precision": precision}
    hashes = [final_hash(scene, runtime=runtime, **options) for runtime in ("inline", "process")]
    assert len(set(hashes)) == 1
    one = final_hash(scene, runtime="inline", workers=1, precision=precision)
    assert one != hashes[0], "workers that meet leave a trace"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size", "workers", "growth_depth"), SCENES)
def test_the_readable_algorithms_give_the_same_bits(
    name: str, size: int | None, workers: int, growth_depth: int
) -> None:
    balance = "printed" if name in ("bowl", "plank") else "pruned"
    scene = scenes.build(name, size)
    options = {"workers": workers, "growth_depth": growth_depth, "balance": balance, "runtime": "inline"}
    assert final_hash(scene, algorithms="reference", **options) == final_hash(scene, algorithms="native", **options)


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["blend", "tight"])
def test_hundreds_of_workers(coupling: str) -> None:
    """With contacts everywhere: balls packed so that every one touches its neighbours."""
    workers, count = {"blend": (256, 300), "tight": (130, 150)}[coupling]  # to wait for each other takes the time
    places = np.stack(np.unravel_index(np.arange(count), (6, 7, 8)), axis=1) * 0.39
    packed = Scene("packed", iterations=10)
    packed.add_bodies(Sphere(0.2), places)
    params = Params(workers=workers, runtime="inline", coupling=coupling, validate=True)
    with Simulation(packed, params) as simulation:
        simulation.step(3)
        assert (simulation.workers.membership.load >= 1).all()
        assert simulation.workers.weights().sum(axis=1) == pytest.approx(np.ones(count), rel=1e-12)
        assert len(simulation.workers.overlap if coupling == "blend" else simulation.workers.interface) > 100
        assert simulation.profile.contact_count > 2 * count
        assert np.isfinite(simulation.states).all()


# ---- forces ----------------------------------------------------------------------------------------------------------


@every_runtime
def test_a_push_reaches_an_overlap_body_once(runtime: str) -> None:
    scene = row_of_balls()
    mass = scene.bodies.mass[1]
    with Simulation(
        scene, Params(workers=3, runtime=runtime, blend=Blend(balance="printed"), validate=True)
    ) as simulation:
        simulation.workers.membership.activate([0, 1, 2], 1)  # nothing touches it, so that it stays where we put it
        simulation.step()
        assert simulation.workers.overlap.tolist() == [1]
        push, twist = np.array([3.0, 0.0, 4.0]), np.array([0.0, 5.0, 0.0])
        simulation.bodies.add_forces([1, 3], push, twist)
        simulation.bodies.add_forces(1, push)  # on top
        simulation.step()
        speed = push * simulation.timestep / mass
        spin = twist * simulation.timestep / scene.bodies.inertia[1, 1, 1]
        assert simulation.states[1, 7:10] == pytest.approx(2 * speed, rel=1e-5)
        assert simulation.states[3, 7:10] == pytest.approx(speed, rel=1e-5)
        assert simulation.states[1, 10:] == pytest.approx(spin, rel=1e-5)
        simulation.step(3)  # for one step only
        assert simulation.states[1, 7:10] == pytest.approx(2 * speed, rel=1e-5)


@pytest.mark.parametrize("growth_depth", [0, 1])
def test_pushes_on_a_whole_chain_add_up(growth_depth: int) -> None:
    scene = row_of_balls(12, gap=0.1, growth_depth=growth_depth)
    scene.add_joints(Ball(), np.arange(11), np.arange(1, 12), np.arange(11)[:, None] * [1.1, 0, 0] + [0.55, 0, 0])
    mass = scene.bodies.mass
    push = np.array([1.0, 2.0, 3.0])
    params = Params(workers=3, runtime="inline", coupling="blend", validate=True, precision="float64")
    with Simulation(scene, params) as simulation:
        for _ in range(20):
            simulation.bodies.add_forces(np.arange(12), mass[:, None] * push)
            simulation.step()
        assert len(simulation.workers.overlap) > 0
        momentum = (mass[:, None] * simulation.states[:, 7:10]).sum(axis=0)
        assert momentum == pytest.approx(mass.sum() * push * simulation.time, rel=1e-9)


def test_wrong_forces() -> None:
    with Simulation(row_of_balls(), Params(workers=2, runtime="inline")) as simulation:
        with pytest.raises(LapjointError, match="body 4 does not exist, the scene has 4 bodies"):
            simulation.bodies.add_forces(4, [1, 0, 0])
        with pytest.raises(LapjointError, match="body 2: force is"):
            simulation.bodies.add_forces([0, 2], [[0, 0, 0], [0, np.nan, 0]])
        simulation.step()
        assert np.array_equal(simulation.states, row_of_balls().states), "a refused push leaves nothing behind"


@every_runtime
def test_iterations_change_with_the_next_step(runtime: str) -> None:
    scene = row_of_balls(12, gap=0.1)
    scene.add_joints(Ball(), np.arange(11), np.arange(1, 12), np.arange(11)[:, None] * [1.1, 0, 0] + [0.55, 0, 0])
    hashes = []
    for first in (40, 1):
        with Simulation(
            scene, Params(workers=2, runtime=runtime, sequential=Sequential(iterations=first))
        ) as simulation:
            if first != 40:
                simulation.workers.set_iterations(40)
            simulation.bodies.add_forces(0, [0.0, 50.0, 0.0])
            simulation.step(3)
            assert simulation.params.sequential.iterations == 40
            hashes.append(simulation.state_hash)
            with pytest.raises(LapjointError, match="iterations is 0"):
                simulation.workers.set_iterations(0)
    assert hashes[0] == hashes[1]


# ---- what a user reads -----------------------------------------------------------------------------------------------


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with Simulation(scenes.build("plank"), Params(workers=2, runtime="inline", timestep=TIMESTEP)) as simulation:
        yield simulation


def test_time_frames_and_callbacks(simulation: Simulation) -> None:
    seen: list[int] = []
    simulation.on_step(lambda given: seen.append(given.step_count))
    frames = list(simulation.frames(steps=7, every=3))
    assert [frame.step_count for frame in frames] == [3, 6]
    assert [frame.time for frame in frames] == pytest.approx([0.015, 0.03])
    assert simulation.step_count == 7
    assert simulation.time == pytest.approx(0.035)
    assert seen == [1, 2, 3, 4, 5, 6, 7]
    before = frames[0].states.copy()
    simulation.step()
    assert np.array_equal(frames[0].states, before), "a frame keeps its states"
    for steps, every in ((-1, 1), (1, 0)):
        with pytest.raises(LapjointError, match="expected 0 or more and 1 or more"):
            next(simulation.frames(steps, every))


def test_states_are_a_copy(simulation: Simulation) -> None:
    states = simulation.states
    assert np.array_equal(states, simulation.scene.states)
    with pytest.raises(ValueError, match="read-only"):
        states[:] = 0  # would be lost: set_states is the way
    simulation.step()
    assert np.array_equal(states, simulation.scene.states)


def test_weights_are_a_table(simulation: Simulation) -> None:
    simulation.step(STEPS)
    weights = simulation.workers.weights()
    assert weights.shape == (81, 2)
    assert weights.sum(axis=1) == pytest.approx(np.ones(81))
    assert (weights[simulation.workers.membership.worker_counts() == 1].max(axis=1) == 1).all()


@every_runtime
def test_a_closed_simulation(runtime: str) -> None:
    simulation = Simulation(row_of_balls(), Params(workers=2, runtime=runtime))
    with simulation as entered:
        assert entered is simulation
        simulation.step()
    assert children() == []
    simulation.close()
    for use in (simulation.step, lambda: simulation.states, lambda: simulation.state_hash, simulation.joints.gaps):
        with pytest.raises(LapjointError, match="the simulation is closed"):
            use()
    with pytest.raises(LapjointError, match="the simulation is closed"):
        next(simulation.frames(1))


@every_runtime
def test_an_exception_closes_what_with_opened(runtime: str) -> None:
    def mistake() -> None:
        with Simulation(row_of_balls(), Params(workers=2, runtime=runtime)) as simulation:
            simulation.step()
            raise RuntimeError("my mistake")

    with pytest.raises(RuntimeError, match="my mistake"):
        mistake()
    assert children() == []


@every_runtime
def test_a_worker_that_fails_is_named(runtime: str) -> None:
    scene = row_of_balls()
    with Simulation(scene, Params(workers=4, runtime=runtime)) as simulation:
        simulation.step()
        for _ in range(3):
            simulation.bodies.add_forces(2, [1e30, 0.0, 0.0])
        with pytest.raises(
            SimulationStopped, match=r"worker 2 failed 2 times in this step; bodies concerned: body 2\n"
        ):
            simulation.step(50)
        with pytest.raises(SimulationStopped, match="body 2: not finite after the step"):
            simulation.step()
    assert children() == []


# ---- the profile -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["blend", "tight"])
@every_runtime
def test_profile(runtime: str, coupling: str) -> None:
    scene = scenes.build("building", 148)
    active, unused = 0, set(PHASES)
    with Simulation(scene, Params(workers=3, runtime=runtime, coupling=coupling, timestep=TIMESTEP)) as simulation:
        for _ in range(90):
            simulation.step()
            profile = simulation.profile
            unused -= {name for name, ms in profile.phases_ms.items() if ms > 0}
            active += profile.activation_count - profile.deactivation_count
            assert profile.worker_body_count.sum() == active, "what came and went adds up to who is there"
            active_now = [len(simulation.workers.membership.active(w)) for w in range(3)]
            assert profile.worker_body_count.tolist() == active_now
            assert profile.overlap_count == len(simulation.workers.overlap)
            assert profile.worker_body_count.sum() >= scene.body_count + profile.overlap_count
            assert profile.uncovered_count == 0
        assert tuple(profile.phases_ms) == PHASES
        none = {"tight": {"weigh", "blend"}, "blend": set()}[coupling]
        assert unused == none
        assert profile.step_ms == pytest.approx(sum(profile.phases_ms.values()))
        assert (profile.overlap_count > 0) == (coupling == "blend")
        assert (profile.interface_count > 0) == (profile.exchanges > 0) == (coupling == "tight")
        assert (profile.worker_cpu_ms > 0).all()
        # Workers that share two touching bodies both have the contact; each contact has at least one worker. Theirs are
        # those that the step began with: the others came within it.
        assert profile.contact_point_count >= profile.contact_count > 100
        assert profile.worker_contact_count.sum() > 0.75 * profile.contact_count
        contacts = simulation.contacts.pairs()
        assert np.array_equal(contacts.bodies, np.unique(contacts.bodies, axis=0)), "ascending, each once"
        # A contact of a worker takes 20 bytes of its reply, its five measures 40.
        least = 20 * profile.worker_contact_count.sum() + 16 * 3 + 13 * 8 * profile.overlap_count
        assert (profile.exchange_bytes > 0) == (coupling == "tight")
        assert least < profile.byte_count - profile.exchange_bytes < 3 * least
        assert profile.penetration == simulation.contacts.pairs().penetration
        assert profile.residual > 0


def test_as_printed_uncovered_constraints_are_counted() -> None:
    """Algorithm 6 as the paper prints it cuts a chain of two workers where its two middle links touch."""
    x = np.array([0.0, 1.2, 2.4, 3.39, 4.59, 5.79])
    scene = Scene("chain", gravity=(0, 0, 0))
    scene.add_bodies(Sphere(0.5), x[:, None] * [1.0, 0.0, 0.0], labels=np.arange(6))
    scene.add_joints(Ball(), np.arange(5), np.arange(1, 6), ((x[1:] + x[:-1]) / 2)[:, None] * [1, 0, 0], collide=True)
    counts = {}
    for balance in ("printed", "pruned"):
        with Simulation(
            scene, Params(workers=2, runtime="inline", coupling="blend", blend=Blend(balance=balance))
        ) as simulation:
            simulation.step()
            counts[balance] = simulation.profile.uncovered_count
            assert counts[balance] == len(simulation.workers.membership.uncovered(simulation.workers.graph.edges))
    assert counts == {"printed": 1, "pruned": 0}
