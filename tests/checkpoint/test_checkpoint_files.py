"""Files of checkpoints: whole or not at all, told apart from anything else; and the command line around them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from lapjoint import (
    Box,
    Checkpoint,
    CheckpointWriter,
    LapjointError,
    Params,
    Plane,
    Recording,
    Scene,
    Simulation,
)
from lapjoint.checkpoint import layout
from lapjoint.checkpoint.layout import HEAD_SIZE, checkpoint_files, file_name, write_checkpoint
from lapjoint.cli import app
from lapjoint.run import run
from parallel_support import poll

LAPJOINT = [str(Path(sys.executable).parent / "lapjoint")]


def small_scene(count: int = 3) -> Scene:
    scene = Scene("boxes", timestep=0.004, iterations=10)
    scene.add_static(Plane())
    scene.add_bodies(Box((1.0, 1.0, 1.0)), [(0.0, 0.0, 0.5 + k) for k in range(count)])
    return scene


def small_simulation() -> Simulation:
    return Simulation(small_scene(), Params(runtime="inline"))


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A checkpoint of three boxes, after two steps."""
    with small_simulation() as simulation:
        simulation.step(2)
        return CheckpointWriter(tmp_path / "sample", simulation).save(simulation)


def steps_in(directory: Path) -> list[int | None]:
    return [layout.step_of(path) for path in checkpoint_files(directory)]


# ---- damage ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_file_torn_anywhere_is_refused(sample: Path, tmp_path: Path) -> None:
    whole, torn = sample.read_bytes(), tmp_path / "torn"
    with open(torn, "wb") as file:
        file.write(whole)
    for length in range(len(whole) - 1, -1, -1 if len(whole) < 30000 else -7):
        os.truncate(torn, length)
        with pytest.raises(LapjointError, match=r"torn: (not a lapjoint checkpoint|damaged checkpoint)"):
            Checkpoint(torn)
    torn.write_bytes(whole + b"\0")
    with pytest.raises(LapjointError, match="damaged checkpoint"):
        Checkpoint(torn)


@pytest.mark.slow
def test_a_flipped_bit_anywhere_is_refused(sample: Path, tmp_path: Path) -> None:
    whole, flipped = sample.read_bytes(), tmp_path / "flipped"
    flipped.write_bytes(whole)
    with open(flipped, "r+b", buffering=0) as file:
        for place in [*range(HEAD_SIZE), *range(HEAD_SIZE, len(whole), 11)]:
            for bit in (0, 3, 7):
                os.pwrite(file.fileno(), bytes([whole[place] ^ (1 << bit)]), place)
                with pytest.raises(LapjointError, match=r"flipped: .*(not a lapjoint|damaged|version)"):
                    Checkpoint(flipped)
            os.pwrite(file.fileno(), whole[place : place + 1], place)
    assert Checkpoint(flipped).step_count == 2


