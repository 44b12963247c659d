"""Comparisons and reports of runs in which bodies come and go."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from lapjoint import Ball, Box, LapjointError, Params, Plane, Recording, RecordingWriter, Scene, Simulation, Sphere
from lapjoint.cli import app
from lapjoint.scene.serialize import scene_at
from lapjoint.studies.compare import compare, run_single, state_differences
from lapjoint.studies.report.accuracy import error_series
from lapjoint.studies.report.runs import Run
from lapjoint.studies.report.tables import run_origins


def record(path: Path, gone_at: int = 20, *, shift: float = 0.0, coupling: str = "tight", bodies: int = 4) -> Recording:
    """A row of boxes: two jointed balls come after 10 steps, and the first of them goes with its joint."""
    scene = Scene("row")
    scene.add_static(Plane())
    scene.add_bodies(Box((1.0, 1.0, 1.0)), [[2.0 * i, 0.0, 0.5] for i in range(bodies)])
    params = Params(workers=2, runtime="inline", coupling=coupling)
    with Simulation(scene, params) as simulation, RecordingWriter(path, simulation, every=5) as writer:
        for step in range(30):
            if step == 10:
                new = simulation.bodies.add(Sphere(0.3), [[shift, 0, 2], [2 + shift, 0, 2]])
                simulation.joints.add_one(Ball(), new[0], new[1], (1, 0, 2))
            if step == gone_at:
                simulation.bodies.remove([bodies])
            simulation.step()
            writer.add(simulation)
    return Recording(path)


# ---- compare ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_only_who_is_there_in_both_is_compared(tmp_path: Path) -> None:
    a, b = record(tmp_path / "a"), record(tmp_path / "b", 15, shift=0.25)
    found = compare(a, b)
    assert found.steps.tolist() == [5, 10, 15, 20, 25, 30]
    assert found.position_largest == pytest.approx([0, 0, 0.25, 0.25, 0.25, 0.25], abs=0.01)
    assert found.position_body[2:].tolist()[1:] == [5, 5, 5]
    assert np.isfinite(found.rotation_largest).all()
    assert found.notes[-1] == "1 of 6 frames have bodies of one run only, up to 1: not compared"
    same = compare(a, record(tmp_path / "c"))
    assert same.position_largest.max() == 0
    assert same.notes == []


@pytest.mark.slow
def test_runs_that_end_with_other_numbers_of_bodies_are_compared(tmp_path: Path) -> None:
    a, b = record(tmp_path / "a"), record(tmp_path / "b", bodies=4).scene
    with (
        Simulation(scene_at(Scene, b, (2, 4, 0)), Params(runtime="inline")) as simulation,
        RecordingWriter(tmp_path / "plain", simulation, every=5) as writer,
    ):
        for _ in range(30):
            simulation.step()
            writer.add(simulation)
    found = compare(a, Recording(tmp_path / "plain"))
    assert found.body_count == 4
    assert found.notes[-1] == "4 of 6 frames have bodies of one run only, up to 2: not compared"
    with pytest.raises(LapjointError, match=r"has 4 bodies, .* has 5: expected two runs of one scene"):
        compare(a, record(tmp_path / "five", bodies=5))


def test_nobody_in_common_is_no_difference() -> None:
    assert state_differences(np.zeros((3, 13)), np.zeros((3, 13)), np.empty(0, np.int64)) == (0.0, 0.0, -1, 0.0)


def test_a_run_with_changes_is_not_run_again(tmp_path: Path) -> None:
    with pytest.raises(LapjointError, match=r"were added or removed while it ran, .*: expected a second recording"):
        run_single(record(tmp_path / "a"), tmp_path / "single")
    assert not (tmp_path / "single").exists()


def test_the_command_says_so_in_one_line(tmp_path: Path) -> None:
    record(tmp_path / "a")
    record(tmp_path / "b", 15)
    words = ["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json", str(tmp_path / "c.json")]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("note:") == 1
    assert "1 of 6 frames have bodies of one run only" in result.stdout
    assert json.loads((tmp_path / "c.json").read_text())["body_count"] == 6


# ---- report ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_report_has_who_came_and_went(tmp_path: Path) -> None:
    run = Run(record(tmp_path / "a", coupling="blend"))
    assert (run.body_count, run.joint_count) == (4, 0)
    assert run.recording.living_counts(run.steps).tolist() == [4] * 10 + [6] * 10 + [5] * 10
    assert (run.duplicated_share >= 0).all()
    assert "4, 2 made, 1 removed" in run_origins([run]).rows[0]
    gaps = error_series(run)["joint_gap_max"].values
    assert (gaps < 1.0).all()
    assert not gaps[-1:].any()
    for other in (record(tmp_path / "b"), record(tmp_path / "c", 15)):
        assert Run(other).group == run.group
    words = ["report", str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "4, 2 made, 1 removed" in (tmp_path / "out" / "index.html").read_text()
