"""The command line: what it prints, what it writes, how it fails and how it is interrupted."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lapjoint import Box, LapjointError, Plane, Scene, Sphere, scenes
from lapjoint.cli import app, main

LAPJOINT = [str(Path(sys.executable).parent / "lapjoint")]
KEYS = {
    "scene",
    "engine",
    "precision",
    "workers",
    "steps",
    "timestep",
    "iterations",
    "body_count",
    "joint_count",
    "contact_count_mean",
    "contact_point_count_mean",
    "step_ms_mean",
    "joint_gap_max",
    "penetration_max",
    "state_hash",
}


def invoke(*arguments: str | Path) -> str:
    """Run a command in this process; it must succeed. What it printed."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def run(tmp_path: Path, *arguments: str | Path) -> dict[str, Any]:
    """The summary of a run."""
    file = tmp_path / "run.json"
    invoke("run", *arguments, "--runtime", "inline", "--json", file)
    summary: dict[str, Any] = json.loads(file.read_text())
    return summary


def small_scene() -> Scene:
    scene = Scene("boxes", timestep=0.004, iterations=20)
    scene.add_static(Plane())
    scene.add_bodies(Box((1.0, 1.0, 1.0)), [(0.0, 0.0, 0.5 + k) for k in range(3)])
    return scene


# ---- scenes and help ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_scenes_lists_every_scene_with_its_counts() -> None:
    done = subprocess.run([*LAPJOINT, "scenes"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines()}
    for name in scenes.names():
        scene = scenes.build(name)
        assert rows[name][1:4] == [f"{n:,}" for n in (scene.body_count, scene.static_count, scene.joint_count)]


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["run", "--help"], ["scenes", "-h"], ["picture", "--help"]])
def test_help_goes_to_stdout(arguments: list[str]) -> None:
    text = invoke(*arguments)
    assert "Usage: " in text
    if arguments[0] == "run":
        assert "Example: lapjoint run" in text
        for option in ("--steps", "--seconds", "--size", "--seed", "--precision", "--iterations", "--json"):
            assert option in text


# ---- run ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_run_sums_up_on_screen_and_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    done = subprocess.run(
        [*LAPJOINT, "run", "chain", "--steps", "20", "--json", str(file)], capture_output=True, text=True, check=True
    )
    summary = json.loads(file.read_text())
    assert summary.keys() >= KEYS
    assert (summary["scene"], summary["engine"], summary["precision"]) == ("chain", "bullet", "float32")
    assert (summary["workers"], summary["steps"]) == (1, 20)
    scene = scenes.build("chain")
    assert (summary["body_count"], summary["joint_count"]) == (scene.body_count, scene.joint_count)
    assert (summary["timestep"], summary["iterations"]) == (scene.timestep, scene.iterations)
    assert 0 < summary["joint_gap_max"] < 0.01
    assert summary["step_ms_mean"] > 0
    assert re.fullmatch("[0-9a-f]{16}", summary["state_hash"])
    assert "20 steps of 2 ms" in done.stdout
    assert summary["state_hash"] in done.stdout
    assert done.stderr == ""


def test_run_takes_every_option(tmp_path: Path) -> None:
    options = "--steps 4 --size 30 --seed 3 --precision float64 --timestep 0.001 --iterations 7 --engine bullet"
    summary = run(tmp_path, "bowl", *options.split())
    wanted = {"steps": 4, "body_count": 30, "precision": "float64", "timestep": 0.001, "iterations": 7}
    assert {key: summary[key] for key in wanted} == wanted


def test_seconds_stand_for_steps(tmp_path: Path) -> None:
    assert run(tmp_path, "chain", "--seconds", "0.05")["steps"] == 25
    assert run(tmp_path, "chain", "--seconds", "0.05", "--timestep", "0.01")["steps"] == 5
    assert run(tmp_path, "chain", "--seconds", "1e-9")["steps"] == 1


def test_the_seed_decides_the_result(tmp_path: Path) -> None:
    hashes = [run(tmp_path, "bowl", "--size", "40", "--steps", "30", "--seed", s)["state_hash"] for s in "1121"]
    assert hashes[0] == hashes[1] == hashes[3]
    assert hashes[0] != hashes[2]


def test_a_saved_scene_runs_like_any_other(tmp_path: Path) -> None:
    path = small_scene().save(tmp_path / "boxes.npz")
    summary = run(tmp_path, path, "--steps", "50")
    assert (summary["scene"], summary["body_count"], summary["iterations"]) == ("boxes", 3, 20)
    assert summary["contact_count_mean"] == 3.0
    assert 6 <= summary["contact_point_count_mean"] <= 12
    assert 0 <= summary["penetration_max"] < 0.01


def test_scenes_and_files_may_have_brackets_in_their_names(tmp_path: Path) -> None:
    """Rich takes [bold] for markup, and [/b] for an error."""
    scene = small_scene()
    scene.name = "[/b] [bold]boxes"
    path = scene.save(tmp_path / "[red]boxes.npz")
    assert "[/b] [bold]boxes: 3 bodies" in invoke("run", path, "--steps", "1", "--runtime", "inline")


