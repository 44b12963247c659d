"""`lapjoint export`, `lapjoint check`, and files of other programs in `lapjoint run`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from film_support import record_changing
from lapjoint import LapjointError, Recording, Scene, scenes
from lapjoint.cli import app
from lapjoint.files.read import read_scene

DATA = Path(__file__).parents[1] / "data" / "files"
pytest.importorskip("pxr")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record_changing(tmp_path_factory.mktemp("cli") / "run")


def lapjoint(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"}, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def refused(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert isinstance(result.exception, LapjointError), result.output
    return str(result.exception)


@pytest.mark.parametrize("ending", [".usda", ".usdc", ".usd", ".glb", ".gltf"])
def test_a_scene_is_exported_and_read(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"chain{ending}"
    text = lapjoint("export", "chain", file, "--size", 10)
    assert text.startswith(f"wrote {file}: 10 bodies, ")
    read, scene = read_scene(file), scenes.build("chain", 10)
    np.testing.assert_allclose(read.states, scene.states, atol=1e-6)
    assert read.joint_count == scene.joint_count


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".usdc", ".glb", ".html"])
def test_a_recording_is_exported(run: Recording, ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"run{ending}"
    text = lapjoint("export", run.path, file, "--every", 2)
    assert f"wrote {file}: " in text
    assert "6 frames (1 of 2 frames of the recording), " in text
    assert file.stat().st_size > 1000


def test_scene_files_are_exported_as_others(tmp_path: Path) -> None:
    lapjoint("export", DATA / "rig.usda", tmp_path / "rig.glb")
    lapjoint("export", tmp_path / "rig.glb", tmp_path / "rig.usda")
    np.testing.assert_allclose(
        read_scene(tmp_path / "rig.usda").states, read_scene(DATA / "rig.usda").states, atol=1e-6
    )


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["chain", "a.obj"], "unknown kind of file '.obj', expected a name that ends in .usda"),
        (["chain", "none/a.usda"], "there is no directory none"),
        (["chain", "a.html"], "a.html is a page, but chain is no recording"),
        (["chain", "a.glb", "--every", "2"], "--every is given, but chain is no recording"),
        (["RUN", "a.glb", "--every", "0"], "--every is 0, expected at least 1"),
        (["RUN", "a.glb", "--size", "5"], "--size is given, but .* is a recording"),
        (["RUN", "a.glb", "--seed", "5"], "--seed is given, but .* is a recording"),
        (["RUN", "a.usda", "--keyframe", "home"], "--keyframe is given, but .* is a recording"),
        (["chain", "a.usda", "--keyframe", "home"], "--keyframe is given, but chain is no file"),
        (["brigde", "a.usda"], "no scene named 'brigde'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    words: list[str], wanted: str, run: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LapjointError, match=wanted):
        raise LapjointError(refused("export", *(str(run.path) if word == "RUN" else word for word in words)))
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_not_written_over_itself(tmp_path: Path) -> None:
    file = tmp_path / "rig.usda"
    file.write_bytes((DATA / "rig.usda").read_bytes())
    assert refused("export", file, file).endswith("is what is read, expected another name")


def test_without_usd_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("lapjoint.cli.extras.find_spec", lambda name: None)
    wanted = "lapjoint export to USD needs usd-core: pip install 'lapjoint[usd]'"
    assert refused("export", "chain", tmp_path / "a.usda") == wanted
    monkeypatch.setitem(sys.modules, "pxr", None)
    assert refused("check", DATA / "rig.usda").endswith("reading it needs usd-core: pip install 'lapjoint[usd]'")


def test_check_tells_what_became_of_a_file(tmp_path: Path) -> None:
    text = lapjoint("check", DATA / "kinds.usda")
    counts = "bodies: 5 static bodies: 2 kinematic bodies: 1 colliders: 9 joints: 6 drives: 3"
    assert text == f"kinds: {DATA / 'kinds.usda'} read {counts} approximated: nothing left out: nothing"
    file = tmp_path / "other.usda"
    file.write_text((DATA / "kinds.usda").read_text().replace("staticFriction = 0.8", "staticFriction = 0.9"))
    text = lapjoint("check", file)
    assert "approximated /kinds/rubber: there is one coefficient of friction: the dynamic one" in text
    saved = scenes.build("chain", 5).save(tmp_path / "chain.npz")
    assert lapjoint("check", saved).startswith(f"chain: {saved} read bodies: 5")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rig.usda", "rig.gltf"])
def test_files_of_other_programs_are_run(name: str) -> None:
    text = lapjoint("run", DATA / name, "--steps", 5, "--workers", 1, "--runtime", "inline")
    assert "rig: 3 bodies, 3 joints" in text


def test_what_is_not_exact_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "other.usda"
    file.write_text((DATA / "kinds.usda").read_text().replace("staticFriction = 0.8", "staticFriction = 0.9"))
    with pytest.warns(match="/kinds/rubber: there is one coefficient of friction"):
        lapjoint("export", file, tmp_path / "other.glb")


def test_a_saved_scene_is_still_one(tmp_path: Path) -> None:
    saved = scenes.build("chain", 5).save(tmp_path / "chain.npz")
    assert read_scene(saved) == Scene.load(saved)
    assert refused("run", saved, "--keyframe", "home").endswith(
        "a keyframe is given, expected an MJCF file: others have none"
    )
