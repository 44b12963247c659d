"""A run that goes on from a checkpoint: bit for bit with as many workers, without a jump with others."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapjoint import (
    Blend,
    Checkpoint,
    CheckpointWriter,
    LapjointError,
    Params,
    Recording,
    Sequential,
    Simulation,
    Units,
    scenes,
)
from lapjoint.checkpoint.layout import read_checkpoint, write_checkpoint
from lapjoint.engines import EngineState
from lapjoint.measures import kinetic_energy
from lapjoint.run import run
from lapjoint.server.redistribute import redistribute
from lapjoint.server.saved_state import parts_of
from lapjoint.workers import engine_states

SIZES = {"bowl": 120, "building": 110, "two-way-bridge": 106}
BEFORE, AFTER = {"bowl": 90, "building": 25, "two-way-bridge": 25}, 25
"""The bowl's bodies touch by then."""


def make(name: str, **params: Any) -> Simulation:
    settings = {
        "runtime": "inline",
        "coupling": "blend",
        "iterations": 15,
        "timestep": 0.005,
        "validate": True,
        **params,
    }
    return Simulation(scenes.build(name, SIZES[name]), Params.from_options(**settings))


@cache
def whole_run(name: str, precision: str, workers: int) -> tuple[str, str, np.ndarray]:
    """Hashes on the way and at the end, and the overlap then, of a run without checkpoints."""
    with make(name, workers=workers, precision=precision) as simulation:
        simulation.step(BEFORE[name])
        start = simulation.state_hash
        simulation.step(AFTER)
        return start, simulation.state_hash, simulation.workers.overlap


def saved(simulation: Simulation, directory: Path) -> Checkpoint:
    return Checkpoint(CheckpointWriter(directory, simulation).save(simulation))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "precision", "workers", "runtime"),
    [
        ("bowl", "float32", 3, "inline"),
        ("bowl", "float64", 1, "process"),
        ("building", "float64", 3, "inline"),
        ("building", "float32", 1, "inline"),
        ("two-way-bridge", "float32", 3, "inline"),
        ("two-way-bridge", "float64", 3, "process"),
    ],
)
def test_a_resumed_run_equals_one_that_never_stopped(
    name: str, precision: str, workers: int, runtime: str, tmp_path: Path
) -> None:
    start, end, overlap = whole_run(name, precision, workers)
    with make(name, workers=workers, precision=precision, runtime=runtime) as first:
        first.step(BEFORE[name])
        checkpoint = saved(first, tmp_path / "c")
        first.step(AFTER)
        assert first.state_hash == end, "a checkpoint changes the run that writes it"
    with checkpoint.resume() as second:
        assert second.params == first.params
        assert second.step_count == BEFORE[name]
        assert second.state_hash == start
        second.step(AFTER)
        assert second.step_count == BEFORE[name] + AFTER
        assert second.time == pytest.approx(0.005 * (BEFORE[name] + AFTER))
        assert second.state_hash == end
        assert np.array_equal(second.workers.overlap, overlap)
    if workers > 1:
        assert len(overlap) > 0, "workers that never meet prove nothing"


