"""Detection where the knowledge is: the grid equals its twin, and nothing that touches is left without a worker."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapjoint import (
    Box,
    Capsule,
    Compound,
    ConvexHull,
    Cylinder,
    Params,
    Part,
    Scene,
    Sequential,
    Simulation,
    Sphere,
    Units,
    make_engine,
    scenes,
)
from lapjoint.algorithms import Membership, native, reference
from lapjoint.arrays import rotation
from lapjoint.scene.shapes import bounding_box
from lapjoint.server.detect import ServerDetector

SHAPES = (
    Sphere(0.3),
    Box((0.5, 0.4, 0.3)),
    Capsule(0.1, 0.5),
    Cylinder(0.2, 0.5),
    ConvexHull(np.random.default_rng(5).random((12, 3)) * 0.6),
    Compound((Part(Sphere(0.2)), Part(Box((0.6, 0.1, 0.1)), (0.3, 0.1, 0.0)))),
    Box((6.0, 0.3, 0.1)),  # a plank, much larger than the rest
)


def random_scene(seed: int, count: int, spread: float) -> Scene:
    """Bodies of all shapes, thrown together at random; some pairs are ignored, some in other groups."""
    random = np.random.default_rng(seed)
    scene = Scene("random")
    for k in range(count):
        turn = random.normal(size=4)
        scene.add_body(
            SHAPES[random.integers(len(SHAPES))],
            random.normal(size=3) * spread,
            turn / np.linalg.norm(turn),
            group=1 << (k % 3 == 0),
            mask=0xFFFFFFFF if k % 5 else 1,
        )
    first, second = random.integers(0, count, (2, 4))
    distinct = first != second
    scene.ignore(first[distinct], second[distinct])
    return scene


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(2, 40),
    workers=st.sampled_from([2, 3, 70]),
    spread=st.floats(0.1, 4.0),
)
def test_grid_equals_its_twin(seed: int, count: int, workers: int, spread: float) -> None:
    scene = random_scene(seed, count, spread)
    random = np.random.default_rng(seed + 1)
    membership = Membership(random.integers(0, workers, count), workers)
    for body in random.integers(0, count, 5):
        membership.activate([int(random.integers(workers))], int(body))
    finders = [module.PairFinder(scene, 0.02) for module in (native, reference)]
    found, expected = (finder.find(scene.states, membership) for finder in finders)
    np.testing.assert_array_equal(found, expected)
    changed = random.integers(0, count, 5).astype(np.int32)
    for body in set(changed.tolist()):
        membership.activate([0], body)
        membership.deactivate(membership.workers(body) - {0}, body)
    again, twin = (finder.find_again(changed, membership) for finder in finders)
    np.testing.assert_array_equal(again, twin)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(2, 30), workers=st.sampled_from([2, 3, 70]))
def test_grid_equals_its_twin_where_bodies_are_fast(seed: int, count: int, workers: int) -> None:
    scene, timestep = random_scene(seed, count, 3.0), 0.01
    random = np.random.default_rng(seed + 1)
    membership, states = Membership(random.integers(0, workers, count), workers), scene.states.copy()
    finders = [module.PairFinder(scene, 0.02, timestep) for module in (native, reference)]
    for _ in range(6):
        states[:, 7:] = random.normal(size=(count, 6)) * random.choice([0.1, 10.0, 200.0], size=(count, 1))
        found, expected = (finder.find(states, membership) for finder in finders)
        np.testing.assert_array_equal(found, expected)
        if len(found):  # what has the same workers is seen, and what meets nobody's else too
            fast = finders[0].have_fast(found, states)
            rows = membership.bits[found]
            assert (fast | ~(rows[:, 0] & rows[:, 1]).any(axis=1)).all()
            assert not (rows[:, 0] == rows[:, 1]).all(axis=1)[fast].any()
        membership.activate([int(random.integers(workers))], int(random.integers(count)))
        states[:, :3] += timestep * states[:, 7:10]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(2, 30),
    workers=st.sampled_from([2, 70]),
    pace=st.sampled_from([0.0, 0.003, 0.05, 1.0]),
)
def test_grid_equals_its_twin_while_bodies_move_and_change_workers(
    seed: int, count: int, workers: int, pace: float
) -> None:
    scene = random_scene(seed, count, 1.0)
    random = np.random.default_rng(seed + 1)
    membership, states = Membership(random.integers(0, workers, count), workers), scene.states.copy()
    finders = [module.PairFinder(scene, 0.02) for module in (native, reference)]
    for _ in range(12):
        found, expected = (finder.find(states, membership) for finder in finders)
        np.testing.assert_array_equal(found, expected)
        changed = random.integers(0, count, 3).astype(np.int32)
        for body in set(changed.tolist()):
            membership.activate([int(random.integers(workers))], body)
            membership.deactivate(sorted(membership.workers(body))[1:], body)
        again, twin = (finder.find_again(changed, membership) for finder in finders)
        np.testing.assert_array_equal(again, twin)
        if random.random() < 0.5:
            finders[0].prepare(membership)
        some = random.random(count) < 0.5
        states[some, :3] += pace * random.normal(size=(some.sum(), 3))
        states[some, 3:7] += pace * random.normal(size=(some.sum(), 4))
        states[:, 3:7] *= random.choice([-1.0, 1.0]) / np.linalg.norm(states[:, 3:7], axis=1, keepdims=True)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), pace=st.sampled_from([0.002, 0.02, 0.2]))
def test_pairs_known_to_be_apart_come_back_before_they_can_touch(seed: int, pace: float) -> None:
    """The engine's clearances spare the finder most pairs, and it misses none that touches."""
    scene = random_scene(seed, 24, 0.9)
    random = np.random.default_rng(seed + 1)
    membership, states = Membership(random.integers(0, 3, 24), 3), scene.states.copy()
    sparing, full = (native.PairFinder(scene, 0.02) for _ in range(2))
    engine = make_engine(scene, Params(units=Units(length=1.0)))
    for _ in range(20):
        every, fewer = full.find(states, membership), sparing.find(states, membership)
        clearances = engine.clearances(fewer, states)
        sparing.keep_apart(clearances)
        touching = every[engine.clearances(every, states) == 0]
        np.testing.assert_array_equal(fewer[clearances == 0], touching)
        states[:, :3] += pace * random.normal(size=(24, 3))
        states[:, 3:7] += pace * random.normal(size=(24, 4))
        states[:, 3:7] /= np.linalg.norm(states[:, 3:7], axis=1, keepdims=True)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_a_bounding_box_holds_the_shape(shape: object) -> None:
    """The engine finds a contact with a small ball just outside the box nowhere, and just inside a face somewhere."""
    center, half = bounding_box(shape)  # type: ignore[arg-type]
    scene = Scene("box")
    scene.add_body(shape)  # type: ignore[arg-type]
    scene.add_body(Sphere(0.01))
    engine = make_engine(scene, Params(precision="float64"))
    states = scene.states.copy()
    random = np.random.default_rng(3)
    outside = center + random.uniform(-1, 1, (200, 3)) * (half + 0.2)
    outside = outside[(np.abs(outside - center) > half + 0.05).any(axis=1)]
    assert len(outside) > 20
    for place in outside:
        states[1, :3] = place
        assert engine.clearances([[0, 1]], states)[0] > 0


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_clearance_of_zero_is_what_a_step_finds(precision: str) -> None:
    scene = random_scene(11, 60, 0.8)
    scene_free = Scene("all pairs may touch")
    for b in range(scene.body_count):
        shape = scene.shapes[scene.bodies.shape_id[b]]
        scene_free.add_body(shape, scene.bodies.position[b], scene.bodies.quaternion[b])  # type: ignore[arg-type]
    engine = make_engine(scene_free, Params(precision=precision))
    pairs = np.array([(a, b) for a in range(60) for b in range(a + 1, 60)], np.int32)
    touch = pairs[engine.clearances(pairs, scene_free.states) == 0]
    engine.activate(np.arange(60), scene_free.states)
    engine.contacts(now=True)
    assert len(touch) > 20
    np.testing.assert_array_equal(touch, engine.contacts().bodies)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size", "workers"), [("bowl", 300, 4), ("building", 250, 4), ("plank", None, 2), ("bridge", 80, 2)]
)
def test_no_contact_is_without_a_worker(name: str, size: int | None, workers: int) -> None:
    """Before every step, a detector that sees everything finds every touching pair in some worker."""
    scene = scenes.build(name, size)
    params = Params(workers=workers, runtime="inline", coupling="blend", sequential=Sequential(iterations=10))
    with Simulation(scene, params) as simulation:
        whole = ServerDetector(scene, simulation.params)
        take_step = simulation._step_workers

        def checked_step(steps: int) -> object:
            contacts = whole.contacts(simulation.states)
            touching = contacts.bodies[contacts.between_bodies & (contacts.depth > 0)]
            assert len(simulation.workers.membership.uncovered(touching)) == 0
            return take_step(steps)

        simulation._step_workers = checked_step  # type: ignore[method-assign, assignment]
        simulation.step(250)
        assert simulation.profile.contact_count > 0


