"""Membership: W_b, P_i, O and the loads, for any number of workers; and what validate() finds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapjoint import LapjointError
from lapjoint.algorithms import Membership, native, reference
from lapjoint.algorithms.membership import validate_weights
from parallel_support import WORKER_COUNTS, Case, members, random_cases


@pytest.mark.slow
@given(case=random_cases(), data=st.data())
def test_it_is_a_table_of_sets(case: Case, data: st.DataObject) -> None:
    """Against the plainest model there is: a set of workers for each body."""
    membership = case.membership()
    model = [{worker} for worker in case.partition]
    bodies, workers = st.integers(0, case.body_count - 1), st.integers(0, case.worker_count - 1)
    for body, some, join in data.draw(st.lists(st.tuples(bodies, st.sets(workers, max_size=5), st.booleans()))):
        if join:
            membership.activate(some, body)
            model[body] |= some
        else:
            membership.deactivate(some, body)
            model[body] -= some
    assert [membership.workers(body) for body in range(case.body_count)] == model
    assert membership.worker_counts().tolist() == [len(own) for own in model]
    assert membership.overlap().tolist() == [body for body, own in enumerate(model) if len(own) > 1]
    for worker in {0, case.worker_count // 2, case.worker_count - 1}:
        active = [body for body, own in enumerate(model) if worker in own]
        assert membership.active(worker).tolist() == active
        assert np.flatnonzero(membership.column(worker)).tolist() == active
        assert membership.load[worker] == len(active)
        assert [membership.has(body, worker) for body in range(case.body_count)] == [worker in own for own in model]
    assert membership.load.sum() == sum(map(len, model))
    assert membership.total_load(range(case.worker_count)) == membership.load.sum()
    open_edges = [list(pair) for pair in case.joints if not model[pair[0]] & model[pair[1]]]
    assert membership.uncovered(case.joints).tolist() == open_edges


def test_every_change_of_the_bits_is_counted() -> None:
    """While the count stays, so do the bits: who relies on that looks at no body."""
    line = native.Graph(4, [(0, 1), (1, 2), (2, 3)])

    def both(change: str, *arguments: object) -> list[Callable[[Membership], object]]:
        return [lambda own, module=module: getattr(module, change)(*arguments, own) for module in (native, reference)]

    changes: list[Callable[[Membership], object]] = [
        lambda own: own.activate([1], 0),
        lambda own: own.deactivate([0], 1),
        lambda own: own.assign([1, 1, 0, 0]),
        lambda own: own.add([1]),
        lambda own: own.remove(np.array([2], np.int32)),
        lambda own: own.set_bits(own.bits[::-1].copy()),
        lambda own: own.set_worker_count(70),
        lambda own: own.restore(Membership([1, 1, 1, 0], 2).state()),
        *both("assign_overlap", 0, line),
        *both("balance", [(1, 2)], 0, line),
    ]
    for number, change in enumerate(changes):
        membership = Membership([0, 0, 1, 1], 2)
        before, count = membership.bits.copy(), membership.change_count
        change(membership)
        assert not np.array_equal(membership.bits, before), number
        assert membership.change_count > count, number


@pytest.mark.slow
@given(case=random_cases(), data=st.data())
def test_loads_are_rates_times_sums_of_costs(case: Case, data: st.DataObject) -> None:
    membership = case.membership()
    workers = st.sets(st.integers(0, case.worker_count - 1), max_size=5)
    for body in range(case.body_count):
        membership.activate(data.draw(workers), body)
    # Beyond 2^53: summed in integers, not in floating point.
    costs = st.lists(st.integers(0, 2**57), min_size=case.body_count, max_size=case.body_count)
    cost, rate = data.draw(costs), data.draw(st.integers(1, 2))
    membership.set_costs(np.array(cost, np.int64), rate)
    sums = [
        sum(c for body, c in enumerate(cost) if worker in membership.workers(body))
        for worker in range(case.worker_count)
    ]
    assert membership.counted_costs().dtype == np.int64
    assert membership.counted_costs().tolist() == sums
    assert membership.load.tolist() == [rate * each for each in sums]
    membership.assign(case.partition)
    assert membership.load.tolist() == (membership.rate * membership.counted_costs()).tolist()


@pytest.mark.parametrize("worker_count", WORKER_COUNTS)
def test_it_starts_as_the_partition(worker_count: int) -> None:
    partition = np.arange(300) % worker_count
    membership = Membership(partition, worker_count)
    assert [membership.workers(body) for body in range(300)] == [{worker} for worker in partition.tolist()]
    assert membership.bits.shape == (300, -(-worker_count // 64))
    assert membership.load.tolist() == np.bincount(partition, minlength=worker_count).tolist()
    assert len(membership.overlap()) == 0
    membership.validate(native.Graph(300, []))


def test_a_copy_goes_its_own_way() -> None:
    membership = Membership([0, 1], 2)
    twin = membership.copy()
    twin.activate([1], 0)
    assert membership.workers(0) == {0}
    assert membership.load.tolist() == [1, 1]
    assert twin.load.tolist() == [1, 2]


def test_wrong_partitions() -> None:
    with pytest.raises(LapjointError, match="body 1: partition has worker 2, but workers are 0 to 1"):
        Membership([0, 2], 2)
    with pytest.raises(LapjointError, match="body 0: partition has worker -1"):
        Membership([-1, 2], 2)
    with pytest.raises(LapjointError, match="worker count is 0"):
        Membership([0], 0)


def test_validate_finds_an_uncovered_edge() -> None:
    graph = reference.Graph(4, [(0, 1), (1, 3), (2, 3)])
    members(2, [0], [0, 1], [1], [1]).validate(graph)
    with pytest.raises(AssertionError, match=r"bodies \[1 3\] touch or are jointed, but share no worker"):
        members(2, [0], [0], [1], [1]).validate(graph)


def test_validate_finds_a_homeless_body() -> None:
    membership = Membership([0, 1, 1], 2)
    membership.deactivate([0, 1], 2)
    with pytest.raises(AssertionError, match="body 2 is active in no worker"):
        membership.validate(reference.Graph(3, []))


def test_validate_finds_a_wrong_load() -> None:
    membership = Membership([0, 1, 1], 2)
    membership.load[1] = 1
    with pytest.raises(AssertionError, match=r"loads are \[1 1\], counted \[1 2\]"):
        membership.validate(reference.Graph(3, []))


def test_validate_weights_finds_what_is_not_convex() -> None:
    validate_weights([0], [])
    validate_weights([0, 2, 5], [0.25, 0.75, 1.0, 0.0, 0.0])
    with pytest.raises(AssertionError, match="a weight is negative"):
        validate_weights([0, 2], [1.25, -0.25])
    with pytest.raises(AssertionError, match=r"weights sum to 1\.1"):
        validate_weights([0, 2, 4], [0.5, 0.5, 0.5, 0.6])