@pytest.mark.slow
@pytest.mark.parametrize("there", ["inline", "process"])
def test_from_one_runtime_to_the_other(there: str, tmp_path: Path) -> None:
    here = {"inline": "process", "process": "inline"}[there]
    with make("building", workers=2, runtime=here) as first:
        first.step(20)
        checkpoint = saved(first, tmp_path / "c")
        first.step(20)
        end = first.state_hash
    with checkpoint.resume(runtime=there) as second:
        second.step(20)
        assert second.state_hash == end


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["inline", "process"])
def test_a_state_larger_than_a_message_comes_in_parts(
    runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_states, "part_size", lambda body_count: 1000)
    with make("building", workers=3, runtime=runtime) as first:
        first.step(20)
        checkpoint = saved(first, tmp_path / "c")
        sizes = [len(checkpoint._arrays[f"workers/{w}"]) for w in range(3)]
        assert min(sizes) > 2000
        assert len({-(-size // 1000) for size in sizes}) > 1
        first.step(20)
        with checkpoint.resume() as second:
            second.step(20)
            assert second.state_hash == first.state_hash


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        {"detect": "server"},
        {"load": "bodies", "linger": 0, "repartition": 0},
        {"balance": "printed", "validate": False},
        {"algorithms": "reference"},
        {"weights": "computed", "growth_depth": 2},
        {"split_impulse": False, "joint_erp": 0.3},
        {"repartition": 1.000001},
    ],
    ids=str,
)
def test_whatever_the_parameters(more: dict[str, Any], tmp_path: Path) -> None:
    """The last case divides the scene anew, and the checkpoint falls between the two steps of a division."""
    before = 201 if more.get("repartition") else 25
    with make("bowl", workers=3, **more) as first:
        first.step(before)
        if before == 201:
            assert first._core.now.repartition.bits is not None
        checkpoint = saved(first, tmp_path / "c")
        first.step(25)
        with checkpoint.resume() as second:
            second.step(25)
            assert second.state_hash == first.state_hash


@pytest.mark.slow
def test_every_step_can_be_gone_on_from(tmp_path: Path) -> None:
    """Also before the first one, and from a resumed run."""
    with make("bowl", workers=3) as whole:
        checkpoint = saved(whole, tmp_path / "0")
        for step in range(1, 9):
            whole.step()
            with checkpoint.resume() as part:
                part.step()
                assert part.state_hash == whole.state_hash
                checkpoint = saved(part, tmp_path / str(step))


def test_what_a_user_has_changed_goes_on(tmp_path: Path) -> None:
    with make("bowl", workers=3) as first:
        first.step(10)
        first.bodies.freeze([5, 60])
        first.workers.set_iterations(20)
        first.workers.set_growth_depth(1)
        first.step(3)
        first.workers.set_load("bodies")
        first.bodies.release([60])
        states = first.states[[7, 8]]
        states[:, 9] += 1.0
        first.set_states([7, 8], states)
        first.bodies.add_forces([9, 40], [[0, 0, 300.0], [50.0, 0, 0]])
        checkpoint = saved(first, tmp_path / "c")
        first.step(20)
        with checkpoint.resume() as second:
            assert second.bodies.frozen_ids.tolist() == [5]
            assert sorted(second.bodies.forces) == [9, 40]
            assert second.params.sequential.iterations == 20
            assert (second.workers.growth_depth, second.params.load) == (1, "bodies")
            second.step(20)
            assert second.state_hash == first.state_hash


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0, 1, 2])
def test_while_the_number_of_workers_changes(moment: int, tmp_path: Path) -> None:
    """Asked for, in both, and done: two become four, four become three."""
    with make("bowl", workers=2) as first:
        first.step(60)
        first.workers.set_count(4)
        first.step(moment)
        checkpoint = saved(first, tmp_path / "c")
        first.step(20)
        first.workers.set_count(3)
        first.step(moment)
        later = saved(first, tmp_path / "d")
        with checkpoint.resume() as second:
            second.step(20)
            second.workers.set_count(3)
            second.step(moment)
            assert second.state_hash == first.state_hash
            second.step(10)
            first.step(10)
            assert second.params.workers == first.params.workers == 3
            assert second.state_hash == first.state_hash
        with later.resume() as third:
            third.step(10)
            assert third.state_hash == first.state_hash


def test_workers_that_follow_the_load_go_on_following(tmp_path: Path) -> None:
    with make("bowl", workers=1, max_workers=3, repartition=1.2) as first:
        first._core.elastic._looks = 3
        first.step(47)
        checkpoint = saved(first, tmp_path / "c")
        with checkpoint.resume() as second:
            assert vars(second._core.elastic) == vars(first._core.elastic)
        with checkpoint.resume(max_workers=2) as second:
            assert second._core.elastic.most == 2


@pytest.mark.parametrize("workers", [2, 3])
def test_removed_bodies_stay_so(workers: int, tmp_path: Path) -> None:
    with make("bowl", workers=2, quarantine=True) as first:
        first.step(60)
        gone = int(first.workers.overlap[0]) if len(first.workers.overlap) else 7
        first.bodies.remove([gone])
        first.step(2)
        checkpoint = saved(first, tmp_path / "c")
        first.step(20)
        with checkpoint.resume(workers=workers) as second:
            assert np.flatnonzero(~second.alive).tolist() == [gone]
            second.step(20)
            assert np.array_equal(second.states[gone], first.states[gone])
            assert not any(gone in contact for contact in second.contacts.pairs().bodies.tolist())
            if workers == 2:
                assert second.state_hash == first.state_hash


def test_another_runtime_has_no_use_for_what_was_for_ray(tmp_path: Path) -> None:
    with make("bowl") as first:
        first.step()
        path = CheckpointWriter(tmp_path / "c", first).save(first)
    arrays, description = read_checkpoint(path)
    description["params"] |= {"runtime": "ray", "address": "10.0.0.1:6379"}
    write_checkpoint(tmp_path / "ray", description, arrays)
    with Checkpoint(tmp_path / "ray").resume(runtime="inline") as second:
        assert (second.params.runtime, second.params.address) == ("inline", None)
        second.step()


