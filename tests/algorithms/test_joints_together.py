"""Joints solved directly: the sparse factorization against dense matrices, and rows with bounds against another solver
and the engine, on random structures."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from lapjoint import WORLD, Box, Hinge, Motor, Scene
from reference.joints_together import (
    BLOCK,
    SLACK,
    joint_matrix,
    schur_complement,
    solve_bounded,
    solve_joints,
)
from substep_support import G, started

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


# ---- rows with bounds --------------------------------------------------------------------------------------------


def inertia_of(mass: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """What each row's velocity changes by when it has a unit impulse."""
    return np.einsum("ij,ji->i", rows, np.linalg.solve(mass, rows.T))


@dataclass(frozen=True)
class Bounded:
    """Rows with bounds of their impulses."""

    mass: np.ndarray
    rows: np.ndarray
    stiffness: np.ndarray
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @staticmethod
    def random(seed: int, bodies: int, heaviest: float) -> Bounded:
        """Masses of 1 and of the heaviest; rows that are locked, push, or do only so much, hard or as soft as a drive.
        Some are there twice, the same or the other way round."""
        rng = np.random.default_rng(seed)
        of_body = np.where(rng.integers(0, 2, bodies), 1.0, heaviest)
        mass = np.diag(of_body.repeat(BLOCK) * rng.uniform(0.5, 2.0, BLOCK * bodies))
        _, rows, _ = structure(rng, bodies)
        rows = rng.permutation(rows)[: 4 * bodies]
        again = rng.integers(0, len(rows), int(rng.integers(0, 2 * bodies)))
        rows = np.concatenate([rows, rows[again] * rng.choice([-1.0, 1.0], (len(again), 1))])
        inertia, count = inertia_of(mass, rows), len(rows)
        stiffness = np.where(rng.random(count) < 0.2, 10 ** rng.uniform(-2, 3, count), 1e6) / inertia
        kind, most = rng.integers(0, 3, count), 10 ** rng.uniform(-2, 1, count) / inertia
        low = np.select([kind == 0, kind == 1], [-np.inf, 0.0], -most)
        return Bounded(mass, rows, stiffness, rng.normal(size=count), low, np.where(kind < 2, np.inf, most))

    def solve(self, last: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        return solve_bounded(self.mass, self.rows, self.stiffness, self.error, self.low, self.high, last)

    def solve_otherwise(self) -> np.ndarray:
        """Least squares in a box, by active sets that change one row at a time: |B d - b|^2 / 2 is what impulses are to
        make least, but for a constant."""
        b_matrix = np.vstack([self.rows.T / np.sqrt(np.diag(self.mass))[:, None], np.diag(self.stiffness**-0.5)])
        b = np.concatenate([np.zeros(len(self.mass)), np.sqrt(self.stiffness) * self.error])
        found = lsq_linear(b_matrix, b, (self.low, self.high), method="bvls", tol=1e-16, max_iter=1000)
        return np.asarray(found.x)


PROBLEMS = given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.sampled_from([1.0, 30.0, 1000.0]))


@PROBLEMS
def test_rows_with_bounds_end_where_they_are_to_be(seed: int, bodies: int, heaviest: float) -> None:
    """As the function says, and velocities are those of the impulses."""
    it = Bounded.random(seed, bodies, heaviest)
    impulses, velocities = it.solve()
    inertia = inertia_of(it.mass, it.rows)
    assert np.all((impulses - it.high) * inertia <= SLACK)
    assert np.all((it.low - impulses) * inertia <= SLACK)
    lack = it.error - it.rows @ velocities - impulses / it.stiffness
    at_low, at_high = impulses == it.low, impulses == it.high
    assert np.all(lack[~at_high] <= 2 * SLACK)
    assert np.all(lack[~at_low] >= -2 * SLACK)
    assert np.allclose(
        it.mass @ velocities, it.rows.T @ impulses, rtol=1e-6, atol=1e-6 * np.abs(it.rows.T @ impulses).max()
    )


@PROBLEMS
def test_impulses_within_bounds_are_those_of_least_squares(seed: int, bodies: int, heaviest: float) -> None:
    """What two rows share that are the same is as uncertain as the slack times their stiffness."""
    it = Bounded.random(seed, bodies, heaviest)
    impulses, velocities = it.solve()
    others = it.solve_otherwise()
    expected = np.linalg.solve(it.mass, it.rows.T @ others)
    assert np.abs(it.rows @ (velocities - expected)).max() < 1e-5
    assert np.all(np.abs(impulses - others) <= 100 * SLACK * it.stiffness)


@PROBLEMS
def test_where_rows_begin_makes_no_difference(seed: int, bodies: int, heaviest: float) -> None:
    it = Bounded.random(seed, bodies, heaviest)
    last = np.clip(np.random.default_rng(seed).normal(size=len(it.rows)), it.low, it.high)
    _, velocities = it.solve()
    _, again = it.solve(last)
    assert np.abs(it.rows @ (velocities - again)).max() < 1e-5


