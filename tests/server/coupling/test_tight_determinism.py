"""Tight coupling: the same bits wherever workers live, invariants in every step, bodies that move without a jolt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapjoint import Simulation
from tight_runs import SIZES, caches, energy, interface, jump, owner_of, tight, tight_coupling, wall

WALL = {"timestep": 0.002}


def final_hash(name: str, steps: int, **params: Any) -> str:
    with tight(name, **params) as simulation:
        simulation.step(steps)
        assert len(interface(simulation)) > 0, "workers that never meet prove nothing"
        assert np.isfinite(simulation.states).all()
        return simulation.state_hash


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two-way-bridge", "bowl"])
def test_the_same_bits_in_every_runtime_and_every_time(name: str) -> None:
    hashes = [final_hash(name, 120, runtime=runtime) for runtime in ("inline", "process")]
    assert len(set(hashes)) == 1, hashes


@pytest.mark.slow
def test_the_same_bits_with_either_text_of_the_algorithms() -> None:
    assert final_hash("bowl", 110) == final_hash("bowl", 110, algorithms="reference")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "more"),
    [
        *((name, {}) for name in SIZES),
        *((name, {"detect": "server", "precision": "float64"}) for name in ("two-way-bridge", "bowl")),
    ],
    ids=str,
)
def test_every_step_keeps_what_it_promises(name: str, more: dict[str, Any]) -> None:
    """`validate` looks after every division and every move."""
    steps = 60 if more or name == "chain-net" else 120
    with tight(name, **more) as simulation:
        simulation.step(steps)
        assert np.isfinite(simulation.states).all()
        if simulation.scene.joint_count:
            assert simulation.joints.gaps().max() < 0.05
        contacts = simulation.contacts.pairs()
        assert len(np.unique(contacts.bodies, axis=0)) == len(contacts), "no contact is simulated twice"


def test_contacts_are_those_of_one_engine() -> None:
    """Workers see, together, what one worker sees of the same states."""
    with tight("building", workers=4) as many, tight("building", workers=1) as one:
        for each in (many, one):
            each.step()
        rows = [
            np.column_stack([each.contacts.pairs().bodies, each.contacts.pairs().point_count]) for each in (many, one)
        ]
        assert np.array_equal(*(part[np.lexsort(part.T)] for part in rows))


# ---- bodies that move ----------------------------------------------------------------------------------------------


def scattered(simulation: Simulation) -> None:
    """Have the scene divided at random in the next step."""
    count = simulation.params.workers
    partition = np.random.default_rng(0).integers(0, count, simulation.scene.body_count).astype(np.int32)
    simulation.workers.repartition(partition)


@pytest.mark.slow
def test_bodies_move_and_a_wall_stays_at_rest(tmp_path: Path) -> None:
    """Scattered over the workers, bodies gather again in few steps. The wall feels nothing of it."""
    scene = wall()
    file = tmp_path / "partition.txt"
    file.write_text("".join(f"{worker}\n" for worker in np.random.default_rng(0).integers(0, 3, scene.body_count)))
    with tight(scene, partition=str(file), **WALL) as simulation:
        simulation.step()
        before, cut = owner_of(simulation), simulation.profile.cut_share
        worst, moves = 0.0, 0
        for _ in range(250):
            owner = owner_of(simulation)
            simulation.step()
            moves += int((owner_of(simulation) != owner).sum())
            worst = max(worst, energy(simulation))
        assert moves > 5
        assert (owner_of(simulation) != before).any()
        assert simulation.profile.cut_share < 0.6 * cut
        assert jump(simulation.states, scene.states) < 2e-3
        assert worst < 0.05, "20 boxes of a tonne each"


def settled_wall() -> Simulation:
    simulation = tight(wall(), repartition=0, **WALL)
    simulation.step(100)
    return simulation


@pytest.mark.slow
def test_a_repartition_is_not_felt() -> None:
    """Contacts and their impulses go with the bodies."""
    with settled_wall() as simulation:
        start = simulation.states
        before = owner_of(simulation)
        scattered(simulation)
        simulation.step()
        assert (owner_of(simulation) != before).sum() > 5
        assert energy(simulation) < 1e-4, "20 boxes of a tonne each"
        simulation.step(50)
        assert jump(simulation.states, start) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["inline", "process"])
@pytest.mark.parametrize("name", ["building", "two-way-bridge"])
def test_nothing_is_forgotten_while_bodies_change_hands(name: str, runtime: str) -> None:
    with tight(name, repartition=0, runtime=runtime) as simulation:
        simulation.step(10)
        wanted, before = caches(simulation), owner_of(simulation)
        scattered(simulation)
        simulation._core.now.detection.update(
            simulation._core.runtime, simulation.workers.membership, simulation.replies
        )
        simulation._carry_out(
            tight_coupling(simulation).decide(simulation._core.now, simulation._core.runtime, simulation.profile)
        )
        assert (owner_of(simulation) != before).sum() > 20
        for mine, expected in zip(caches(simulation), wanted, strict=True):
            assert np.array_equal(mine, expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["building", "two-way-bridge"])
def test_scattered_again_and_again(name: str) -> None:
    params = {**WALL, "repartition": 0}
    with tight(name, **params) as simulation, tight(name, **params) as undisturbed:
        if name == "building":  # no cannon balls
            for each in (simulation, undisturbed):
                each.bodies.freeze([each.scene.body_count - 2, each.scene.body_count - 1])
        for _ in range(6):
            scattered(simulation)
            simulation.step(5)
            undisturbed.step(5)
        assert jump(simulation.states, undisturbed.states) < 2e-3
