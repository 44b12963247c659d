"""The directory of checkpoints: one run at a time has it, and a run goes on when it is gone."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

from checkpoint.test_checkpoint_files import small_simulation, steps_in
from lapjoint import Checkpoint, CheckpointWriter, LapjointError
from lapjoint.cli import app
from lapjoint.run import run

TAKEN = "c: another run writes checkpoints there, expected another directory"


def test_two_runs_cannot_write_into_one_directory(tmp_path: Path) -> None:
    with small_simulation() as first, small_simulation() as second:
        CheckpointWriter(tmp_path / "c", first)
        with pytest.raises(LapjointError, match=TAKEN):
            CheckpointWriter(tmp_path / "c", second)
        first.close()
        CheckpointWriter(tmp_path / "c", second).save(second)
    assert steps_in(tmp_path / "c") == [0]


def test_what_the_first_is_about_to_write_is_left_alone(tmp_path: Path) -> None:
    """The second one took it for what a killed run had left."""
    with small_simulation() as first, small_simulation() as second:
        CheckpointWriter(tmp_path / "c", first)
        part = tmp_path / "c/step-000000001.checkpoint.part"
        part.touch()
        with pytest.raises(LapjointError, match=TAKEN):
            CheckpointWriter(tmp_path / "c", second)
        assert part.exists()


def test_a_checkpoint_is_resumed_once_at_a_time(tmp_path: Path) -> None:
    with small_simulation() as simulation:
        CheckpointWriter(tmp_path / "c", simulation).save(simulation)
    with Checkpoint(tmp_path / "c").resume() as first, Checkpoint(tmp_path / "c").resume() as second:
        CheckpointWriter(tmp_path / "c", first)
        with pytest.raises(LapjointError, match=TAKEN):
            CheckpointWriter(tmp_path / "c", second)
        CheckpointWriter(tmp_path / "d", second)


def test_a_simulation_that_nobody_has_any_more_leaves_the_directory(tmp_path: Path) -> None:
    simulation = small_simulation()
    writer = CheckpointWriter(tmp_path / "c", simulation)
    del simulation
    with small_simulation() as second:
        CheckpointWriter(tmp_path / "c", second)
    assert writer.saved_step is None


@pytest.mark.parametrize("by", ["nothing", "link", "other run"])
def test_a_directory_that_is_removed_is_a_warning_and_the_run_goes_on(tmp_path: Path, by: str) -> None:
    """It was a traceback."""
    directory = tmp_path / "c"
    with small_simulation() as simulation, small_simulation() as other:
        writer = CheckpointWriter(directory, simulation, every=4)

        def remove(_: object) -> None:
            if simulation.step_count == 6:
                shutil.rmtree(directory)
                if by == "link":
                    directory.symlink_to(tmp_path / "elsewhere")
                elif by == "other run":
                    CheckpointWriter(directory, other).save(other)

        simulation.on_step(remove)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert run(simulation, 10, checkpoints=writer).steps == 10
        expected = "the checkpoint cannot be written: its directory was removed while the run went on; there is none"
        assert [str(one.message).partition(": ")[2] for one in caught] == [expected] * 2  # at step 8 and at the end
        assert writer.saved_step is None
        assert not (tmp_path / "elsewhere").exists()
        if by == "other run":
            assert steps_in(directory) == [0]


def test_a_run_that_is_refused_leaves_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recording's place was taken between the look and the start."""
    monkeypatch.setattr("lapjoint.cli.outputs.check_place", lambda path: None)
    (tmp_path / "r").mkdir()
    (tmp_path / "r/notes").touch()
    words = ["run", "bowl", "--size", "5", "--runtime", "inline", "--steps", "1"]
    words += ["--record", str(tmp_path / "r"), "--checkpoint", str(tmp_path / "c")]
    with pytest.raises(LapjointError, match="r: is not empty"):
        CliRunner().invoke(app, words, catch_exceptions=False)
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
    assert [path.name for path in (tmp_path / "r").iterdir()] == ["notes"]