def test_two_limits_share_a_load_and_a_motor_slips() -> None:
    """By hand: a body of mass 2 that two limits want to have a speed of 3, against a motor; then they leave it to the
    motor, which brings 1 of the 4 that it wants."""
    mass, rows = 2 * np.eye(1), np.array([[1.0], [1.0], [1.0]])
    low, high = np.array([0.0, 0.0, -2.0]), np.array([np.inf, np.inf, 2.0])
    impulses, velocities = solve_bounded(mass, rows, np.full(3, 1e6), np.array([3.0, 3.0, -1.0]), low, high)
    assert velocities == pytest.approx([3.0], rel=1e-5)
    assert impulses == pytest.approx([4.0, 4.0, -2.0], rel=1e-5)  # the motor is against them
    impulses, velocities = solve_bounded(mass, rows, np.full(3, 1e6), np.array([-3.0, -3.0, 4.0]), low, high)
    assert velocities == pytest.approx([1.0])
    assert impulses.tolist() == [0.0, 0.0, 2.0]


# ---- and the engine ----------------------------------------------------------------------------------------------


Y = (0.0, 1.0, 0.0)
HALF = 0.2  # of a link


def arm_rows(angles: np.ndarray) -> np.ndarray:
    """Of three links in a plane, with velocities along x and z and about y: two rows of each hinge, then what each
    turns by against the one before. A turn about y takes x to -z."""
    rows = np.zeros((9, 9))
    for k, angle in enumerate(angles):
        own = slice(3 * k, 3 * k + 3)
        far = HALF * np.array([[-np.sin(angle)], [-np.cos(angle)]])  # what a turn moves its far end by
        rows[2 * k : 2 * k + 2, own] = np.hstack([np.eye(2), -far])
        if k < 2:
            rows[2 * k + 2 : 2 * k + 4, own] = np.hstack([-np.eye(2), -far])
    rows[6:, 2::3] = np.eye(3) - np.eye(3, k=-1)
    return rows


@pytest.mark.parametrize("gravity", [0.0, G])
@pytest.mark.parametrize("masses", [(1.0, 2.0, 1.0), (1.0, 0.5, 500.0)])
def test_an_arm_at_a_limit_with_motors_moves_as_said(gravity: float, masses: tuple[float, ...]) -> None:
    """Hinges at a limit that it is beyond, with a motor that slips, and with one that does not. A step of one substep:
    a solution with errors, then one without them for where links are by then."""
    h, beyond, speeds, most = 0.002, 0.001, [-3.0, 0.5], [0.1, 1e5]
    scene = Scene(gravity=(0.0, 0.0, -gravity), timestep=h)
    centres = np.array([(HALF * (2 * k + 1), 0.0, 0.0) for k in range(3)])
    links = scene.add_bodies(Box((2 * HALF, 0.1, 0.1)), centres, mass=masses)
    hinges = [
        Hinge(Y, limits=(-1.0, -beyond)),
        *(Hinge(Y, motor=Motor(*each)) for each in zip(speeds, most, strict=True)),
    ]
    for k, hinge in enumerate(hinges):
        scene.add_joint(hinge, links[k], links[k - 1] if k else WORLD, centres[k] - (HALF, 0.0, 0.0))
    engine = started(scene, joints="direct", substeps=1, length_unit=1.0, mass_unit=1.0)
    states = [engine.get_states().copy()]
    engine.step()
    states.append(engine.get_states().copy())

    mass = np.diag(np.ravel([(m, m, inertia[1, 1]) for m, inertia in zip(masses, scene.bodies.inertia, strict=True)]))
    # What carries nothing yet gets half of a force before it moves and half after it.
    half = np.tile([0.0, -gravity * h / 2, 0.0], 3)
    velocities, impulses, solved = half, np.zeros(9), []
    bound = np.array([np.inf] * 7 + [h * force for force in most])
    for state, share in zip(states, (1.0, 0.0), strict=True):
        angles = 2 * np.arctan2(state[:, 5], state[:, 3])
        rows = arm_rows(angles)
        rows[6] *= -1  # an upper limit
        gap = -beyond - angles[0]
        aim = np.array([0.0] * 6 + [-(share * min(gap, 0.0) + max(gap, 0.0)) / h, *speeds])
        others = velocities - np.linalg.solve(mass, rows.T @ impulses)
        low = np.where(np.arange(9) == 6, 0.0, -bound)
        impulses, change = solve_bounded(mass, rows, 1e6 / inertia_of(mass, rows), aim - rows @ others, low, bound)
        velocities = others + change
        solved.append(velocities.reshape(3, 3))
        velocities = velocities + half
    assert impulses[6] > 0
    assert impulses[7] == -bound[7]
    assert 0 < abs(impulses[8]) < bound[8]
    moved = (states[1] - states[0])[:, [0, 2]] / h
    size = np.abs(solved[0]).max()
    assert np.abs(moved - solved[0][:, :2]).max() < 1e-6 * size
    assert np.abs(angles / h - solved[0][:, 2]).max() < 1e-6 * size
    assert np.abs(states[1][:, [7, 9, 11]] - solved[1]).max() < 1e-6 * size
