"""Scenes of other packages: found by entry points, listed, named when broken; `lapjoint new scene` writes one."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lapjoint
from lapjoint import LapjointError, scenes
from lapjoint.cli import app, main
from plugin_support import write_metadata

TEXT = "no function"


def build(size: int | None, seed: int) -> lapjoint.Scene:
    """A ball, or several."""
    scene = lapjoint.Scene("balls")
    for number in range(size or 1):
        scene.add_body(lapjoint.Sphere(0.5), (float(number), 0.0, float(seed)))
    return scene


def returns_nothing(size: int | None, seed: int) -> None:
    pass


def raises(size: int | None, seed: int) -> None:
    raise ZeroDivisionError("no body")


def refuses(size: int | None, seed: int) -> None:
    raise LapjointError("size is 3, expected an even number")


@pytest.fixture(autouse=True)
def _plug_ins(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    found = [
        EntryPoint(name, value, "lapjoint.scenes")
        for name, value in (
            ("two-balls", f"{__name__}:build"),
            ("gone", "no_such_module:build"),
            ("text", f"{__name__}:TEXT"),
            ("nothing", f"{__name__}:returns_nothing"),
            ("raises", f"{__name__}:raises"),
            ("refuses", f"{__name__}:refuses"),
            ("bowl", f"{__name__}:build"),
            ("gone", "second:build"),
        )
    ]
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or request.module)
    monkeypatch.setattr("lapjoint.plug_ins.entry_points", lambda group: found if group == "lapjoint.scenes" else [])


def test_a_plug_in_is_built_by_its_name_with_size_and_seed() -> None:
    assert scenes.names()[0] == "chain"
    assert scenes.names()[-6:] == ["gone", "nothing", "raises", "refuses", "text", "two-balls"]
    scene = scenes.build("two-balls", size=2, seed=7)
    assert (scene.body_count, scene.states[1, 2]) == (2, 7.0)
    assert scenes.summary("two-balls") == "A ball, or several."
    with pytest.raises(LapjointError, match=r"no scene named 'two-bals' \(did you mean 'two-balls'\?\)"):
        scenes.build("two-bals")
    with pytest.raises(LapjointError, match="size is 0, expected"):
        scenes.build("two-balls", size=0)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gone", r"scene gone \(no_such_module:build\) cannot be loaded: ModuleNotFoundError"),
        ("text", r"scene text \(.*:TEXT\) is a str, expected a function build\(size, seed\)"),
        ("nothing", r"scene nothing \(.*:returns_nothing\) returned a NoneType, expected a lapjoint\.Scene"),
        ("raises", r"scene raises \(.*\) cannot be built: ZeroDivisionError\('no body'\) in .*test_plug_ins.py, line"),
        ("refuses", r"^size is 3, expected an even number$"),
    ],
)
def test_a_broken_plug_in_is_named(name: str, words: str) -> None:
    with pytest.raises(LapjointError, match=words):
        scenes.build(name)


@pytest.mark.slow
def test_broken_ones_are_listed_beside_the_others_and_a_name_that_is_taken_is_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scenes, "_MODULES", {"bowl": "bowl"})
    with pytest.warns(UserWarning, match="is not used") as warned:
        listed = CliRunner().invoke(app, ["scenes"], env={"COLUMNS": "300"}, catch_exceptions=False).stdout
    rows = {line.split()[0]: line for line in listed.splitlines()}
    assert rows["two-balls"].split() == ["two-balls", "1", "0", "0", "A", "ball,", "or", "several."]
    assert "cannot be loaded: ModuleNotFoundError" in rows["gone"]
    assert [str(warning.message) for warning in warned] == [
        f"scene bowl ({__name__}:build) is not used: lapjoint has one of that name",
        "scene gone (second:build) is not used: no_such_module:build has one of that name",
    ]
    assert scenes.build("bowl", size=10).name == "bowl", "lapjoint's own"


# ---- lapjoint new scene ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_new_scene_passes_its_own_test(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["new", "scene", "my-scene", "--into", str(tmp_path)], catch_exceptions=False)
    assert "lapjoint run my-scene --workers 2" in result.stdout
    folder = tmp_path / "my-scene"
    write_metadata(folder / "pyproject.toml", tmp_path)
    path = os.pathsep.join([str(folder), str(tmp_path)])
    # Its own test builds it by its name and runs it on two workers. `-c`: without this project's settings.
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:zarr", "-p", "no:cacheprovider"]
        + ["-c", str(folder / "pyproject.toml"), str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("new scen x", "lapjoint new scen: unknown (did you mean 'scene'?), expected scene"),
        ("new scene My_Scene", "scene 'My_Scene': expected a name of a-z, 0-9 and single dashes"),
        ("new scene chain", "scene 'chain': there is one of that name already"),
        ("new scene json", "scene 'json': Python has a module json already"),
        ("new scene while", "scene 'while': Python has a module while already"),
        ("new scene taken", "taken: is there already, expected a new name"),
    ],
)
def test_what_cannot_be_written_is_one_line(
    command: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("warnings.showwarning", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["lapjoint", *command.split()])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
