"""What a run needs is checked before its first step, and what it says of its coupling and its error."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from lapjoint import LapjointError, Params, Simulation, scenes
from lapjoint.cli import app
from lapjoint.cli.extras import EXTRAS, load
from lapjoint.cli.shared import counted
from lapjoint.cli.summary_table import summary_table
from lapjoint.run import RunSummary, run

SHORT = ("--size", "8", "--steps", "1", "--runtime", "inline")


def invoke(*arguments: object) -> str:
    words = [str(argument) for argument in arguments]
    result = CliRunner().invoke(app, words, env={"COLUMNS": "200"}, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


# ---- packages and places -----------------------------------------------------------------------------------------

WITHOUT = """
import sys
from lapjoint import Simulation
for name in sys.argv.pop(1).split(","):
    sys.modules[name] = None
def never(*_):
    raise AssertionError("a step was taken")
Simulation.step = never
from lapjoint.cli import main
sys.argv[0] = "lapjoint"
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "command", "message"),
    [
        ("viser", "view chain", "lapjoint view needs viser: pip install 'lapjoint[view]'"),
        ("viser", "run chain --view", "--view needs viser: pip install 'lapjoint[view]'"),
        ("PIL", "run chain --picture a.png", "--picture needs Pillow: pip install 'lapjoint[picture]'"),
        ("PIL,moderngl", "run chain --picture a.png", "--picture needs moderngl and Pillow: pip install 'lapjoint[pi"),
    ],
)
def test_a_missing_package_is_one_line(missing: str, command: str, message: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", WITHOUT, missing, *command.split()]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["viser"])
def test_a_command_has_help_without_the_packages_of_its_options(missing: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", WITHOUT, missing, "view", "--help"]
    assert subprocess.run(words, cwd=tmp_path, capture_output=True).returncode == 0


@pytest.mark.parametrize("option", EXTRAS)
def test_every_extra_is_one_of_the_project_and_has_its_module(option: str) -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert f"\n{EXTRAS[option].name} = [" in text
    assert load(option).__name__.startswith("lapjoint.")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--json file/run.json", "--json file/run.json: "),
        ("--picture file/a.png", "--picture file/a.png: "),
        ("--picture a.gif", "--picture a.gif: expected a name that ends in .png"),
        ("--record file/r", "file/r: "),
        ("--checkpoint file/c", "file/c: "),
    ],
)
def test_a_place_that_cannot_be_written_is_refused(
    option: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    result = CliRunner().invoke(app, ["run", "chain", *SHORT, *option.split()])
    assert isinstance(result.exception, LapjointError)
    assert message in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_machine_that_cannot_draw_is_noticed_before_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail() -> None:
        raise LapjointError("no OpenGL here")

    monkeypatch.setattr("lapjoint.cli.last_picture.open_context", fail)
    monkeypatch.setattr(Simulation, "step_at_once", lambda *_: pytest.fail("a step was taken"))
    with pytest.raises(LapjointError, match="no OpenGL here"):
        invoke("run", "chain", *SHORT, "--picture", tmp_path / "a.png")


def test_directories_are_made_on_the_way(tmp_path: Path) -> None:
    files = {"--json": "a/b/run.json", "--record": "runs/two", "--checkpoint": "kept/c", "--picture": "p/q/end.png"}
    invoke("run", "chain", *SHORT, *(word for option, path in files.items() for word in (option, tmp_path / path)))
    assert [path for path in files.values() if not (tmp_path / path).exists()] == []


# ---- coupling ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "chain --coupling tight --linger 20",
            "--linger is given, but the coupling is tight, which has no overlap: le",
        ),
        (
            "bowl --workers 2 --coupling tight --growth-depth 1",
            "leave --growth-depth out, or take --coupling blend",
        ),
    ],
)
def test_an_option_of_the_other_coupling_says_which_option_to_add(arguments: str, message: str) -> None:
    result = CliRunner().invoke(app, ["run", *arguments.split(), *SHORT])
    assert isinstance(result.exception, LapjointError)
    assert message in str(result.exception)


