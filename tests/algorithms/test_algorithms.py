"""Algorithms 2, 3, 6 and 7 by the paper's Figures 4 and 9, native and readable."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapjoint import LapjointError
from lapjoint.algorithms import KINDS, Balance, Membership, load_algorithms, native, reference
from lapjoint.algorithms.balance import is_bridge
from parallel_support import Case, chain_edges, grid_edges, members, pairs_array, random_cases, same_membership

both = pytest.mark.parametrize("module", [native, reference], ids=["native", "reference"])
UNGUARDED_TOO = pytest.mark.parametrize("mode", [Balance.PRINTED, Balance.GUARDED])


def workers_of(membership: Membership) -> list[set[int]]:
    return [membership.workers(body) for body in range(membership.body_count)]


# ---- Figure 4: Algorithms 2 and 3 ----------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(("growth_depth", "columns"), [(0, {3, 4}), (1, {2, 3, 4, 5}), (2, {1, 2, 3, 4, 5, 6})])
def test_figure_4(module: ModuleType, growth_depth: int, columns: set[int]) -> None:
    rows, width = 3, 8
    column = np.arange(rows * width) % width
    graph = module.Graph(rows * width, grid_edges(rows, width))
    membership = Membership(column >= 4, 2)  # (a): left and right half
    module.assign_overlap(growth_depth, graph, membership)  # (b), (c), (d)
    assert set(column[membership.overlap()].tolist()) == columns
    assert len(membership.overlap()) == rows * len(columns)
    assert (membership.load == rows * (4 + len(columns) // 2)).all()
    membership.validate(graph)


@both
def test_growth_follows_the_graph_and_not_the_numbers(module: ModuleType) -> None:
    # A tree: the interface edge is 0 - 1; 2 and 3 hang on 0, 4 hangs on 3; 5 is alone.
    graph = module.Graph(6, [(0, 1), (0, 2), (0, 3), (3, 4)])
    for growth_depth, overlap in ((0, [0, 1]), (1, [0, 1, 2, 3]), (2, [0, 1, 2, 3, 4]), (9, [0, 1, 2, 3, 4])):
        membership = Membership([0, 1, 0, 0, 0, 0], 2)
        module.assign_overlap(growth_depth, graph, membership)
        assert membership.overlap().tolist() == overlap


@both
@pytest.mark.parametrize("growth_depth", [0, 1, 2])
def test_three_partitions_that_meet_are_covered(module: ModuleType, growth_depth: int) -> None:
    for edges, partition in (
        (pairs_array([(0, 1), (1, 2), (0, 2)]), [0, 1, 2]),
        (grid_edges(4, 4), [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2]),
        (chain_edges(3), [0, 1, 2]),
    ):
        graph, membership = module.Graph(len(partition), edges), Membership(partition, 3)
        module.assign_overlap(growth_depth, graph, membership)
        membership.validate(graph)
        assert len(membership.uncovered(edges)) == 0


@pytest.mark.slow
@both
@given(case=random_cases(), growth_depth=st.integers(0, 2), data=st.data())
def test_the_order_of_edges_and_bodies_does_not_matter(
    module: ModuleType, case: Case, growth_depth: int, data: st.DataObject
) -> None:
    membership = case.membership()
    module.assign_overlap(growth_depth, module.Graph(case.body_count, case.joints), membership)
    shuffled = case.membership()
    turned = [pair[::-1] for pair in data.draw(st.permutations(case.joints))]
    module.assign_overlap(growth_depth, module.Graph(case.body_count, turned), shuffled)
    assert same_membership(membership, shuffled)
    # The same bodies under other numbers: body b is now number[b].
    number = np.array(data.draw(st.permutations(range(case.body_count))))
    partition = np.empty(case.body_count, int)
    partition[number] = case.partition
    renamed = Membership(partition, case.worker_count)
    edges = [(number[a], number[b]) for a, b in case.joints]
    module.assign_overlap(growth_depth, module.Graph(case.body_count, edges), renamed)
    assert np.array_equal(renamed.bits[number], membership.bits)


# ---- Figure 9: Algorithms 6 and 7 ------------------------------------------------------------------------------------


@both
@UNGUARDED_TOO
def test_figure_9_i(module: ModuleType, mode: Balance) -> None:
    """Two bodies of different workers touch: one joins the worker with the smaller load, and stays where it was."""
    contact = pairs_array([(0, 1)])
    for others, expected in (([1], [{0}, {0, 1}]), ([0], [{0, 1}, {1}]), ([], [{0}, {0, 1}])):  # the last: a tie
        membership = members(2, [0], [1], *[others] * bool(others))
        graph = module.Graph(membership.body_count, contact)
        module.balance(contact, 0, graph, membership, mode)
        assert workers_of(membership)[:2] == expected
        membership.validate(graph)


@both
@UNGUARDED_TOO
@pytest.mark.parametrize("growth_depth", [0, 1, 2])
def test_figure_9_ii(module: ModuleType, mode: Balance, growth_depth: int) -> None:
    """The same, but B touches C, and C holds D: the overlap grows from B by the growth depth."""
    a, b = 0, 1
    graph = module.Graph(4, [(0, 1), (1, 2), (2, 3)])
    membership = members(2, [0], [1], [1], [1])
    module.balance(pairs_array([(a, b)]), growth_depth, graph, membership, mode)
    assert (
        workers_of(membership)
        == {
            0: [{0}, {0, 1}, {1}, {1}],
            1: [{0, 1}, {0, 1}, {0, 1}, {1}],
            2: [{0, 1}, {0, 1}, {0, 1}, {0, 1}],
        }[growth_depth]
    )
    membership.validate(graph)


@both
@UNGUARDED_TOO
def test_figure_9_iii(module: ModuleType, mode: Balance) -> None:
    """An overlap body touches one body of one worker and nothing else: it leaves the other workers."""
    for contact in ([(0, 1)], [(1, 0)]):  # lines 16 and 18
        graph, membership = module.Graph(2, contact), members(3, [0], [0, 1, 2])
        assert not is_bridge(1, graph, membership)
        module.balance(contact, 0, graph, membership, mode)
        assert workers_of(membership) == [{0}, {0}]
        membership.validate(graph)


@both
@UNGUARDED_TOO
def test_figure_9_iv(module: ModuleType, mode: Balance) -> None:
    """An overlap body between bodies of different workers is a bridge body: it stays in both."""
    contacts = pairs_array([(0, 1), (1, 2)])
    graph, membership = module.Graph(3, contacts), members(2, [0], [0, 1], [1])
    assert is_bridge(1, graph, membership)
    module.balance(contacts, 0, graph, membership, mode)
    assert workers_of(membership) == [{0}, {0, 1}, {1}]
    membership.validate(graph)


@both
@UNGUARDED_TOO
def test_figure_9_v(module: ModuleType, mode: Balance) -> None:
    """Two overlap bodies touch: both leave all workers but the one with the smallest load."""
    contact = pairs_array([(0, 1)])
    for other, left in ((0, 1), (1, 0), (2, 0)):  # the last: a tie of workers 0 and 1
        membership = members(3, [0, 1], [0, 1], [other])
        graph = module.Graph(3, contact)
        module.balance(contact, 0, graph, membership, mode)
        assert workers_of(membership) == [{left}, {left}, {other}]
        membership.validate(graph)


@both
def test_figure_9_v_is_kept_where_it_would_uncover(module: ModuleType) -> None:
    # As in (v), but B also holds C, which is in the worker that both would leave.
    edges, contact = [(0, 1), (1, 2)], pairs_array([(0, 1)])
    graph = module.Graph(3, edges)
    printed, guarded, pruned = (members(2, [0, 1], [0, 1], [1]) for _ in range(3))
    module.balance(contact, 0, graph, printed, Balance.PRINTED)
    assert printed.uncovered(graph.edges).tolist() == [[1, 2]]
    module.balance(contact, 0, graph, guarded, Balance.GUARDED)
    assert workers_of(guarded) == [{0}, {0, 1}, {1}]  # A may leave, B is kept
    guarded.validate(graph)
    module.balance(contact, 0, graph, pruned, Balance.PRUNED)
    pruned.validate(graph)


@both
@pytest.mark.parametrize("growth_depth", [0, 1, 2])
def test_the_guard_keeps_the_overlap_wide(module: ModuleType, growth_depth: int) -> None:
    # Figure 3, where the two middle links touch too: (v) of Figure 9 would cut the chain.
    graph, contact = module.Graph(12, chain_edges(12)), pairs_array([(5, 6)])
    grown = Membership([0] * 6 + [1] * 6, 2)
    module.assign_overlap(growth_depth, graph, grown)
    assert len(grown.overlap()) == 2 + 2 * growth_depth
    for jointed, width in ((None, 1 + 2 * growth_depth), (np.ones(12, bool), 2 + 2 * growth_depth)):
        guarded, pruned = grown.copy(), grown.copy()
        for _ in range(3):
            module.balance(contact, growth_depth, graph, guarded, Balance.GUARDED, jointed)
            module.balance(contact, growth_depth, graph, pruned, Balance.PRUNED, jointed)
            assert len(guarded.overlap()) >= len(pruned.overlap()) == width
            guarded.validate(graph)
            pruned.validate(graph)
    module.balance(contact, growth_depth, graph, grown, Balance.PRINTED)
    assert len(grown.overlap()) < 1 + 2 * growth_depth


@both
def test_pruning_takes_bodies_out_of_workers_they_do_not_need(module: ModuleType) -> None:
    graph = module.Graph(4, [(0, 1)])
    membership = members(3, [0, 1, 2], [1], [0, 2], [2])
    module.balance(pairs_array([]), 0, graph, membership, Balance.PRUNED)
    # Body 0 needs worker 1 for its neighbour. Body 2 has none: it leaves the more loaded of its workers.
    assert workers_of(membership) == [{1}, {1}, {0}, {2}]


@both
def test_a_body_that_joins_a_worker_stays_in_its_own_for_a_step(module: ModuleType) -> None:
    # What it touches in its old worker may not be known yet; a step later it is.
    graph, contact = module.Graph(3, [(0, 1)]), pairs_array([(0, 1)])
    membership = members(2, [0], [1], [1])
    module.balance(contact, 0, graph, membership, Balance.PRUNED)
    assert workers_of(membership) == [{0}, {0, 1}, {1}]
    module.balance(contact, 0, graph, membership, Balance.PRUNED)
    assert workers_of(membership) == [{0}, {0}, {1}]


def test_bridge_bodies() -> None:
    graph = reference.Graph(4, [(0, 1), (0, 2)])
    assert not is_bridge(0, graph, members(2, [0, 1], [0], [0], [1]))  # 3 is no neighbour
    assert is_bridge(0, graph, members(2, [0, 1], [0], [1], [1]))
    assert is_bridge(0, graph, members(2, [0, 1], [0], [0, 1], [1]))  # a neighbour with two workers is enough
    assert not is_bridge(3, graph, members(2, [0, 1], [0], [1], [1]))  # nothing near


def test_algorithms_by_name() -> None:
    assert [load_algorithms(kind) for kind in KINDS] == [native, reference]
    with pytest.raises(LapjointError, match="'fast', expected one of native, reference"):
        load_algorithms("fast")


@pytest.mark.parametrize("module", [native, reference])
def test_pruning_never_empties_a_worker_into_another(module: ModuleType) -> None:
    """Where the growth depth covers everything, all could follow the first body out of one worker."""
    graph, membership = module.Graph(12, chain_edges(12)), Membership([0] * 6 + [1] * 6, 2)
    module.assign_overlap(6, graph, membership)
    for _ in range(5):
        module.balance([], 6, graph, membership, Balance.PRUNED, np.ones(12, bool))
    assert membership.load.min() > 4


@pytest.mark.parametrize("module", [native, reference])
@pytest.mark.parametrize("edge", [(0, 3), (-1, 0), (1, 1)])
def test_edges_of_bodies_that_do_not_exist_are_refused(module: ModuleType, edge: tuple[int, int]) -> None:
    with pytest.raises(LapjointError, match="3 bodies"):
        module.Graph(3, [(0, 1), edge])
