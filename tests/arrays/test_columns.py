"""Tables that grow keep what was put into them, in one piece or in many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapjoint.arrays.columns import Columns

LAYOUT = {"place": ((3,), float), "number": ((), np.int32)}


@given(st.lists(st.integers(0, 40), max_size=12))
def test_rows_stay_as_they_were_appended(counts: list[int]) -> None:
    table = Columns(LAYOUT)
    total = sum(counts)
    places, numbers = np.arange(3.0 * total).reshape(-1, 3), np.arange(total) * 7
    start = 0
    for count in counts:
        end = start + count
        assert table.append(count, {"place": places[start:end], "number": numbers[start:end]}) == range(start, end)
        start = end
    assert len(table) == total
    assert list(table) == ["place", "number"]
    np.testing.assert_array_equal(table.place, places)
    np.testing.assert_array_equal(table.number, numbers)
    assert table.number.dtype == np.int32


def test_one_value_fills_all_rows() -> None:
    table = Columns(LAYOUT)
    table.append(3, {"place": (1.0, 2.0, 3.0), "number": 4})
    np.testing.assert_array_equal(table.place, [(1.0, 2.0, 3.0)] * 3)
    assert table.number.tolist() == [4, 4, 4]


def test_a_column_is_a_view_and_a_copy_is_a_copy() -> None:
    table = Columns(LAYOUT)
    table.append(2, {"place": 0.0, "number": [1, 2]})
    copy = table.to_arrays()
    table.number[0] = 9
    assert table.number.tolist() == [9, 2]
    assert copy["number"].tolist() == [1, 2]


def test_what_does_not_fit_adds_no_row() -> None:
    table = Columns(LAYOUT)
    table.append(1, {"place": (1.0, 2.0, 3.0), "number": 4})
    with pytest.raises(ValueError):
        table.append(20, {"place": np.zeros((20, 3)), "number": np.zeros(7)})
    with pytest.raises(KeyError):
        table.append(1, {"place": (0.0, 0.0, 0.0)})
    assert len(table) == 1
    assert table.place.tolist() == [[1.0, 2.0, 3.0]]


def test_a_missing_column_is_a_missing_attribute() -> None:
    with pytest.raises(AttributeError, match="colour"):
        _ = Columns(LAYOUT).colour


def test_adopted_columns_are_not_copied_and_grow_elsewhere() -> None:
    given = np.arange(6.0).reshape(2, 3)
    columns = Columns({"place": ((3,), float), "number": ((), np.int32)})
    columns.adopt({"place": given, "number": np.array([4, 5])})
    assert np.shares_memory(columns.place, given)
    assert columns.number.tolist() == [4, 5]
    columns.append(1, {"place": 7.0, "number": 6})
    assert columns.place[2].tolist() == [7.0] * 3
    assert given.shape == (2, 3)
    with pytest.raises(KeyError, match="place"):
        columns.adopt({"place": given[:, :2], "number": np.array([4, 5])})