def test_a_run_says_which_coupling_auto_takes_and_why(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    told = invoke("run", "chain", *SHORT, "--workers", 2, "--growth-depth", 1, "--json", file)
    assert told.startswith("coupling: blend, because --growth-depth is given, which only blend has\n")
    assert "(auto: --growth-depth is given, which only blend has)" in told
    assert json.loads(file.read_text())["coupling_reason"] == "--growth-depth is given, which only blend has"
    told = invoke("run", "chain", *SHORT, "--workers", 2, "--json", file)
    assert re.search(r"tight, \d+ exchanges a step between two workers +\n", told)
    assert json.loads(file.read_text())["coupling_reason"] is None
    told = invoke("run", "chain", *SHORT, "--workers", 2, "--iterations", 9, "--json", file)
    assert "(auto: --iterations is given, with which only blend works)" in told
    told = invoke("run", "chain", *SHORT, "--workers", 2, "--coupling", "blend", "--json", file)
    assert "because" not in told
    assert json.loads(file.read_text())["coupling_reason"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "--substeps 8 --iterations 5",
            "(--iterations is given, which only sequential has): leave --substeps out, or add",
        ),
        (
            "--solver sequential --substeps 4",
            "--substeps is given, but the solver is sequential, expected substeps: le",
        ),
        (
            "--solver substeps --iterations 50",
            "--iterations is given, but the solver is substeps, expected sequential:",
        ),
    ],
)
def test_an_option_of_the_other_solver_says_which_option_to_add(arguments: str, message: str) -> None:
    result = CliRunner().invoke(app, ["run", "chain", *arguments.split(), *SHORT])
    assert isinstance(result.exception, LapjointError)
    assert message in str(result.exception)


def test_a_run_says_which_solver_auto_takes_and_why(tmp_path: Path) -> None:
    file = tmp_path / "run.json"

    def told_and_written(*options: object) -> tuple[str, tuple[Any, ...]]:
        told = invoke("run", "chain", *SHORT, *options, "--json", file)
        written = json.loads(file.read_text())
        return told, tuple(written[key] for key in ("solver", "solver_reason", "substeps", "joints"))

    told, written = told_and_written("--iterations", 20)
    reason = "--iterations is given, which only sequential has"
    assert told.startswith(f"solver: sequential, because {reason}\n")
    assert f"sequential, 20 iterations (auto: {reason})" in told
    assert written == ("sequential", reason, None, None)
    told, written = told_and_written("--workers", 2)
    assert "because" not in told
    assert "substeps, 4 a step " in told
    assert written == ("substeps", None, 4, "auto")
    told, written = told_and_written()
    assert "substeps, 4 a step " in told
    assert written == ("substeps", None, 4, "auto")
    told, written = told_and_written("--substeps", 8, "--joints", "swept")
    assert "substeps, 8 a step, joints swept " in told
    assert written == ("substeps", None, 8, "swept")
    told, written = told_and_written("--solver", "sequential", "--workers", 1)
    assert "(auto" not in told
    assert written == ("sequential", None, None, None)


def test_other_engines_have_solvers_of_their_own() -> None:
    told = text_of(replace(summary(coupling="blend", solver="sequential"), engine="mujoco:float64"))
    assert "its own, 50 iterations " in told


# ---- what the summary says ---------------------------------------------------------------------------------------


def text_of(summary: RunSummary) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(summary_table(summary))
    return captured.get()


def summary(**given: Any) -> RunSummary:
    with Simulation(scenes.build("chain", 8), Params.from_options(workers=2, runtime="inline", **given)) as simulation:
        return run(simulation, 1)


def test_an_error_that_is_many_times_what_one_engine_has_names_the_option_that_helps() -> None:
    blended = summary(coupling="blend")
    assert "at interfaces" not in text_of(blended)
    large = replace(blended, length_unit=0.5, penetration_interface=7.7e-3, penetration_interior=1.5e-3)
    assert "penetration 7.7 mm rms, 5.1 times that inside workers: --coupling tight helps" in text_of(large)
    gap = replace(large, joint_gap_interface=0.02, joint_gap_interior=0.001, engine="mujoco:float64")
    assert "; joint gap 20 mm rms, 20.0 times that inside workers: a larger --growth-depth helps" in text_of(gap)
    tight = replace(summary(coupling="tight"), joint_gap_interface=0.02, joint_gap_interior=0.001)
    assert "more --substeps help" in text_of(tight)
    for harmless in ((1.5e-3, 1.5e-3), (4e-4, 1e-5), (None, None)):
        fine = replace(large, penetration_interface=harmless[0], penetration_interior=harmless[1])
        assert "at interfaces" not in text_of(fine)


def test_numbers_have_their_nouns() -> None:
    assert [counted(n, "step") for n in (0, 1, 2, 1234)] == ["0 steps", "1 step", "2 steps", "1,234 steps"]
    assert counted(1.2, "body", "bodies", ",.0f") == "1 body"
    told = text_of(replace(summary(coupling="blend", iterations=1), body_count=1, joint_count=1))
    assert "chain: 1 body, 1 joint" in told
    assert "1 iteration\n" in told.replace("  ", "").replace(" \n", "\n")
    assert "1 step of" in told
    told = text_of(replace(summary(coupling="tight"), exchanges_mean=1.0, exchanges_max=1))
    assert "tight, 1 exchange a step" in told
