"""Groups and masks say exactly what a relation says, whatever it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapjoint.files.groups import Groups, assign_groups


def touching(filters: Groups) -> np.ndarray:
    """What the filters let touch, pairs to be ignored taken out."""
    group, mask = filters.group, filters.mask
    found = (group[:, None] & mask[None, :] != 0) & (mask[:, None] & group[None, :] != 0)
    found[filters.ignored[:, 0], filters.ignored[:, 1]] = False
    found[filters.ignored[:, 1], filters.ignored[:, 0]] = False
    return found


def of_types(contype: np.ndarray, conaffinity: np.ndarray) -> np.ndarray:
    one = (contype[:, None] & conaffinity[None, :]) != 0
    return one | one.T


@given(data=st.data(), count=st.integers(0, 40), bits=st.sampled_from([1, 2, 3, 32]))
def test_any_relation(data: st.DataObject, count: int, bits: int) -> None:
    seed = data.draw(st.integers(0, 2**32 - 1))
    density = data.draw(st.sampled_from([0.0, 0.05, 0.5, 0.95, 1.0]))
    table = np.random.default_rng(seed).random((count, count)) < density
    relation = np.triu(table) | np.triu(table).T
    filters = assign_groups(relation, bits=bits)
    np.testing.assert_array_equal(touching(filters), relation)
    assert int(np.bitwise_or.reduce(filters.group, initial=0)) < 2**bits


@given(data=st.data(), width=st.integers(1, 32))
def test_contype_and_conaffinity(data: st.DataObject, width: int) -> None:
    numbers = st.lists(st.integers(0, 2**width - 1), min_size=1, max_size=60)
    contype = np.array(data.draw(numbers), np.uint32)
    drawn = data.draw(st.lists(st.integers(0, 2**width - 1), min_size=len(contype), max_size=len(contype)))
    relation = of_types(contype, np.array(drawn, np.uint32))
    filters = assign_groups(relation)
    np.testing.assert_array_equal(touching(filters), relation)


def test_equal_rows_share_a_bit_and_need_no_ignored_pairs() -> None:
    relation = np.kron(np.eye(32, dtype=bool), np.ones((5, 5), bool))  # 160 labels in 32 islands
    filters = assign_groups(relation)
    assert len(filters.ignored) == 0
    assert len(np.unique(filters.group)) == 32


def test_beyond_the_bits_the_smallest_are_ignored_pairwise() -> None:
    relation = np.eye(34, dtype=bool)  # each touches its own kind alone
    counts = np.full(34, 100)
    counts[[3, 8, 20]] = 1
    filters = assign_groups(relation, counts)
    assert sorted(map(tuple, filters.ignored.tolist())) == [(3, 8), (3, 20), (8, 20)]


@pytest.mark.slow
@settings(max_examples=10)
@given(st.integers(33, 120))
def test_more_classes_than_bits(count: int) -> None:
    filters = assign_groups(np.eye(count, dtype=bool))
    np.testing.assert_array_equal(touching(filters), np.eye(count, dtype=bool))


def test_nothing_at_all() -> None:
    filters = assign_groups(np.zeros((3, 3), bool))
    assert filters.group.tolist() == filters.mask.tolist() == [0, 0, 0]
    assert assign_groups(np.zeros((0, 0), bool)).ignored.shape == (0, 2)


@pytest.mark.parametrize("bits", [1, 32])
def test_one_class(bits: int) -> None:
    filters = assign_groups(np.ones((4, 4), bool), bits=bits)
    assert (filters.group == 1).all()
    assert (filters.mask == 1).all()
