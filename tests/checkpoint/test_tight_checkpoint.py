"""Tight coupling goes on from a checkpoint: bit for bit with as many workers, without a jolt with others."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapjoint import (
    Box,
    Checkpoint,
    CheckpointWriter,
    Failures,
    LapjointError,
    Params,
    Plane,
    Scene,
    Simulation,
    SimulationStopped,
)
from lapjoint.engines import EngineState
from lapjoint.server.redistribute import redistribute
from lapjoint.workers import engine_states
from parallel_support import children
from tight_runs import SIZES, caches, interface, jump, owner_of, tight, tight_coupling, wall

BEFORE, AFTER = {"bowl": 95, "building": 25, "two-way-bridge": 25}, 25
"""The bowl's bodies touch by then, and move to other workers soon after."""


def saved(simulation: Simulation, directory: Path) -> Checkpoint:
    return Checkpoint(CheckpointWriter(directory, simulation).save(simulation))


@cache
def whole_run(name: str, precision: str, workers: int) -> tuple[str, str, np.ndarray, np.ndarray]:
    """Hashes on the way and at the end, and the owners and the interface then, of a run without checkpoints."""
    with tight(name, workers=workers, precision=precision) as simulation:
        simulation.step(BEFORE[name])
        start = simulation.state_hash
        simulation.step(AFTER)
        return start, simulation.state_hash, owner_of(simulation), interface(simulation)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "precision", "runtime", "workers"),
    [
        ("bowl", "float32", "inline", 3),
        ("building", "float32", "inline", 1),
        ("building", "float64", "process", 3),
        ("two-way-bridge", "float32", "process", 3),
    ],
)
def test_a_resumed_run_equals_one_that_never_stopped(
    name: str, precision: str, workers: int, runtime: str, tmp_path: Path
) -> None:
    start, end, owner, at_interface = whole_run(name, precision, workers)
    with tight(name, workers=workers, precision=precision, runtime=runtime) as first:
        first.step(BEFORE[name])
        checkpoint = saved(first, tmp_path / "c")
        contacts, share = first.contacts.pairs(), tight_coupling(first).cut_share
        first.step(AFTER)
        assert first.state_hash == end, "a checkpoint changes the run that writes it"
    with checkpoint.resume() as second:
        assert second.params == first.params
        assert second.state_hash == start
        assert np.array_equal(second.contacts.pairs().bodies, contacts.bodies)
        assert tight_coupling(second).cut_share == share
        second.step(AFTER)
        assert second.state_hash == end
        assert np.array_equal(owner_of(second), owner)
        assert len(interface(second)) > 0 or workers == 1
    assert (len(at_interface) > 0) == (workers > 1), "workers that never meet prove nothing"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("bowl", {"detect": "server"}),
        ("two-way-bridge", {"algorithms": "reference"}),
        ("bowl", {"substeps": 7}),
        ("two-way-bridge", {"joints": "swept", "load": "bodies"}),
        ("bowl", {"partition": "equal", "repartition": 1.01}),
    ],
    ids=str,
)
def test_whatever_the_parameters(name: str, more: dict[str, Any], tmp_path: Path) -> None:
    with tight(name, **more) as first:
        first.step(BEFORE[name])
        checkpoint = saved(first, tmp_path / "c")
        first.step(AFTER)
        with checkpoint.resume() as second:
            second.step(AFTER)
            assert second.state_hash == first.state_hash


@pytest.mark.slow
def test_every_step_can_be_gone_on_from(tmp_path: Path) -> None:
    """Also before the first one, and from a resumed run. Bodies change hands on the way."""
    scattered = np.random.default_rng(0).integers(0, 3, SIZES["bowl"])
    with tight("bowl", repartition=1.01, partition=scattered) as whole:
        checkpoint, moves, step = saved(whole, tmp_path / "0"), 0, 0
        for count in [1, 1, 190, 7, 1]:
            owner = owner_of(whole)
            whole.step(count)
            moves += int((owner_of(whole) != owner).sum())
            with checkpoint.resume() as part:
                part.step(count)
                step += count
                assert part.state_hash == whole.state_hash
                checkpoint = saved(part, tmp_path / str(step))
        assert moves > 0


def test_what_a_user_has_changed_goes_on(tmp_path: Path) -> None:
    with tight("two-way-bridge") as first:
        first.step(10)
        held, pushed, put = interface(first)[[0, 2, 4]].tolist()
        first.bodies.freeze([held])
        first.step(3)
        first.workers.set_load("bodies")
        states = first.states[[put]]
        states[:, 9] += 0.1
        first.set_states([put], states)
        first.bodies.add_forces([pushed], [[0, 0, 300.0]])
        checkpoint = saved(first, tmp_path / "c")
        first.step(20)
        with checkpoint.resume() as second:
            assert second.bodies.frozen_ids.tolist() == [held]
            assert second.bodies.forces.keys() == {pushed}
            second.step(20)
            assert second.state_hash == first.state_hash


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0, 1])
def test_while_the_number_of_workers_changes(moment: int, tmp_path: Path) -> None:
    """Asked for, and done: two become four, four become one, one becomes three."""
    with tight("bowl", workers=2) as first:
        first.step(100)
        for count in (4, 1, 3):
            first.workers.set_count(count)
            first.step(moment)
            checkpoint = saved(first, tmp_path / str(count))
            first.step(15)
            with checkpoint.resume() as second:
                second.step(15)
                assert second.params.workers == first.params.workers == count
                assert second.state_hash == first.state_hash