def test_foreign_files_and_places_are_named(sample: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "notes.checkpoint"
    for content in (b"", b"hello", np.random.default_rng(0).bytes(1000), small_scene_file(tmp_path).read_bytes()):
        foreign.write_bytes(content)
        with pytest.raises(LapjointError, match=r"notes\.checkpoint: not a lapjoint checkpoint"):
            Checkpoint(foreign)
    with pytest.raises(LapjointError, match="nowhere: No such file"):
        Checkpoint(tmp_path / "nowhere")
    with pytest.raises(LapjointError, match="there is no checkpoint in this directory"):
        Checkpoint(tmp_path)


def small_scene_file(tmp_path: Path) -> Path:
    return Path(small_scene().save(tmp_path / "boxes.npz"))


@pytest.mark.parametrize("version", [0, 2])
def test_another_version_is_named(sample: Path, tmp_path: Path, version: int) -> None:
    other = tmp_path / "other"
    other.write_bytes(sample.read_bytes().replace(b"lapjoint checkpoint 1 ", b"lapjoint checkpoint %d " % version, 1))
    with pytest.raises(LapjointError, match=f"other: checkpoint version {version}, this lapjoint reads 1"):
        Checkpoint(other)


def test_states_that_are_not_finite_are_refused(sample: Path, tmp_path: Path) -> None:
    """They were taken, and a worker failed in the first step."""
    arrays, description = layout.read_checkpoint(sample)
    states = arrays["table/states"].copy()
    states[1, 8] = np.nan
    wrong = tmp_path / "wrong"
    write_checkpoint(wrong, description, {**arrays, "table/states": states})
    with pytest.raises(LapjointError, match=r"wrong: damaged checkpoint .*table/states is not finite for body 1"):
        Checkpoint(wrong).resume()


@pytest.mark.parametrize(
    "missing", ["table/states", "params", "workers/0", "membership/bits", "step_count", "coupling/weight", "parts"]
)
def test_a_whole_file_with_something_missing_is_refused(sample: Path, tmp_path: Path, missing: str) -> None:
    arrays, description = layout.read_checkpoint(sample)
    arrays.pop(missing, None)
    description.pop(missing, None)
    write_checkpoint(tmp_path / "less", description, arrays)
    with pytest.raises(LapjointError, match=f"less: damaged checkpoint .*{missing.split('/')[-1]}"):
        Checkpoint(tmp_path / "less").resume()


def test_a_newest_that_is_torn_names_the_one_before_it(tmp_path: Path) -> None:
    with small_simulation() as simulation:
        writer = CheckpointWriter(tmp_path / "c", simulation)
        simulation.step()
        older = writer.save(simulation)
        simulation.step()
        newer = writer.save(simulation)
    os.truncate(newer, 3000)
    with pytest.raises(LapjointError, match=f"{newer.name}: damaged checkpoint.*the one before it is .*{older.name}"):
        Checkpoint(tmp_path / "c")
    assert Checkpoint(older).step_count == 1


def test_another_version_of_lapjoint_is_a_warning(sample: Path, tmp_path: Path) -> None:
    arrays, description = layout.read_checkpoint(sample)
    description["versions"]["lapjoint"] = "0.0.1"
    write_checkpoint(tmp_path / "old", description, arrays)
    with pytest.warns(UserWarning, match=r"written with lapjoint 0\.0\.1.*may not go on bit for bit"):
        Checkpoint(tmp_path / "old").resume().close()


# ---- writing -----------------------------------------------------------------------------------------------------


def test_the_newest_few_stay(tmp_path: Path) -> None:
    with small_simulation() as simulation:
        writer = CheckpointWriter(tmp_path / "c", simulation, every=3, keep=2)
        simulation.on_step(writer.after_step)
        simulation.step(2)
        assert steps_in(tmp_path / "c") == []
        simulation.step(9)
    assert steps_in(tmp_path / "c") == [6, 9]
    assert Checkpoint(tmp_path / "c").path.name == file_name(9)


def test_a_directory_is_for_one_run(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    with small_simulation() as simulation:
        writer = CheckpointWriter(directory, simulation, every=2)
        simulation.on_step(writer.after_step)
        simulation.step(4)
        with pytest.raises(LapjointError, match="c: has checkpoints of another run"):
            CheckpointWriter(directory, simulation)
    with Checkpoint(directory).resume() as second:
        CheckpointWriter(directory, second)
    with Checkpoint(directory / file_name(2)).resume() as second:
        with pytest.raises(LapjointError, match=r"has a later checkpoint \(step-000000004"):
            CheckpointWriter(directory, second)
        CheckpointWriter(tmp_path / "d", second)
        CheckpointWriter(tmp_path / "made" / "on" / "the way", second)
        (tmp_path / "file").write_text("")
        for path, reason in {
            "file": "is a file",
            "file/y": "is a file, expected a directory",
            ".": "is not empty",
        }.items():
            with pytest.raises(LapjointError, match=reason):
                CheckpointWriter(tmp_path / path, second)
        for wrong in ({"every": -1}, {"keep": 0}, {"every": 1.5}):
            with pytest.raises(LapjointError, match="expected a whole number, at least"):
                CheckpointWriter(tmp_path / "e", second, **wrong)  # type: ignore[arg-type]


FULL = """
import resource, sys, warnings
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from lapjoint.checkpoint import CheckpointWriter
from lapjoint.run import run
from checkpoint.test_checkpoint_files import small_simulation, steps_in

with small_simulation() as simulation, warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    writer = CheckpointWriter(sys.argv[1], simulation, every=4)
    fill = lambda simulation: simulation.step_count == 6 and resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
    simulation.on_step(fill)
    summary = run(simulation, 13, checkpoints=writer)
print(summary.steps, len(caught))
print(caught[-1].message)
"""


@pytest.mark.slow
def test_a_full_disk_is_a_warning_and_the_run_goes_on(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(directory), str(Path(__file__).parents[1])], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    counts, message = done.stdout.splitlines()
    assert counts == "13 3"  # at steps 8 and 12 and at the end
    assert "step-000000013.checkpoint: the checkpoint cannot be written: a file is too large: " in message
    assert f"; the last one is {directory / file_name(4)}" in message
    assert [path.name for path in directory.iterdir()] == [file_name(4)]
    assert Checkpoint(directory).step_count == 4


KILLED = """
import os, sys, time
sys.path.insert(0, sys.argv[2])
from lapjoint.checkpoint import CheckpointWriter, layout
from checkpoint.test_checkpoint_files import small_simulation

with small_simulation() as simulation:
    writer = CheckpointWriter(sys.argv[1], simulation)
    simulation.step()
    writer.save(simulation)
    simulation.step()
    name, wait = sys.argv[3], lambda *_: (print("now", flush=True), time.sleep(600))
    owner = layout if name == "pack_arrays" else os
    if name == "pack_arrays":
        def half(arrays, description):
            for i, data in enumerate(whole(arrays, description)):
                yield data
                if i == 20:
                    wait()
        whole, layout.pack_arrays = layout.pack_arrays, half
    else:
        setattr(os, name, wait)
    writer.save(simulation)
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["pack_arrays", "fsync", "replace"])
def test_a_run_killed_while_it_writes_leaves_the_checkpoint_before(tmp_path: Path, moment: str) -> None:
    directory = tmp_path / "c"
    command = [sys.executable, "-c", KILLED, str(directory), str(Path(__file__).parents[1]), moment]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "now\n"
        child.kill()
    assert sorted(path.name for path in directory.iterdir()) == [".lock", file_name(1), file_name(2) + ".part"]
    with Checkpoint(directory).resume() as second:
        assert second.step_count == 1
        writer = CheckpointWriter(directory, second)
        assert sorted(path.name for path in directory.iterdir()) == [".lock", file_name(1)]
        second.step()
        writer.save(second)
    assert Checkpoint(directory).step_count == 2


# ---- the command line --------------------------------------------------------------------------------------------


def invoke(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def summary_of(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())
    return found


RUN = ("run", "chain", "--size", "8", "--runtime", "inline", "--iterations", "10")


@pytest.mark.slow
def test_resume_goes_on_to_the_steps_first_asked_for(tmp_path: Path) -> None:
    whole, directory, file = tmp_path / "whole.json", tmp_path / "c", tmp_path / "rest.json"
    invoke(*RUN, "--steps", "40", "--workers", "2", "--json", whole)
    out = invoke(*RUN, "--steps", "40", "--workers", "2", "--checkpoint", directory, "--checkpoint-every", "15")
    assert f"checkpoint at step 40: {directory}" in out.replace("\n", "")
    assert steps_in(directory) == [15, 30, 40]
    (directory / file_name(40)).unlink()
    (directory / file_name(30)).unlink()
    record = tmp_path / "r"
    out = invoke("resume", directory, "--json", file, "--record", record)
    assert "going on from step 15" in out
    assert summary_of(file)["steps"] == 25
    assert summary_of(file)["state_hash"] == summary_of(whole)["state_hash"]
    assert steps_in(directory) == [15, 30, 40]
    assert Recording(record).steps.tolist() == list(range(16, 41))
    with pytest.raises(LapjointError, match="the run has done its 40 steps; --steps sets how many more"):
        invoke("resume", directory)
    invoke("resume", directory, "--steps", "5", "--workers", "3", "--checkpoint-keep", "1", "--json", file)
    assert (summary_of(file)["steps"], summary_of(file)["workers"]) == (5, 3)
    assert steps_in(directory) == [45]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ((*RUN, "--checkpoint-every", "5"), "without --checkpoint"),
        ((*RUN, "--checkpoint", "c", "--checkpoint-every", "0"), "--checkpoint-every is 0, expected at least 1"),
        ((*RUN, "--checkpoint", "c", "--checkpoint-keep", "0"), "--checkpoint-keep is 0, expected at least 1"),
        (("resume", "nowhere"), "nowhere: No such file"),
        (("resume", "nowhere", "--steps", "5", "--seconds", "1"), "--steps and --seconds are both given"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, tuple) else "",
)
def test_mistakes_are_named_before_anything_starts(
    options: tuple[str, ...], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LapjointError, match=reason):
        invoke(*options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_ctrl_c_writes_a_last_checkpoint(tmp_path: Path) -> None:
    directory, file = tmp_path / "c", tmp_path / "run.json"
    command = [*LAPJOINT, "run", "chain", "--size", "8", "--steps", "10000000", "--workers", "2"]
    command += ["--checkpoint", str(directory), "--checkpoint-every", "50", "--json", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert poll(lambda: directory.is_dir() and checkpoint_files(directory), 60)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (130, "")
    summary = summary_of(file)
    checkpoint = Checkpoint(directory)
    assert checkpoint.step_count == summary["steps"]
    assert f"checkpoint at step {summary['steps']}" in out
    assert (checkpoint.end, checkpoint.every, checkpoint.keep) == (10000000, 50, 3)
    with checkpoint.resume(runtime="inline") as second:
        assert second.state_hash == summary["state_hash"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run(second, 3)
