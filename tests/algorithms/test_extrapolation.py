"""The acceleration and the exchange of tight coupling: readable twins against the native code, on random input."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lapjoint import Params, Scene, make_engine, scenes
from lapjoint.algorithms.exchange import RoundPlan, run_rounds
from lapjoint.algorithms.extrapolation import COLUMNS, Advance, History, Products, choose_advance
from lapjoint.engines import RoundEngine
from lapjoint.server.partition import make_partition
from tight_support import free_chain, simulate, wall

native = importlib.import_module("lapjoint._algorithms")
PRODUCTS = len(Products().to_numbers())


def linear_rounds(rng: np.random.Generator, size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A contraction x -> a x + b that is slow in a few directions, as sweeps are."""
    turn, _ = np.linalg.qr(rng.normal(size=(size, size)))
    rates = rng.uniform(0.0, 0.5, size)
    rates[:3] = 0.98
    return turn @ np.diag(rates) @ turn.T, rng.normal(size=size)


def test_both_have_the_same_layout() -> None:
    assert native.column_count == COLUMNS
    assert native.product_count == PRODUCTS


@given(st.integers(0, 2**32 - 1), st.integers(0, 7), st.booleans(), st.sampled_from([1e-6, 1e-8]))
def test_twins_choose_the_same(seed: int, rounds: int, few: bool, regularization: float) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 30))
    a, b = linear_rounds(rng, max(size, 4))
    weights = rng.uniform(0.0, 2.0, len(b)) * rng.integers(0, 2, len(b))
    mine, theirs = History(weights), native.History(weights.tolist())
    x, last = rng.normal(size=len(b)), -1.0
    for _ in range(rounds + 1):
        g = a @ x + b + 1e-3 * rng.normal(size=len(b)) * rng.integers(0, 2)
        products, told = mine.add(x, g), np.zeros(PRODUCTS)
        theirs.add(x.tolist(), g.tolist(), told)
        assert np.allclose(products.to_numbers(), told, rtol=1e-12, atol=1e-12)
        products.contact_rows, products.joint_rows = rng.integers(0, 3, 2).astype(float)
        how, theta = choose_advance(products, last, regularization, few)
        factors = np.zeros(COLUMNS)
        assert native.choose_advance(products.to_numbers(), last, regularization, few, factors) == how
        last, x = products.change_squared, g
        if how is Advance.FORGET:
            mine.forget()
            theirs.forget()
        elif how is Advance.EXTRAPOLATE:
            scale = np.abs(products.change[: len(mine._impulses)]).max(initial=1e-30)
            mixed = mine.extrapolate(theta)
            assert np.allclose(mixed, theirs.extrapolate(theta), rtol=1e-9, atol=1e-9)
            error = np.abs(products.columns @ (theta - factors)).max()
            assert error <= 1e-6 * scale, "the factors solve different equations"
            x = mixed


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_sums_over_engines_are_sums_over_rows(seed: int, parts: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = linear_rounds(rng, 24)
    weights = rng.uniform(0.5, 2.0, 24)
    owner = rng.integers(0, parts, 24)
    whole, split = History(weights), [History(weights[owner == part]) for part in range(parts)]
    x = rng.normal(size=24)
    for _ in range(5):
        g = a @ x + b
        together, total = whole.add(x, g), Products()
        for part, history in enumerate(split):
            total.add(history.add(x[owner == part], g[owner == part]))
        assert np.allclose(together.to_numbers(), total.to_numbers(), rtol=1e-9, atol=1e-9)
        x = g


def test_extrapolation_removes_slow_directions() -> None:
    a, b = linear_rounds(np.random.default_rng(0), 40)
    exact = np.linalg.solve(np.eye(40) - a, b)
    plain = accelerated = np.zeros(40)
    history, last = History(np.ones(40)), -1.0
    for _ in range(15):
        plain = a @ plain + b
        products = history.add(accelerated, a @ accelerated + b)
        how, theta = choose_advance(products, last, 1e-12, few_rounds=True)
        last = products.change_squared
        accelerated = history.extrapolate(theta) if how is Advance.EXTRAPOLATE else a @ accelerated + b
    assert 100 * np.linalg.norm(accelerated - exact) < np.linalg.norm(plain - exact)


def test_a_change_that_grows_drops_the_history() -> None:
    products = Products(change_squared=5.0, column_count=2.0)
    assert choose_advance(products, 1.0, 1e-8, few_rounds=True)[0] is Advance.FORGET
    assert choose_advance(products, 2.0, 1e-8, few_rounds=True)[0] is not Advance.FORGET


# ---- the exchange ----------------------------------------------------------------------------------------------------


def by_the_twin(scene: Scene, owner: NDArray[np.int32], plan: RoundPlan, steps: int) -> NDArray[np.float64]:
    """States after some steps that the readable exchange takes, with engines in this process."""
    params = Params(coupling="tight", precision="float64").resolved(scene)
    engines = [make_engine(scene, params) for _ in range(int(owner.max()) + 2)]
    states, everything = scene.states.copy(), np.arange(scene.body_count, dtype=np.int32)
    server, workers = engines[0], engines[1:]
    assert isinstance(server, RoundEngine)
    server.set_owners(owner)
    server.activate(everything, states)
    own = [everything[owner == w] for w in range(len(workers))]
    joints = np.stack([scene.joints.body_a, scene.joints.body_b], axis=1)
    joints = joints[(joints[:, 1] >= 0) & (owner[joints[:, 0]] != owner[joints[:, 1]])]
    for worker, ids in zip(workers, own, strict=True):
        worker.activate(ids, states[ids])
    for _ in range(steps):
        server.set_states(everything, states)
        server.begin_step(everything)
        for worker, ids in zip(workers, own, strict=True):
            assert isinstance(worker, RoundEngine)
            worker.begin_step(ids, np.flatnonzero(np.isin(ids, joints)))
        run_rounds(server, workers, own, plan, 1e-8, params.length_unit or 1.0)
        for worker, ids in zip(workers, own, strict=True):
            worker.finish_step()
            worker.get_states(ids, out=states, rows=ids)
        server.finish_step(moves=False)
    return states


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, 3, 12])
@pytest.mark.parametrize("make", [free_chain, wall, lambda: scenes.build("bridge")], ids=["chain", "wall", "bridge"])
def test_the_readable_exchange_takes_the_same_step(make: type, rounds: int) -> None:
    scene: Scene = make()
    workers = 3
    owner = make_partition(scene, workers, "metis").astype(np.int32)
    plan = RoundPlan(rounds, 3, 3 if scene.joint_count else 1, True, 0.0)
    readable = by_the_twin(scene, owner, plan, 3)
    native_states = simulate(
        scene, 3, workers=workers, partition="metis", rounds=rounds, iterations=3 * rounds, repartition=0
    )
    assert np.allclose(readable, native_states, rtol=0, atol=1e-7)
