"""Rows of tables: as numpy has them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapjoint.arrays.rows import copy_rows, find_not_finite


@given(rows=st.lists(st.integers(0, 19), unique=True), wrong=st.sets(st.integers(0, 20 * 13 - 1), max_size=4))
def test_they_are_copied_and_looked_at_where_they_lie(rows: list[int], wrong: set[int]) -> None:
    rng = np.random.default_rng(len(rows))
    source = rng.normal(size=(20, 13))
    source.flat[rng.integers(0, source.size)] = np.finfo(float).max  # which is finite
    for place, value in zip(sorted(wrong), (np.nan, np.inf, -np.inf, -np.nan), strict=False):
        source.flat[place] = value
    found, expected = (np.full((20, 13), 7.0) for _ in range(2))
    copy_rows(source, found, np.array(rows, np.int32))
    expected[rows] = source[rows]
    assert found.tobytes() == expected.tobytes()
    assert find_not_finite(source, rows).tolist() == [row for row in rows if not np.isfinite(source[row]).all()]


@pytest.mark.parametrize("row", [-1, 3])
def test_rows_that_do_not_exist(row: int) -> None:
    table = np.zeros((3, 13))
    with pytest.raises(IndexError, match=f"rows are from 0 to 3|rows are from {row} to 0"):
        copy_rows(table, table.copy(), [0, row])
    with pytest.raises(IndexError, match="the table has 3"):
        find_not_finite(table, [row])
