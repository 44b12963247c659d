"""Algorithm 5, the weights of workers, and Algorithm 4, the blend, by hand-made examples; native and readable."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapjoint.algorithms import Membership, native, reference
from lapjoint.algorithms.membership import validate_weights
from lapjoint.algorithms.weights import inverse_distances
from parallel_support import Case, chain_edges, members, pairs_array, random_cases

both = pytest.mark.parametrize("module", [native, reference], ids=["native", "reference"])


# ---- Algorithm 5 -----------------------------------------------------------------------------------------------------


def weights_of(module: ModuleType, graph: object, membership: Membership, body: int, search_depth: int) -> list[float]:
    offset, worker, weight = module.compute_weights(search_depth, graph, membership, [body])
    assert offset.tolist() == [0, len(worker)]
    assert worker.tolist() == sorted(membership.workers(body))
    validate_weights(offset, weight)
    values: list[float] = weight.tolist()
    return values


@both
@pytest.mark.parametrize(
    ("body", "search_depth", "weights"),
    [
        (2, 4, [4 / 5, 1 / 5]),  # one edge from body 1, four from body 6
        (3, 4, [3 / 5, 2 / 5]),
        (4, 4, [2 / 5, 3 / 5]),
        (5, 4, [1 / 5, 4 / 5]),
        (2, 3, [1, 0]),  # worker 1 is not reached
        (2, 1, [1, 0]),
        (3, 2, [1, 0]),
        (3, 1, [1 / 2, 1 / 2]),  # neither is reached
        (2, 0, [1 / 2, 1 / 2]),
    ],
)
def test_weights_along_a_chain(module: ModuleType, body: int, search_depth: int, weights: list[float]) -> None:
    graph, membership = module.Graph(8, chain_edges(8)), Membership([0, 0, 0, 0, 1, 1, 1, 1], 2)
    module.assign_overlap(1, graph, membership)
    assert membership.overlap().tolist() == [2, 3, 4, 5]
    assert weights_of(module, graph, membership, body, search_depth) == pytest.approx(weights, abs=1e-15)


@both
def test_weights_of_bodies_beside_each_other_fade(module: ModuleType) -> None:
    # Figure 8, left column: from one worker to the other, influence falls evenly.
    graph, membership = module.Graph(30, chain_edges(30)), Membership([0] * 15 + [1] * 15, 2)
    module.assign_overlap(5, graph, membership)
    overlap = membership.overlap()
    _, _, weight = module.compute_weights(12, graph, membership, overlap)
    first = weight.reshape(-1, 2)[:, 0]
    assert len(first) == 12
    assert (np.diff(first) < 0).all()
    assert first == pytest.approx(1 - first[::-1])


@both
def test_only_bodies_of_one_of_its_workers_count(module: ModuleType) -> None:
    # Body 0 is in workers 0 and 1. Its neighbours: 1 in worker 2 alone, 2 in both of its own; behind them 3 and 4.
    graph = module.Graph(5, [(0, 1), (0, 2), (2, 3), (3, 4)])
    membership = members(3, [0, 1], [2], [0, 1], [1], [0])
    assert weights_of(module, graph, membership, 0, 4) == pytest.approx([(1 / 3) / (1 / 3 + 1 / 2), 0.6])
    assert weights_of(module, graph, membership, 0, 1) == [0.5, 0.5]


@both
def test_the_nearest_body_of_a_worker_counts(module: ModuleType) -> None:
    graph = module.Graph(6, [(0, 1), (0, 2), (0, 3), (3, 4), (1, 5)])
    membership = members(2, [0, 1], [0], [0], [0, 1], [1], [1])
    assert weights_of(module, graph, membership, 0, 4) == pytest.approx([2 / 3, 1 / 3])


# ---- Algorithm 4 -----------------------------------------------------------------------------------------------------


def blended(module: ModuleType, weights: list[float], rows: np.ndarray) -> np.ndarray:
    states = np.full((3, 13), np.nan)
    module.blend([0, len(weights)], weights, rows, [1], states)
    assert np.isnan(states[[0, 2]]).all()
    return states[1]


def turned(angle: float) -> list[float]:
    """A rotation about z."""
    return [np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)]


@both
def test_blend_is_a_weighted_mean(module: ModuleType) -> None:
    rows = np.zeros((2, 13))
    rows[:, :3], rows[:, 7:10], rows[:, 10:] = [[1, 2, 3], [5, 6, 7]], [[0, 0, 1], [4, 0, 1]], [[8, 0, 0], [0, 8, 0]]
    rows[:, 3:7] = turned(0.2), turned(0.3)
    result = blended(module, [0.75, 0.25], rows)
    assert result[:3] == pytest.approx([2, 3, 4])
    assert result[7:10] == pytest.approx([1, 0, 1])
    assert result[10:] == pytest.approx([6, 2, 0])
    mean = 0.75 * np.array(turned(0.2)) + 0.25 * np.array(turned(0.3))
    assert result[3:7] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-15)
    assert np.linalg.norm(result[3:7]) == pytest.approx(1.0, abs=1e-15)
    assert result[3:7] == pytest.approx(turned(0.225), abs=1e-5)


@both
def test_q_and_minus_q_are_one_rotation(module: ModuleType) -> None:
    rows = np.zeros((3, 13))
    rows[:, 3:7] = turned(0.2), np.negative(turned(0.2)), np.negative(turned(0.2))
    assert blended(module, [0.2, 0.3, 0.5], rows)[3:7] == pytest.approx(turned(0.2), abs=1e-15)


@both
def test_signs_are_compared_with_the_first(module: ModuleType) -> None:
    # In quaternion space 0, 80 and 100 degrees: the last is on the far side of the first, but neither of the second
    # nor of the sum so far.
    first, second, last = (np.array(turned(np.radians(2 * angle))) for angle in (0, 80, 100))
    rows = np.zeros((3, 13))
    rows[:, 3:7] = first, second, last
    mean = 0.1 * first + 0.8 * second - 0.1 * last
    assert blended(module, [0.1, 0.8, 0.1], rows)[3:7] == pytest.approx(mean / np.linalg.norm(mean))


@both
def test_a_weight_of_one_takes_that_state(module: ModuleType) -> None:
    rows = np.random.default_rng(0).normal(size=(2, 13))
    rows[:, 3:7] = turned(0.4), turned(0.5)
    assert blended(module, [0.0, 1.0], rows) == pytest.approx(rows[1], abs=1e-15)


@pytest.mark.slow
@given(random_cases(most_bodies=16), st.integers(0, 3), st.sampled_from([1, 2, 16]))
def test_depth_is_algorithm_5_between_two_workers_within_reach(
    case: Case, growth_depth: int, search_depth: int
) -> None:
    """A worker that has no body of its own within reach gets nothing by Algorithm 5, and something by depth."""
    graph = native.Graph(case.body_count, pairs_array(case.joints))
    membership = Membership([worker % 2 for worker in case.partition], 2)
    native.assign_overlap(growth_depth, graph, membership)
    overlap = membership.overlap()
    offset, _, computed = native.compute_weights(search_depth, graph, membership, overlap)
    _, _, by_depth = native.depth_weights(search_depth, graph, membership, overlap)
    for k, body in enumerate(overlap.tolist()):
        rows = slice(offset[k], offset[k + 1])
        reached = inverse_distances(body, search_depth, graph, membership)
        if all(reached.values()):
            assert by_depth[rows] == pytest.approx(computed[rows], abs=1e-15)
        else:
            assert (by_depth[rows] > 0).all()
