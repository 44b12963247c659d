"""The native algorithms do what their readable twins do, on random graphs, memberships and numbers of workers."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from lapjoint import _algorithms
from lapjoint.algorithms import Balance, Membership, native, reference
from lapjoint.algorithms.membership import validate_weights
from parallel_support import WORKER_COUNTS, Case, pairs_array, random_cases, random_pairs, same_membership

growth_depths = st.integers(0, 3)
search_depths = st.integers(0, 6)
many = settings(max_examples=50)


def overlapping(case: Case, growth_depth: int) -> tuple[native.Graph, Membership]:
    """A membership with some overlap to start from."""
    graph, membership = native.Graph(case.body_count, case.joints), case.membership()
    native.assign_overlap(growth_depth, graph, membership)
    return graph, membership


@pytest.mark.slow
@many
@given(random_cases(), st.randoms(use_true_random=False))
def test_graph(case: Case, random: Random) -> None:
    bodies = range(case.body_count)
    lists = [
        [(a, -1 if random.random() < 0.2 else b) for a in bodies for b in bodies if a != b and random.random() < 0.2]
        for _ in range(3)
    ]
    contacts = [np.array(pairs, np.int32).reshape(-1, 2) for pairs in lists]
    built, twin = (module.Graph(case.body_count, case.joints, contacts) for module in (native, reference))
    for name in ("start", "neighbor", "edges", "contacts"):
        array, expected = getattr(built, name), getattr(twin, name)
        assert array.dtype == expected.dtype
        assert array.shape == expected.shape
        assert np.array_equal(array, expected), name
    touching = {(min(pair), max(pair)) for pairs in lists for pair in pairs if pair[1] >= 0}
    assert {tuple(edge) for edge in built.contacts.tolist()} == touching
    joined = {(min(pair), max(pair)) for pair in case.joints}
    assert {tuple(edge) for edge in built.edges.tolist()} == touching | joined


@many
@given(random_cases(), growth_depths)
def test_assign_overlap(case: Case, growth_depth: int) -> None:
    graph, membership = overlapping(case, growth_depth)
    expected = case.membership()
    reference.assign_overlap(growth_depth, reference.Graph(case.body_count, case.joints), expected)
    assert same_membership(membership, expected)
    membership.validate(graph)


@pytest.mark.slow
@pytest.mark.parametrize("mode", Balance)
@settings(max_examples=40)
@given(data=st.data(), case=random_cases(), growth_depth=growth_depths)
def test_balance(data: st.DataObject, case: Case, growth_depth: int, mode: Balance) -> None:
    _, membership = overlapping(case, growth_depth)
    expected = membership.copy()
    jointed = data.draw(st.none() | st.lists(st.booleans(), min_size=case.body_count, max_size=case.body_count))
    linger = data.draw(st.integers(0, 2))
    if data.draw(st.booleans()):
        costs = st.lists(st.integers(1, 9), min_size=case.body_count, max_size=case.body_count)
        rates = st.lists(st.integers(1, 9), min_size=case.worker_count, max_size=case.worker_count)
        drawn = data.draw(costs), data.draw(rates)
        for each in (membership, expected):
            each.set_costs(*drawn)
    for _ in range(3):
        contacts = pairs_array(data.draw(random_pairs(case.body_count)))
        edges = np.concatenate([pairs_array(case.joints), contacts])
        for module, changed in ((native, membership), (reference, expected)):
            graph = module.Graph(case.body_count, edges)
            before = changed.copy()
            left = module.balance(contacts, growth_depth, graph, changed, mode, jointed, linger)
            assert left.tolist() == np.flatnonzero((before.bits & ~changed.bits).any(axis=1)).tolist()
        assert same_membership(membership, expected)
        assert membership.must_wait.tolist() == expected.must_wait.tolist()
        assert membership.since_left.tolist() == expected.since_left.tolist()
        assert np.array_equal(membership.load, membership.rate * membership.counted_costs())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["compute_weights", "depth_weights"])
@many
@given(case=random_cases(), growth_depth=growth_depths, search_depth=search_depths)
def test_weights_to_the_last_bit(name: str, case: Case, growth_depth: int, search_depth: int) -> None:
    graph, membership = overlapping(case, growth_depth)
    overlap = membership.overlap()
    found, expected = (
        getattr(module, name)(search_depth, graph, membership, overlap) for module in (native, reference)
    )
    for array, twin in zip(found, expected, strict=True):
        assert array.dtype == twin.dtype
        assert np.array_equal(array, twin)
    validate_weights(found[0], found[2])


@pytest.mark.slow
@pytest.mark.parametrize("length", range(1, 12))
@pytest.mark.parametrize("worker_count", [3, 6, 7, 10, 100])
def test_compute_weights_of_a_star_to_the_last_bit(worker_count: int, length: int) -> None:
    # One body in all workers, and an arm to each worker's own. Ten tenths are 1 or nearly 1, as one adds them.
    arms = np.arange(worker_count)
    arm_length = 1 + (arms * (length - 1)) // max(worker_count - 1, 1) if length % 2 else np.full(worker_count, length)
    edges, partition, everywhere = [], [0], [0]
    for arm in arms:
        last = 0
        for place in range(arm_length[arm]):
            body = len(partition)
            partition.append(arm)
            edges.append((last, body))
            if place < arm_length[arm] - 1:
                everywhere.append(body)
            last = body
    graph, membership = native.Graph(len(partition), edges), Membership(partition, worker_count)
    for body in everywhere:
        membership.activate(range(worker_count), body)
    found = native.compute_weights(12, graph, membership, [0])
    expected = reference.compute_weights(12, graph, membership, [0])
    assert found[2].tolist() == expected[2].tolist()
    inverse = 1 / arm_length
    assert np.allclose(found[2], inverse / inverse.sum(), rtol=1e-14)


@pytest.mark.slow
@many
@given(random_cases(), growth_depths, st.integers(0, 2**32 - 1))
def test_blend_within_rounding(case: Case, growth_depth: int, seed: int) -> None:
    graph, membership = overlapping(case, growth_depth)
    overlap = membership.overlap()
    offset, _, weight = native.compute_weights(4, graph, membership, overlap)
    worker_states = np.random.default_rng(seed).normal(size=(offset[-1] + 2, 13))
    found, expected = (np.full((case.body_count, 13), 7.0) for _ in range(2))
    native.blend(offset, weight, worker_states, overlap, found)
    reference.blend(offset, weight, worker_states, overlap, expected)
    # A quaternion is a sum divided by its own length: rounding grows where weights let it nearly vanish.
    assert np.allclose(found, expected, rtol=0, atol=1e-11)
    others = np.setdiff1d(np.arange(case.body_count), overlap)
    assert (found[others] == 7.0).all()


@pytest.mark.slow
@many
@given(case=random_cases(), growth_depth=growth_depths, data=st.data())
def test_command_lists(case: Case, growth_depth: int, data: st.DataObject) -> None:
    graph, membership = overlapping(case, growth_depth)
    known = case.membership()
    for body in data.draw(st.lists(st.integers(0, case.body_count - 1), max_size=5)):
        known.activate([data.draw(st.integers(0, case.worker_count - 1))], body)
        known.deactivate([data.draw(st.integers(0, case.worker_count - 1))], body)
    overlap = membership.overlap()
    _, worker, _ = native.compute_weights(2, graph, membership, overlap)
    found, expected = (module.command_lists(membership, known.bits, overlap, worker) for module in (native, reference))
    for name in expected._fields:
        lists, twins = getattr(found, name), getattr(expected, name)
        assert [own.dtype for own in lists] == [own.dtype for own in twins]
        assert [own.tolist() for own in lists] == [own.tolist() for own in twins], name
    for w in range(case.worker_count):
        has, had = set(membership.active(w).tolist()), set(known.active(w).tolist())
        assert expected.activate[w].tolist() == sorted(has - had)
        assert expected.deactivate[w].tolist() == sorted(had - has)
        assert set(expected.reset[w].tolist()) == has & had & set(overlap.tolist())
        assert (worker[expected.slots[w]] == w).all()


@pytest.mark.slow
@pytest.mark.parametrize("worker_count", WORKER_COUNTS)
def test_a_larger_scene_in_motion(worker_count: int) -> None:
    """Hundreds of bodies, joints, contacts that come and go, all three modes, all algorithms after one another."""
    rng, body_count = np.random.default_rng(worker_count), 200
    places = rng.uniform(size=(body_count, 2))
    joints = np.stack([np.arange(0, 100, 2), np.arange(1, 101, 2)], axis=1).astype(np.int32)
    jointed = np.arange(body_count) <= joints.max()
    order = np.argsort(places[:, 0])
    partition = np.empty(body_count, int)
    partition[order] = np.arange(body_count) * worker_count // body_count
    memberships = [Membership(partition, worker_count) for _ in range(2)]
    for module, membership in zip((native, reference), memberships, strict=True):
        module.assign_overlap(1, module.Graph(body_count, joints), membership)
    for step, mode in enumerate([Balance.PRUNED, Balance.GUARDED, Balance.PRINTED]):
        places += rng.normal(scale=0.02, size=places.shape)
        contacts = cKDTree(places).query_pairs(0.06, output_type="ndarray").astype(np.int32)
        edges = np.concatenate([joints, contacts])
        results = []
        for module, membership in zip((native, reference), memberships, strict=True):
            graph = module.Graph(body_count, edges)
            module.balance(contacts, step % 2, graph, membership, mode, jointed)
            overlap = membership.overlap()
            results.append(module.compute_weights(3, graph, membership, overlap))
            results[-1] += module.depth_weights(3, graph, membership, overlap)
        assert same_membership(*memberships)
        assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.parametrize("module", [native, reference], ids=["native", "reference"])
def test_plain_lists_and_names_of_modes_will_do(module: object) -> None:
    graph = module.Graph(3, [(0, 1), (1, 2)])  # type: ignore[attr-defined]
    results = []
    for contacts, mode in (([(0, 1), (1, 2)], "pruned"), (np.array([[0, 1], [1, 2]], np.int64), Balance.PRUNED)):
        membership = Membership([0, 1, 1], 2)
        membership.activate([0, 1], 1)
        module.balance(contacts, 0, graph, membership, mode)  # type: ignore[attr-defined]
        results.append(membership)
    assert same_membership(*results)
    assert [results[0].workers(body) for body in range(3)] == [{0}, {0, 1}, {1}]
    with pytest.raises(ValueError, match="no-such-mode"):
        module.balance([(0, 1)], 0, graph, results[0], "no-such-mode")  # type: ignore[attr-defined]


def test_results_are_never_written_into_a_copy() -> None:
    # A wrong type is an error: silently converted, the caller's array would stay as it was.
    graph, membership = native.Graph(2, [(0, 1)]), Membership([0, 1], 2)
    with pytest.raises(TypeError):
        _algorithms.assign_overlap(0, graph.start, graph.neighbor, membership.bits.astype(np.int64), membership.load)
    with pytest.raises(TypeError):
        _algorithms.assign_overlap(0, graph.start, graph.neighbor, membership.bits, membership.load.astype(np.int32))
    states = np.zeros((2, 13), np.float32)
    with pytest.raises(TypeError):
        native.blend([0, 1], [1.0], np.ones((1, 13)), [0], states)  # type: ignore[arg-type]