@pytest.mark.slow
def test_a_state_larger_than_a_message_comes_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_states, "part_size", lambda body_count: 700)
    with tight("building", runtime="process", repartition=0) as first, tight("building", repartition=0) as other:
        for each in (first, other):
            each.step(5)
            each.workers.repartition(np.roll(owner_of(each), 5).astype(np.int32))
            each.step(5)
        checkpoint = saved(first, tmp_path / "c")
        for each in (first, other):
            each.step(5)
        assert first.state_hash == other.state_hash
        with checkpoint.resume(runtime="inline") as second:
            second.step(5)
            assert second.state_hash == first.state_hash


# ---- other workers ---------------------------------------------------------------------------------------------------


def standing(workers: int) -> Simulation:
    simulation = tight(wall(), workers=workers, timestep=0.002, repartition=0, precision="float64")
    simulation.step(100)
    return simulation


def test_redistribution_loses_nothing(tmp_path: Path) -> None:
    """To one worker from one, in the way of other numbers, that is bit for bit."""
    with standing(1) as first:
        checkpoint = saved(first, tmp_path / "c")
        first.step(20)
        with Simulation(checkpoint.scene(), checkpoint.params) as second:
            redistribute(checkpoint._parts, 1, second._core.now, second._core.coupling, second._core.runtime)
            second.step(20)
            assert second.state_hash == first.state_hash


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 5)])
def test_another_number_of_workers_goes_on_without_a_jolt(
    before: int, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contacts that were one worker's become those of two and the other way round, with their impulses."""
    with standing(before) as first:
        checkpoint = saved(first, tmp_path / "c")
        start = first.states
        first.step()
        undisturbed = first.states
    with checkpoint.resume(workers=after) as second:
        assert np.array_equal(second.states, start)
        assert second.workers.membership.worker_count == after
        second.step()
        felt = jump(second.states, undisturbed)
        second.step(30)
        assert jump(second.states, start) < 1e-4
    about = EngineState.about

    def forgetful(state: EngineState, has_body: np.ndarray) -> EngineState:
        own = about(state, has_body)
        return replace(
            own, point_bodies=own.point_bodies[:0], point_numbers=own.point_numbers[:0], points=own.points[:0]
        )

    monkeypatch.setattr(EngineState, "about", forgetful)
    with checkpoint.resume(workers=after) as second:
        second.step()
        assert jump(second.states, undisturbed) > 100 * felt


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("building", 1, 3), ("two-way-bridge", 3, 1), ("two-way-bridge", 2, 5), ("building", 4, 3)],
)
def test_nothing_is_forgotten_and_nothing_known_twice(name: str, before: int, after: int, tmp_path: Path) -> None:
    with tight(name, workers=before, joints="swept") as first:
        first.step(20)
        checkpoint, wanted = saved(first, tmp_path / "c"), caches(first)
        with checkpoint.resume(workers=after) as second:
            for mine, expected in zip(caches(second), wanted, strict=True):
                assert np.array_equal(mine, expected)
            if name == "two-way-bridge":
                assert len(wanted[3]) > 3 * second.scene.joint_count


def test_removed_bodies_stay_so(tmp_path: Path) -> None:
    with tight("building", quarantine=True) as first:
        first.step(5)
        gone = int(interface(first)[0])
        first.bodies.remove([gone])
        first.step(2)
        checkpoint = saved(first, tmp_path / "c")
        first.step(10)
        for workers in (3, 2):
            with checkpoint.resume(workers=workers) as second:
                second.step(10)
                assert np.array_equal(second.states[gone], first.states[gone])
                assert gone not in interface(second)
                assert gone not in second.contacts.pairs().bodies
                assert (second.state_hash == first.state_hash) == (workers == 3)


# ---- after a failure -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("workers", [3, 2])
def test_a_run_that_stopped_goes_on_from_its_states(workers: int, tmp_path: Path) -> None:
    with tight("building", runtime="process", on_failure="stop") as first:
        first.step(20)
        before = first.states
        first._core.runtime._children[1]._process.kill()
        with pytest.raises(SimulationStopped):
            first.step()
        checkpoint = saved(first, tmp_path / "c")
    with checkpoint.resume(workers=workers, runtime="inline") as second, tight("building") as undisturbed:
        assert np.array_equal(second.states, before)
        second.step(10)
        undisturbed.step(30)
        assert jump(second.states, undisturbed.states) < 0.01
    assert children() == []


def test_the_coupling_stays(tmp_path: Path) -> None:
    with tight("building") as first:
        first.step(2)
        checkpoint = saved(first, tmp_path / "c")
    with pytest.raises(LapjointError, match="coupling cannot change when a run goes on, it stays"):
        checkpoint.resume(coupling="blend")


def test_workers_whose_contacts_differ_wait_for_nothing(tmp_path: Path) -> None:
    """In a checkpoint that was changed, what two workers have of their common contacts differs. Once it decided how
    many messages they expected of each other, and they waited without end."""
    scene = Scene("tower", timestep=0.004)
    scene.add_static(Plane())
    scene.add_bodies(Box((1.0, 1.0, 1.0)), [(0.0, 0.0, 0.5 + k) for k in range(6)])
    params = Params(workers=2, coupling="tight", runtime="inline", partition=np.arange(6) % 2)
    with Simulation(scene, params) as simulation:
        simulation.step(3)
        checkpoint = saved(simulation, tmp_path)
    workers = checkpoint._parts["workers"].arrays
    state = engine_states.from_bytes(workers["1"])
    own = state.taken(np.ones(len(state.body_ids), bool), lambda ends: (ends < 0).any(axis=1))
    assert len(own.points) < len(state.points)
    workers["1"] = engine_states.to_bytes(own)
    with checkpoint.resume(runtime="inline", failures=Failures(hang_limit=0.5)) as simulation:
        simulation.step(20)
        assert not simulation.incidents
        assert np.isfinite(simulation.states).all()
