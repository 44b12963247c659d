"""Joints solved directly: the sparse factorization against dense matrices, on random structures."""

from __future__ import annotations

import importlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lapjoint.algorithms.joints_together import BLOCK, joint_matrix, schur_complement, solve_joints

native = importlib.import_module("lapjoint._algorithms")


def structure(rng: np.random.Generator, bodies: int) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
    """Masses and rows of joints between random pairs of bodies, loops and redundant rows included; and the pairs."""
    mass = np.diag(rng.uniform(0.5, 20.0, BLOCK * bodies))
    rows, pairs = [], set()
    for _ in range(int(rng.integers(1, 3 * bodies))):
        a, b = sorted(rng.choice(bodies, 2, replace=False).tolist())
        pairs.add((a, b))
        for _ in range(int(rng.integers(1, 6))):
            row = np.zeros(BLOCK * bodies)
            row[BLOCK * a : BLOCK * (a + 1)], row[BLOCK * b : BLOCK * (b + 1)] = rng.normal(size=(2, BLOCK))
            rows.append(row)
    return mass, np.array(rows), sorted(pairs)


@given(st.integers(0, 2**32 - 1), st.integers(2, 12))
def test_the_sparse_factorization_is_the_dense_one(seed: int, bodies: int) -> None:
    rng = np.random.default_rng(seed)
    mass, rows, pairs = structure(rng, bodies)
    matrix = joint_matrix(mass, rows, rng.uniform(1.0, 1e3, len(rows)))
    kept = rng.integers(0, 2, bodies)
    values, side = rng.normal(size=BLOCK * bodies), BLOCK * int(kept.sum())
    solved, left = values.copy(), np.zeros((side, side))
    assert native.solve_blocks(kept.tolist(), pairs, matrix, solved, left)
    assert np.allclose(solved, np.linalg.solve(matrix, values), rtol=1e-7, atol=1e-9)
    assert np.allclose(
        left, schur_complement(matrix, np.flatnonzero(kept)), rtol=1e-7, atol=1e-7 * np.abs(matrix).max()
    )


@given(st.integers(0, 2**32 - 1), st.integers(2, 8))
def test_the_schur_complement_answers_for_the_whole_structure(seed: int, bodies: int) -> None:
    """An impulse on the kept bodies moves them as if all the others were solved with them."""
    rng = np.random.default_rng(seed)
    mass, rows, _ = structure(rng, bodies)
    matrix = joint_matrix(mass, rows, np.full(len(rows), 100.0))
    kept = np.flatnonzero(rng.integers(0, 2, bodies))
    chosen = np.isin(np.arange(bodies), kept).repeat(BLOCK)
    push = np.zeros(BLOCK * bodies)
    push[chosen] = rng.normal(size=int(chosen.sum()))
    alone = np.linalg.solve(schur_complement(matrix, kept), push[chosen])
    assert np.allclose(alone, np.linalg.solve(matrix, push)[chosen], rtol=1e-6, atol=1e-8)


def test_a_matrix_that_is_not_positive_definite_is_refused() -> None:
    matrix = -np.eye(2 * BLOCK)
    assert not native.solve_blocks([0, 0], [], matrix, np.ones(2 * BLOCK), np.zeros((0, 0)))


def test_what_would_take_too_much_is_not_begun() -> None:
    count = 12
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    matrix, values = np.eye(BLOCK * count), np.ones(BLOCK * count)
    products = sum(below * (below + 1) // 2 for below in range(count))
    for limit, done in ((products, True), (products - 1, False)):
        assert native.solve_blocks([0] * count, pairs, matrix, values, np.zeros((0, 0)), limit) == done


def test_redundant_rows_do_no_harm_and_a_second_solve_changes_nothing() -> None:
    rng = np.random.default_rng(2)
    mass, rows, _ = structure(rng, 4)
    rows = np.concatenate([rows, rows[:3]])  # the same joint twice
    stiffness = 1e6 / np.einsum("ij,jk,ik->i", rows, np.linalg.inv(mass), rows)
    wanted = rows @ rng.normal(size=rows.shape[1])  # velocities that bodies can have
    wanted[-1] += 0.1  # and one that its twin contradicts
    matrix = joint_matrix(mass, rows, stiffness)
    impulses, velocities = solve_joints(matrix, rows, stiffness, wanted)
    more, change = solve_joints(matrix, rows, stiffness, wanted - rows @ velocities - impulses / stiffness)
    assert np.abs(change).max() < 1e-7
    assert np.abs(more).max() < 1e-7 * np.abs(impulses).max()
