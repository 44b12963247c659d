"""Which bodies migrate: owners come to rest, and loads stay even."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapjoint.algorithms.ownership import SLACK, choose_migrations


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(2, 12), st.integers(2, 12))
def test_owners_come_to_rest(seed: int, workers: int, rows: int, columns: int) -> None:
    """On a grid of bodies that touch, of any owners. All that gain nothing once went to and fro together."""
    chance = np.random.default_rng(seed)
    ids = np.arange(rows * columns).reshape(rows, columns)
    across, down = (
        np.stack([a.ravel(), b.ravel()], axis=1) for a, b in ((ids[:, 1:], ids[:, :-1]), (ids[1:], ids[:-1]))
    )
    edges = np.concatenate([across, down]).astype(np.int32)
    owner = chance.integers(0, workers, ids.size).astype(np.int32)
    cost = chance.integers(50, 100, ids.size)
    moves = []
    for call in range(200):
        load = np.bincount(owner, cost, workers).astype(np.int64)
        bodies, to = choose_migrations(owner, edges, cost, load, upward=call % 2 == 0)
        assert len(np.unique(bodies)) == len(bodies)
        assert (owner[bodies] != to).all()
        owner[bodies] = to
        after = np.bincount(owner, cost, workers)
        gained = after > load
        assert (after[gained] <= np.maximum(SLACK * load.mean(), load[gained]) + 1e-9).all()
        moves.append(len(bodies))
    assert moves[-20:] == [0] * 20