def test_run_and_picture_draw(tmp_path: Path) -> None:
    scene = small_scene().save(tmp_path / "boxes.npz")
    first, last = tmp_path / "first.png", tmp_path / "[last].png"
    assert "[last].png" in invoke("run", scene, "--steps", "2", "--runtime", "inline", "--picture", last).replace(
        "\n", ""
    )
    invoke("picture", scene, first, "--width", "64", "--height", "48")
    for file in (first, last):
        assert file.read_bytes().startswith(b"\x89PNG")


# ---- mistakes ----------------------------------------------------------------------------------------------------

MISTAKES = {
    "run nowhere": "no scene named 'nowhere'; known scenes: chain, bridge",
    "run gone.npz": "gone.npz: there is no such file",
    "run [/b]": "no scene named '[/b]'",
    "run chain --steps 0": "--steps is 0, expected at least 1",
    "run chain --steps -5": "--steps is -5",
    "run chain --steps 1 --seconds 1": "--steps and --seconds are both given",
    "run chain --seconds 0": "--seconds is 0.0",
    "run chain --seconds nan": "--seconds is nan",
    "run chain --seconds inf": "--seconds is inf",
    "run chain --size 0": "size is 0",
    "run bowl --seed -1": "--seed is -1",
    "run chain --engine warp": "no engine named 'warp'; known engines: bullet",
    "run chain --precision float16": "precision is 'float16', expected one of float32, float64",
    "run chain --timestep 0": "timestep is 0.0",
    "run chain --iterations 0": "iterations is 0",
    "run chain --workers 0": "workers is 0",
    "run chain --runtime cloud": "no runtime named 'cloud'; known runtimes: inline, process",
    "run chain --json .": "--json .: is a directory",
    "run chain --picture chain.gif": "expected a name that ends in .png",
    "picture nowhere nowhere.png": "no scene named 'nowhere'",
    "picture chain chain.txt": "expected a name that ends in .png",
}


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_one_line_on_stderr_before_anything_starts(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a simulation took a step")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setattr("lapjoint.Simulation.step", never)
    monkeypatch.setattr(sys, "argv", ["lapjoint", *command.split()])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert MISTAKES[command] in err
    assert list(tmp_path.iterdir()) == []


def test_size_and_a_file_do_not_go_together(tmp_path: Path) -> None:
    path = small_scene().save(tmp_path / "boxes.npz")
    with pytest.raises(LapjointError, match="its size is fixed"):
        invoke("run", path, "--size", "5")


@pytest.mark.parametrize("command", ["walk", "run", "run chain --bogus", "run chain --steps many", "picture chain"])
def test_a_command_that_cannot_be_read_is_exit_code_2(command: str) -> None:
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Usage: " in result.stderr


@pytest.mark.slow
def test_warnings_are_shown_and_do_not_stop_a_run(tmp_path: Path) -> None:
    scene = Scene("crowd")
    scene.add_bodies(Sphere(0.5), [(0.0, 0.0, 0.0), (0.3, 0.0, 0.0)], names=["[b]ada", "bob"])
    path = scene.save(tmp_path / "crowd.npz")
    done = subprocess.run([*LAPJOINT, "run", str(path), "--steps", "1"], capture_output=True, text=True, check=True)
    assert done.stderr.startswith("warning: scene 'crowd': body 0 ('[b]ada') starts 0.7 m deep inside body 1 ('bob')")
    assert done.stderr.count("\n") == 1


# ---- Ctrl-C ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["inline", "process"])
def test_ctrl_c_ends_a_run_with_its_summary(tmp_path: Path, runtime: str) -> None:
    """In a terminal of its own: wait until its progress shows steps, then press Ctrl-C there."""
    file = tmp_path / "run.json"
    server, terminal = pty.openpty()
    command = [*LAPJOINT, "run", "chain", "--steps", "10000000", "--runtime", runtime, "--json", str(file)]
    process = subprocess.Popen(
        command,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(terminal)
    try:
        shown = ""
        while not re.search(r"[1-9]\d*/10000000", shown):
            shown += os.read(server, 4096).decode(errors="replace")
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the server and all its workers
        rest = ""
        while chunk := _read(server):
            rest += chunk
        rest = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", rest)  # colours and cursor
        assert process.wait(timeout=60) == 130
    finally:
        process.kill()
        process.wait()
        os.close(server)
    summary = json.loads(file.read_text())
    assert 0 < summary["steps"] < 10_000_000
    assert summary["state_hash"] in rest
    assert f"interrupted after {summary['steps']} of 10000000 steps" in rest
    assert "Traceback" not in rest


def _read(descriptor: int) -> str:
    try:
        return os.read(descriptor, 4096).decode(errors="replace")
    except OSError:  # the other end of the terminal is closed
        return ""