@pytest.mark.slow
def test_both_ways_find_the_same_contacts_between_workers() -> None:
    scene = scenes.build("bowl", 400)
    with Simulation(scene, Params(workers=4, runtime="inline", sequential=Sequential(iterations=10))) as simulation:
        whole = ServerDetector(scene, simulation.params)
        count = 0
        for _ in range(200):
            simulation.step()
            states, membership = simulation.states, simulation.workers.membership
            contacts = whole.contacts(states)
            touching = contacts.bodies[contacts.between_bodies & (contacts.depth > 0)]
            expected = {tuple(pair) for pair in membership.uncovered(touching).tolist()}
            (found,) = simulation._core.now.detection.detector.find(states, membership, [])
            assert expected <= {tuple(pair) for pair in found.tolist()}
            assert len(found) <= len(membership.uncovered(contacts.bodies[contacts.between_bodies])) + len(expected)
            count += len(expected)
        assert count > 10


def test_depth_weights_equal_algorithm_5_between_two_workers() -> None:
    chain = [(k, k + 1) for k in range(19)]
    for module in (native, reference):
        graph, membership = module.Graph(20, chain), Membership([0] * 10 + [1] * 10, 2)
        module.assign_overlap(3, graph, membership)
        overlap = membership.overlap()
        assert len(overlap) == 8
        by_depth = module.depth_weights(20, graph, membership, overlap)
        for found, expected in zip(by_depth, module.compute_weights(20, graph, membership, overlap), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_depth_weights_speak_for_a_worker_without_bodies_of_its_own() -> None:
    """The overlap swallows worker 1: Algorithm 5 silences it in the middle of its own bodies."""
    chain = [(k, k + 1) for k in range(11)]
    graph, membership = native.Graph(12, chain), Membership([0] * 4 + [1] * 4 + [2] * 4, 3)
    native.assign_overlap(2, graph, membership)
    assert not any(membership.workers(body) == {1} for body in range(12))
    middle = [5]
    _, worker, weight = native.compute_weights(12, graph, membership, middle)
    assert weight[worker.tolist().index(1)] == 0
    _, worker, weight = native.depth_weights(12, graph, membership, middle)
    assert weight[worker.tolist().index(1)] == weight.max()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), workers=st.sampled_from([2, 3, 5, 70]), depth=st.integers(0, 6))
def test_depth_weights_equal_their_twin(seed: int, workers: int, depth: int) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(2, 40))
    edges = random.integers(0, count, (2 * count, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    membership = Membership(random.integers(0, workers, count), workers)
    graph = native.Graph(count, edges)
    native.assign_overlap(int(random.integers(3)), graph, membership)
    overlap = membership.overlap()
    found = native.depth_weights(depth, graph, membership, overlap)
    expected = reference.depth_weights(depth, graph, membership, overlap)
    for ours, twin in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, twin)


def test_rotation_is_used_for_boxes() -> None:
    """A turned plank reaches where its box reaches, not farther."""
    scene = Scene("turned")
    turn = rotation.from_axis_angle([0, 0, 1], np.pi / 4)
    scene.add_body(Box((4.0, 0.2, 0.2)), (0, 0, 0), turn)
    scene.add_body(Sphere(0.1), (1.2, 1.2, 0.0))
    scene.add_body(Sphere(0.1), (1.7, 1.7, 0.0))
    membership = Membership([0, 1, 1], 2)
    assert native.PairFinder(scene, 0.01).find(scene.states, membership).tolist() == [[0, 1]]
