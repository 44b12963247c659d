"""`lapjoint run` with --record and --measure: what is kept, and that it is kept however the run ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from lapjoint import LapjointError, Params, Recording, Simulation, scenes
from lapjoint.cli import app, main
from lapjoint.measures import joint_gaps, kinetic_energy
from lapjoint.measures.step import ALWAYS, UNITS
from lapjoint.recording import place
from lapjoint.run import RunSummary, run
from parallel_support import poll

LAPJOINT = [str(Path(sys.executable).parent / "lapjoint")]
ASKED_FOR = (
    "kinetic_energy",
    "potential_energy",
    "linear_momentum",
    "angular_momentum",
    "disagreement_position_max",
    "disagreement_position_mean",
    "disagreement_velocity_max",
    "disagreement_velocity_mean",
    "one_step_error_mean",
    "one_step_error_max",
    "one_step_difference_mean",
)
"""Keys of a summary that are null unless they were measured."""


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def invoke(tmp_path: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    """The summary of a run in this process, and what it printed."""
    file = tmp_path / "run.json"
    words = ["run", *arguments, "--runtime", "inline", "--json", str(file)]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(file.read_text(), parse_constant=refuse), str(result.stdout)


def values(recording: Recording) -> dict[str, Any]:
    return {name: recording.measures[name] for name in recording.measures}


# ---- what is kept ------------------------------------------------------------------------------------------------


def test_a_recording_holds_what_every_run_measures(tmp_path: Path) -> None:
    summary, shown = invoke(
        tmp_path, "bridge", "--workers", "2", "--coupling", "blend", "--steps", "10", "--record", str(tmp_path / "r")
    )
    assert f"recording: {tmp_path}/r" in shown.replace("\n", "")
    recording = Recording(tmp_path / "r")
    assert recording.complete
    assert (recording.frame_count, recording.every) == (10, 1)
    found = values(recording)
    assert tuple(found) == ALWAYS
    assert found["worker_residual"].shape == (10, 2)
    assert summary["joint_gap_max"] == found["joint_gap_max"].max() > 0
    assert summary["joint_gap_sum_mean"] == pytest.approx(found["joint_gap_sum"].mean())
    assert summary["penetration_max"] == found["penetration_max"].max()
    assert summary["penetration_sum_mean"] == pytest.approx(found["penetration_sum"].mean())
    assert summary["worker_residual_mean"] == pytest.approx(found["worker_residual"].mean(axis=0).tolist())
    assert np.array_equal(found["worker_residual"].max(axis=1), recording.profile["residual"])
    assert [summary[key] for key in ASKED_FOR] == [None] * len(ASKED_FOR)


@pytest.mark.slow
def test_everything_can_be_measured(tmp_path: Path) -> None:
    options = "bridge --workers 2 --coupling blend --steps 24 --measure all --one-step-every 4 --record-every 3"
    summary, shown = invoke(tmp_path, *options.split(), "--record", str(tmp_path / "r"))
    for title in ("energy", "disagreement", "one-step error"):
        assert f" {title} " in shown
    recording = Recording(tmp_path / "r")
    assert recording.steps.tolist() == list(range(3, 25, 3))
    found = values(recording)
    assert tuple(found) == tuple(UNITS)
    assert {name: column.shape for name, column in found.items() if column.shape != (24,)} == {
        "worker_residual": (24, 2),
        "linear_momentum": (24, 3),
        "angular_momentum": (24, 3),
    }
    for name in ("one_step_error", "one_step_difference"):
        assert np.flatnonzero(np.isfinite(found[name])).tolist() == list(range(3, 24, 4))
    # A frame's states are rounded to float32.
    for i, step in enumerate(recording.steps):
        states = recording.frame(i).states
        assert kinetic_energy(recording.scene, states) == pytest.approx(found["kinetic_energy"][step - 1], rel=1e-5)
        assert joint_gaps(recording.scene, states).max() == pytest.approx(found["joint_gap_max"][step - 1], abs=1e-5)
    for key in ("kinetic_energy", "potential_energy", "linear_momentum", "angular_momentum"):
        assert summary[key] == found[key][-1].tolist()
    for what in ("position", "velocity"):
        key = f"disagreement_{what}"
        assert summary[f"{key}_max"] == found[f"{key}_max"].max() > 0
        assert summary[f"{key}_mean"] == pytest.approx(found[f"{key}_mean"].mean())
    assert summary["one_step_error_mean"] == pytest.approx(np.nanmean(found["one_step_error"]))
    assert summary["one_step_error_max"] == np.nanmax(found["one_step_error"]) > 0
    assert summary["one_step_difference_mean"] == pytest.approx(np.nanmean(found["one_step_difference"]))


def test_measures_need_no_recording(tmp_path: Path) -> None:
    summary, _ = invoke(tmp_path, "chain", "--steps", "5", "--measure", "kinetic_energy,linear_momentum")
    measured = {key for key in ASKED_FOR if summary[key] is not None}
    assert measured == {"kinetic_energy", "linear_momentum"}
    summary, _ = invoke(tmp_path, "chain", "--workers", "2", "--steps", "5", "--one-step-every", "2")
    measured = {key for key in ASKED_FOR if summary[key] is not None}
    assert measured == {"one_step_error_mean", "one_step_error_max", "one_step_difference_mean"}
    summary, _ = invoke(tmp_path, "chain", "--steps", "5", "--one-step-every", "6")
    assert summary["one_step_error_mean"] is None, "the sixth step was never taken"


def test_keys_are_added_at_the_end() -> None:
    keys = list(RunSummary.__dataclass_fields__)
    later = ["failure_count", "frozen_ids", "events", "stopped"]
    later += ["exchanges_mean", "exchanges_max", "residual_max", "interface_count_mean"]
    later += ["cut_share_mean", "coupling_reason", "penetration_interface", "penetration_interior"]
    later += ["joint_gap_interface", "joint_gap_interior", "solver_reason", "substeps", "joints"]
    later += ["substeps_mean", "substeps_max", "workers_reason", "broken_joint_count", "reported"]
    later += ["made_count", "removed_count"]
    assert keys[keys.index("state_hash") + 4 :] == [*ASKED_FOR, *later]


@pytest.mark.slow
def test_measuring_and_recording_leave_the_run_as_it_is(tmp_path: Path) -> None:
    options = ("bowl", "--size", "60", "--workers", "2", "--steps", "80")
    plain, _ = invoke(tmp_path, *options)
    watched, _ = invoke(tmp_path, *options, "--measure", "all", "--record", str(tmp_path / "r"))
    assert watched["state_hash"] == plain["state_hash"]
    same = set(plain) - set(ASKED_FOR) - {key for key in plain if "_ms" in key or "per_second" in key}
    same -= {"real_time_factor", "byte_count_mean"}  # what is sent depends on how many steps are taken at once
    assert {key: watched[key] for key in same} == {key: plain[key] for key in same}


@pytest.mark.slow
def test_how_the_scene_is_balanced_can_be_said(tmp_path: Path) -> None:
    options = "bowl --size 150 --workers 3 --steps 250 --iterations 5 --load bodies --linger 7 --repartition 1.01"
    summary, _ = invoke(tmp_path, *options.split(), "--record", str(tmp_path / "r"))
    recording = Recording(tmp_path / "r")
    params = recording.params
    assert (params.load, params.blend.linger, params.repartition) == ("bodies", 7, 1.01)
    assert summary["divided_count"] == recording.profile["divided"].sum() > 0


def test_a_run_of_no_steps_is_summed_up_too(tmp_path: Path) -> None:
    with Simulation(scenes.build("chain", 5), Params(runtime="inline")) as simulation:
        summary = run(simulation, 0, measure="all", record=tmp_path / "r")
    assert (summary.steps, summary.joint_gap_max, summary.divided_count) == (0, 0, 0)
    assert [getattr(summary, key) for key in ASKED_FOR] == [None] * len(ASKED_FOR)
    assert Recording(tmp_path / "r").complete


# ---- mistakes ----------------------------------------------------------------------------------------------------

MISTAKES = {
    "--measure gap": "no measure named 'gap'; known measures: all, joint_gap_sum",
    "--measure kinetic_energy,": "no measure named ''",
    "--record-every 2": "--record-every is given without --record",
    "--record new --record-every 0": "--record-every is 0, expected at least 1",
    "--one-step-every 0": "--one-step-every is 0, expected at least 1",
    "--record full": "full: is not empty",
    "--record full/file": "full/file: is a file",
    "--record full/file/where": "full/file is a file, expected a directory",
    "--load weight": "load is 'weight', expected one of contacts, bodies, time",
    "--linger -1": "linger is -1",
    "--repartition 0.5": "repartition is 0.5",
}


@pytest.mark.parametrize("options", MISTAKES)
def test_a_mistake_is_told_before_anything_starts(
    options: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a simulation was made")

    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setattr("lapjoint.Simulation.__init__", never)
    monkeypatch.setattr(sys, "argv", ["lapjoint", "run", "chain", *options.split()])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert MISTAKES[options] in err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "full"]


def test_a_full_disk_is_told_before_the_first_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place.shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with Simulation(scenes.build("chain"), Params(runtime="inline")) as simulation:
        with pytest.raises(LapjointError, match=r"r: 0\.001 MB are free"):
            run(simulation, 10, record=tmp_path / "r")
        assert simulation.step_count == 0
    assert list(tmp_path.iterdir()) == []


# ---- how a run ends ----------------------------------------------------------------------------------------------


def start_run(path: Path, *options: str) -> subprocess.Popen[str]:
    command = [*LAPJOINT, "run", "chain", "--size", "8", "--steps", "10000000", "--record", str(path), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def has_begun(path: Path) -> bool:
    return (path / "zarr.json").exists()


@pytest.mark.slow
def test_ctrl_c_leaves_a_complete_recording(tmp_path: Path) -> None:
    file, path = tmp_path / "run.json", tmp_path / "r"
    with start_run(path, "--workers", "2", "--measure", "all", "--json", str(file)) as child:
        assert poll(lambda: has_begun(path) and Recording(path).frame_count > 0, 60)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (130, "")
    summary = json.loads(file.read_text(), parse_constant=refuse)
    assert f"interrupted after {summary['steps']} of 10000000 steps" in out
    recording = Recording(path)
    assert recording.complete
    assert recording.frame_count == len(recording.profile["step_count"]) == summary["steps"] > 0
    assert recording.measures["kinetic_energy"][-1] == summary["kinetic_energy"]


@pytest.mark.slow
def test_a_killed_run_leaves_a_recording_that_opens(tmp_path: Path) -> None:
    """One at any moment from the first file on, one while it writes."""
    rng = np.random.default_rng(7)
    options = [("--runtime", "inline"), ("--workers", "2", "--measure", "all", "--one-step-every", "20")]
    paths = [tmp_path / "0", tmp_path / "1"]
    children = [start_run(path, *extra) for path, extra in zip(paths, options, strict=True)]
    for path, child in zip(paths, children, strict=True):
        with child:
            assert poll(lambda path=path: has_begun(path), 60)
            time.sleep(rng.uniform(0, 0.3))
            assert path == paths[0] or poll(lambda path=path: Recording(path).frame_count > 0, 60)
            child.send_signal(signal.SIGKILL)
            child.communicate(timeout=60)
        assert child.returncode == -signal.SIGKILL
    for path in paths:
        check_part(Recording(path))


def check_part(recording: Recording) -> None:
    """What a killed run has left is whole as far as it goes."""
    assert not recording.complete
    count = recording.frame_count
    assert recording.steps.tolist() == list(range(1, count + 1))
    steps = recording.profile["step_count"]
    assert len(steps) >= count
    assert steps.tolist() == list(range(1, len(steps) + 1))
    for column in values(recording).values():
        assert len(column) == len(steps)
    gaps = recording.measures["joint_gap_max"]
    for i in range(0, count, 1 + count // 5):
        states = recording.frame(i).states
        assert joint_gaps(recording.scene, states).max() == pytest.approx(gaps[i], abs=1e-5)
