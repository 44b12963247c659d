"""Workers that come and go while a simulation runs."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from lapjoint import LapjointError, Measures, Params, Recording, Scene, Simulation, scenes
from lapjoint.algorithms.membership import Membership, resized
from lapjoint.cli import app
from lapjoint.run import run
from lapjoint.server.elastic import PATIENCE, Elastic
from parallel_support import children
from recording_support import table


def start(scene: Scene, workers: int, **params: Any) -> Simulation:
    return Simulation(
        scene, Params.from_options(**{"workers": workers, "runtime": "inline", "validate": True, **params})
    )


def one_step(simulation: Simulation) -> float:
    """Take a step; how far its velocities are from those that one engine makes of the same start [m/s]."""
    measures = Measures(simulation, ["one_step_difference"])
    measures.before_step(simulation)
    simulation.step()
    return float(measures.after_step(simulation)["one_step_difference"])


@pytest.fixture(scope="module")
def bowl() -> Scene:
    return scenes.build("bowl", size=300)


# ---- the number changes ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("bowl", 4, 1),
        ("bowl", 70, 3),
        ("building", 5, 2),
        ("two-way-bridge", 1, 3),
        ("two-way-bridge", 2, 5),
        ("bowl", 64, 65),
    ],
)
def test_no_state_jumps(name: str, before: int, after: int) -> None:
    scene = scenes.build(name, size=200 if before < 10 else 80)
    with start(scene, before) as simulation, start(scene, before) as unchanged:
        for each in (simulation, unchanged):
            each.step(20 if before < 10 else 4)
        simulation.workers.set_count(after)
        assert simulation.state_hash == unchanged.state_hash
        errors = [one_step(each) for each in (simulation, unchanged)]
        apart = np.linalg.norm(simulation.states[:, :3] - unchanged.states[:, :3], axis=1)
        # Fewer workers push out at once what more left at their interfaces: 1.8 mm of the building's 4 mm.
        assert apart.max() < (2e-3 if name == "building" else 1e-3)
        usual = max(errors[1], one_step(simulation))  # before and after the change
        assert errors[0] < 1.25 * usual + 1e-3, "the step is as near to that of one engine as any other"
        simulation.step()
        assert simulation.workers.membership.worker_count == simulation.params.workers == after
        assert len(simulation.replies) == len(simulation.profile.worker_cpu_ms) == after
        (event,) = simulation.incidents
        assert (event.kind, event.text) == ("workers", f"workers: {after}, before {before}")
        loads = [len(simulation.workers.membership.active(worker)) for worker in range(after)]
        assert min(loads) > 0
        assert simulation.workers.weights().shape == (scene.body_count, after)
        simulation.step(5)


@pytest.mark.slow
def test_workers_of_processes_come_and_go(bowl: Scene) -> None:
    with start(bowl, 2, runtime="process") as simulation, start(bowl, 2) as inline:
        for count in (5, 1, 3):
            for each in (simulation, inline):
                each.step(4)
                each.workers.set_count(count)
                each.step(4)
            assert len(children()) == count
            assert simulation.state_hash == inline.state_hash
    assert children() == []


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["blend", "tight"])
def test_any_number_follows_any_other(coupling: str, bowl: Scene) -> None:
    chance = random.Random(3)
    with start(bowl, 3, coupling=coupling) as simulation:
        for _ in range(15):
            simulation.workers.set_count(chance.choice([1, 2, 3, 4, 7, 66]))
            if chance.random() < 0.2 and coupling == "blend":
                simulation.workers.set_growth_depth(chance.randrange(3))
            if chance.random() < 0.2:
                simulation.workers.set_load(chance.choice(["bodies", "contacts", "time"]))
            simulation.step(chance.randrange(4))
        simulation.workers.set_count(4)
        simulation.step(3)
        assert simulation.workers.membership.worker_count == simulation.params.workers == 4
        assert np.isfinite(simulation.states).all()


def test_a_frozen_body_stays_frozen(bowl: Scene) -> None:
    with start(bowl, 2) as simulation:
        simulation.step(3)
        simulation.bodies.freeze([9])
        before = simulation.states[9]
        simulation.workers.set_count(5)
        simulation.step(5)
        simulation.workers.set_count(1)
        simulation.step(5)
        assert np.array_equal(simulation.states[9, :7], before[:7])


def test_numbers_that_cannot_be(bowl: Scene) -> None:
    with start(bowl, 2) as simulation:
        with pytest.raises(LapjointError, match="workers is 0, expected 1 to 1024"):
            simulation.workers.set_count(0)
        with pytest.raises(LapjointError, match=f"301 workers for {bowl.body_count} bodies|expected one per body"):
            simulation.workers.set_count(bowl.body_count + 1)
        simulation.workers.set_count(2)
        simulation.step(2)
        assert simulation.incidents == []


def test_bits_of_other_numbers_of_workers() -> None:
    chance = np.random.default_rng(0)
    for before, after in ((1, 130), (130, 65), (65, 64), (64, 1), (3, 2)):
        membership = Membership(chance.integers(0, min(before, after), 40), before)
        wanted = table(membership)[:, : min(before, after)]
        bits = resized(membership.bits, after)
        assert bits.shape == (40, -(-after // 64))
        membership.set_worker_count(after)
        assert np.array_equal(membership.bits, bits)
        assert np.array_equal(table(membership)[:, : wanted.shape[1]], wanted)
        assert membership.load.tolist() == table(membership).sum(axis=0).tolist()


# ---- recordings and summaries ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(1, 3), (4, 2)])
def test_a_recording_has_a_column_for_every_worker_that_there_was(
    bowl: Scene, tmp_path: Path, counts: tuple[int, int]
) -> None:
    before, after = counts
    rows: list[np.ndarray] = []
    with start(bowl, before) as simulation:

        def change(done: int) -> None:
            rows.append(simulation.profile.worker_body_count)
            if done == 5:
                simulation.workers.set_count(after)

        summary = run(simulation, 12, change, record=tmp_path / "run.zarr", measure="all")
        last = simulation.workers.weights()
    recording = Recording(tmp_path / "run.zarr")
    most = max(counts)
    assert recording.worker_count == most
    wanted = np.array([np.pad(row, (0, most - len(row))) for row in rows])
    assert np.array_equal(recording.profile["worker_body_count"], wanted)
    assert recording.measures["worker_residual"].shape == (12, most)
    assert np.array_equal(recording.measures["worker_residual"].max(axis=1), recording.profile["residual"])
    assert np.array_equal(recording.weights(-1)[:, :after], last)
    assert recording.membership(0)[:, :before].sum() == rows[0].sum()
    assert summary.worker_body_count_mean == pytest.approx(wanted.mean(axis=0))
    assert len(summary.worker_residual_mean) == most
    assert summary.workers == after
    assert [event.kind for event in recording.incidents] == ["workers"]
    assert len(recording.to_pandas()) == 12


def test_columns_come_late_in_a_long_recording(tmp_path: Path) -> None:
    """Chunks that are written already get zeros for the new columns."""
    from lapjoint.recording.growing import GrowingArray

    (tmp_path / "a").mkdir()
    array = GrowingArray(tmp_path / "a", "int64", [2], [4, 2], ["step", "worker"])
    array.append(np.arange(14).reshape(7, 2))
    array.flush()
    array.widen(5)
    array.append(np.arange(15).reshape(3, 5))
    array.flush(complete=True)
    import zarr

    wanted = np.zeros((10, 5), int)
    wanted[:7, :2], wanted[7:] = np.arange(14).reshape(7, 2), np.arange(15).reshape(3, 5)
    assert np.array_equal(zarr.open_array(tmp_path / "a", mode="r")[:], wanted)
    assert len(list((tmp_path / "a").glob("c.*"))) == 9, "every chunk has its file"


# ---- by itself -------------------------------------------------------------------------------------------------------


def wanted_counts(elastic: Elastic, count: int, *loads_ms: float) -> list[int]:
    counts = []
    for load in loads_ms:
        for _ in range(PATIENCE):
            count = elastic.wanted(count, load)
        counts.append(count)
    return counts


def test_the_number_follows_the_load_between_its_bounds() -> None:
    elastic = Elastic(Params(workers=2, max_workers=16), 1000)
    assert wanted_counts(elastic, 2, 5.0, 20.0, 21.0, 1000.0, 40.0, 30.0, 0.1) == [2, 5, 6, 16, 16, 8, 2]


def test_a_load_that_passes_for_a_moment_changes_nothing() -> None:
    elastic = Elastic(Params(workers=2, max_workers=16), 1000)
    for _ in range(20):
        for load in [*[50.0] * (PATIENCE - 1), 6.0]:
            assert elastic.wanted(2, load) == 2


@pytest.mark.slow
def test_a_run_takes_more_workers_when_the_load_grows_and_can_be_repeated() -> None:
    scene = scenes.build("building", size=200)
    hashes = []
    for _ in range(2):
        with start(scene, 1, max_workers=3, iterations=500, validate=False) as simulation:
            simulation.step(60)
            assert simulation.params.workers == 3
            simulation.workers.set_iterations(2)
            simulation.step(70)
            assert simulation.params.workers == 1
            assert [event.text for event in simulation.incidents] == ["workers: 3, before 1", "workers: 1, before 3"]
            hashes.append(simulation.state_hash)
    assert hashes[0] == hashes[1]


def test_workers_that_are_started_later_take_the_sweeps_that_are_set_now() -> None:
    scene, hashes = scenes.build("building", size=100), []
    for first in (7, 30):
        with start(scene, 1, solver="sequential", iterations=first) as simulation:
            simulation.workers.set_iterations(7)
            simulation.step()
            simulation.workers.set_count(2)
            simulation.step(3)
            hashes.append(simulation.state_hash)
    assert hashes[0] == hashes[1]


@pytest.mark.slow
def test_no_more_workers_than_bodies_or_than_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wanted_counts(Elastic(Params(workers=2, max_workers=16), 3), 2, 1000.0) == [3]
    with start(scenes.build("building", size=200), 1, max_workers=4, runtime="process", iterations=500) as simulation:
        simulation.step(30)
        monkeypatch.setattr("sys.executable", "/no/such/python")
        simulation.step(80)
        (event,) = simulation.incidents
        assert event.text.startswith("no more workers can be started: worker 1 cannot be started")
        assert simulation.params.workers == 1


def test_without_a_bound_the_number_stays() -> None:
    elastic = Elastic(Params(workers=2), 1000)
    assert not any(elastic.is_time_to_look(step) for step in range(100))


@pytest.mark.slow
def test_a_range_of_workers_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    run_it = ["run", "building", "--size", "200", "--runtime", "inline", "--steps", "60", "--iterations", "500"]
    result = CliRunner().invoke(app, [*run_it, "--workers", "1..2", "--json", str(file)], catch_exceptions=False)
    assert "workers: 2, before 1" in result.output
    summary = json.loads(file.read_text())
    assert summary["workers"] == len(summary["worker_body_count_mean"]) == 2
    for text, message in {
        "many": "--workers is 'many'",
        "2..": "expected auto, a number, or two",
        "4..2": "--workers is '4..2', expected the smaller number first: 2..4",
    }.items():
        refused = CliRunner().invoke(app, [*run_it, "--workers", text])
        assert message in str(refused.exception)