def test_quarantined_bodies_stay_so(tmp_path: Path) -> None:
    with make("bowl", workers=2, quarantine=True, speed_limit=30.0) as first:
        first.step(20)
        states = first.states[[50]]
        states[0, 7] = 100.0
        first.set_states([50], states)
        first.step(2)
        assert 50 in first.bodies.frozen_ids
        checkpoint = saved(first, tmp_path / "c")
        first.step(20)
        with checkpoint.resume() as second:
            assert second._core.recovery._quarantined == first._core.recovery._quarantined
            second.step(20)
            assert second.state_hash == first.state_hash


# ---- other workers, other parameters ----------------------------------------------------------------------------


def standing(workers: int) -> Simulation:
    """A building at rest; its cannon balls hang in the air."""
    simulation = make("building", workers=workers, timestep=0.002, iterations=50)
    simulation.bodies.freeze([simulation.scene.body_count - 2, simulation.scene.body_count - 1])
    simulation.step(100)
    return simulation


def test_redistribution_loses_nothing(tmp_path: Path) -> None:
    """To one worker from one, in the way of other numbers, that is bit for bit."""
    with standing(1) as first:
        checkpoint = saved(first, tmp_path / "c")
        first.step(20)
        with Simulation(checkpoint.scene(), checkpoint.params) as second:
            redistribute(checkpoint._parts, 1, second._core.now, second._core.coupling, second._core.runtime)
            second._core.frozen.restore(checkpoint._parts["frozen"])
            second.step(20)
            assert second.state_hash == first.state_hash


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 5)])
def test_another_number_of_workers_goes_on_without_a_jump(
    before: int, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others divide the building elsewhere, which is felt; much less than if contacts had forgotten their impulses."""
    with standing(before) as first:
        checkpoint = saved(first, tmp_path / "c")
        scene, start = first.scene, first.states
    with checkpoint.resume(workers=after) as second:
        assert np.array_equal(second.states, start)
        assert len(second.workers.membership.load) == after
        second.step()
        energy = kinetic_energy(scene, second.states)
        second.step(19)
        assert np.abs(second.states[:, :3] - start[:, :3]).max() < 1e-3
    part = EngineState.part

    def forgetful(state: EngineState, has_body: np.ndarray) -> EngineState:
        own = part(state, has_body)
        return replace(
            own, point_bodies=own.point_bodies[:0], point_numbers=own.point_numbers[:0], points=own.points[:0]
        )

    monkeypatch.setattr(EngineState, "part", forgetful)
    with checkpoint.resume(workers=after) as second:
        second.step()
        assert energy < 0.75 * kinetic_energy(scene, second.states)


def test_another_number_from_before_the_first_step(tmp_path: Path) -> None:
    with make("bowl", workers=2) as first:
        checkpoint = saved(first, tmp_path / "c")
    with checkpoint.resume(workers=4) as second:
        second.step(10)
        assert second.workers.membership.worker_count == 4


def test_parameters_may_change_where_a_running_simulation_could(tmp_path: Path) -> None:
    with make("bowl", workers=2) as first:
        first.step(10)
        checkpoint = saved(first, tmp_path / "c")
    blend, sequential = Blend(growth_depth=2, weights="computed"), Sequential(iterations=30)
    with checkpoint.resume(sequential=sequential, blend=blend, load="bodies") as second:
        now = second.params
        assert (now.sequential.iterations, second.workers.growth_depth, now.load) == (30, 2, "bodies")
        second.step(5)
    for name, value in {"precision": "float64", "timestep": 0.001, "units": Units(length=2.0)}.items():
        with pytest.raises(LapjointError, match=f"{name} cannot change when a run goes on, it stays"):
            checkpoint.resume(**{name: value})
    with pytest.raises(LapjointError, match="no parameter named 'worker'"):
        checkpoint.resume(worker=3)
    with pytest.raises(LapjointError, match="121 workers for 120 bodies"):
        checkpoint.resume(workers=121)


def test_a_partition_file_is_not_needed_again(tmp_path: Path) -> None:
    file = tmp_path / "partition.txt"
    file.write_text("".join(f"{i % 2}\n" for i in range(SIZES["bowl"])))
    with make("bowl", workers=2, partition=str(file)) as first:
        first.step(5)
        checkpoint = saved(first, tmp_path / "c")
    file.unlink()
    with checkpoint.resume() as second:
        assert second.params.partition == str(file)
        second.step()


# ---- what goes with it ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_recording_says_what_it_continues(tmp_path: Path) -> None:
    with make("bowl") as first:
        run(first, 6, record=tmp_path / "first", record_every=2)
        checkpoint = saved(first, tmp_path / "c")
    with checkpoint.resume() as second:
        run(second, 6, record=tmp_path / "second", record_every=2)
    one, two = Recording(tmp_path / "first"), Recording(tmp_path / "second")
    assert one.resumed_from is None
    assert two.resumed_from == {"checkpoint": str(checkpoint.path), "step_count": 6}
    assert [*one.steps, *two.steps] == [2, 4, 6, 8, 10, 12]
    assert np.allclose(np.diff([*one.times, *two.times]), 0.01)


def test_contacts_of_the_last_step_can_be_read(tmp_path: Path) -> None:
    with make("building", workers=3) as first:
        first.step(5)
        checkpoint = saved(first, tmp_path / "c")
        contacts = first.contacts.pairs()
    with checkpoint.resume() as second:
        assert np.array_equal(second.contacts.pairs().bodies, contacts.bodies)
        assert np.array_equal(second.workers.overlap_states, first.workers.overlap_states)


KEPT = {
    *("now", "coupling", "elastic", "frozen", "glued", "reports", "kinematic", "runtime", "recovery", "sensing"),
    "profile",  # its contacts
}
MADE_ANEW = {"given", "incidents", "stopped", "is_closed", "unlock_scene"}
MADE_ANEW |= {"queries"}  # changes nothing
MADE_ANEW |= {"last_step_ms"}  # decides only how many steps workers take by themselves
MADE_ANEW |= {"use"}  # by which thread, now
MADE_ANEW |= {"has_stepped"}  # since it was made: forces of a step before that are not kept
"""Of the scene and the parameters, or of what was, for those who look."""
NO_STATE = {
    "before_stop",
    "at_close",
    "contacts_wanted",
    "resumed_from",
    "incidents",
    "_callbacks",
}  # for those who look
NO_STATE |= {"bodies", "joints", "contacts", "queries", "kinematic", "events", "workers"}  # facets of the core
PARTS = {
    "loads": ("_scene", "_joint_count", "_kind", "_threshold", "_cpu_ms", "_last_repartition", "_duplicated"),
    "commands": (
        "_known",
        "_known_as_of",
        "_counted",
        "_known_count",
        "_command_lists",
        "_reset",
        "_set",
        "forces",
        "_iterations",
        "_scene",
        "_extent",
        "_breaks",
        "_tells_all_broken",
        "_released",
        "motions",
        "_tells_motions",
        "change_count",
        "inside",
        "drives",
        "_tells_all_drives",
    ),
    "membership": (
        "body_count",
        "worker_count",
        "bits",
        "load",
        "cost",
        "rate",
        "since_left",
        "must_wait",
        "change_count",
    ),
    "repartition": (
        *("wanted_count", "_scene", "requested", "last_count", "bits", "placed"),
        "blind",  # within a decision
    ),
    "elastic": ("least", "most", "_looks"),
    "frozen": ("_states",),
    "life": ("scene",),
    "breaks": ("_kind", "_tables"),
    "hits": ("_kind", "_tables"),
    "slides": ("_kind", "_tables"),
    "touches": ("_log", "_touching"),
    "kinematic": ("_scene", "_timestep", "changed"),
    "drives": (
        *("_scene", "_joint_count", "_axes", "_counted", "_first_row", "_can"),  # of the scene
        *("_targets", "_is_set", "_half_turns"),
        *("_is_changed", "_has_turned", "_has_news"),  # workers are told all anew
    ),
    "detection": (
        *("_scene", "_params", "_algorithms", "_joint_edges", "jointed", "_detector", "_made", "_contacts"),
        *("_knows_joints", "_knows_bodies", "is_unchanged"),
    ),
    "recovery": (
        *("incidents", "_scene", "_params", "_runtime", "_builder", "_frozen", "_remove"),
        *("_plan", "_overlap", "_overlap_before", "_number"),  # of the step that is taken
        *("_failed_at", "_put_back_now", "_removed_now", "_quarantined", "_one_by_one_until", "_surges"),
        "_surged_now",  # the same
    ),
}


def test_every_attribute_of_a_simulation_is_kept_or_made_anew() -> None:
    """A new attribute that decides how a simulation goes on belongs into the state of its part."""
    with make("bowl", workers=2) as simulation:
        simulation.step()
        assert set(vars(simulation)) == NO_STATE | {"_core"}
        assert set(vars(simulation._core)) == KEPT | MADE_ANEW
        for facet in ("bodies", "joints", "contacts", "queries", "kinematic", "events", "workers"):
            assert set(vars(getattr(simulation, facet))) == {"_core"}
        parts = parts_of(simulation._core)
        assert set(parts) == {*PARTS, "last_step", "table", "coupling", "workers"}
        for name, known in PARTS.items():
            assert set(vars(parts[name])) == set(known), name
        now = {"scene", "params", "algorithms", "membership", "detection", "loads", "repartition", "commands"}
        assert set(vars(simulation._core.now)) == now | {"replies", "step_count"}
