"""Scenes and recordings as glTF: by the rules of the standard, where bodies are in time, and what comes back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from exported_scenes import assert_same_scene, every_joint, every_shape
from film_support import record_changing
from gltf_check import CheckedGltf
from lapjoint import Compound, Gravity, LapjointError, Part, Recording, Scene, Sphere, scenes
from lapjoint.arrays import rotation
from lapjoint.errors import FileWarning
from lapjoint.files.read import read_with_notes
from lapjoint.view.draw.colors import to_linear, worker_colors
from lapjoint.view.export.frames import frames_of_recording, frames_of_scene
from lapjoint.view.export.gltf import export_gltf, write_gltf

UP = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
"""From z up to y up."""


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record_changing(tmp_path_factory.mktemp("gltf") / "run")


def body_nodes(found: CheckedGltf, count: int) -> list[int]:
    """Bodies are the first children of the root."""
    (root,) = found.root["scenes"][0]["nodes"]
    return list(found.root["nodes"][root]["children"][:count])


def seen_below(found: CheckedGltf, node: int, matrices: np.ndarray) -> list[int]:
    """Nodes with meshes below one that have a size."""
    children = found.root["nodes"][node].get("children", [])
    meshes = [child for child in children if "mesh" in found.root["nodes"][child]]
    return [child for child in meshes if abs(np.linalg.det(matrices[child][:3, :3])) > 1e-9]


def color_of(found: CheckedGltf, node: int) -> list[float]:
    primitive = found.root["meshes"][found.root["nodes"][node]["mesh"]]["primitives"][0]
    color = found.root["materials"][primitive["material"]]["pbrMetallicRoughness"]["baseColorFactor"]
    return list(color[:3])


# ---- recordings ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".glb", ".gltf"])
def test_bodies_are_where_they_were_in_every_frame(changing: Recording, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"run{ending}"
    write_gltf(frames_of_recording(changing), path)
    found = CheckedGltf(path)
    nodes, last = body_nodes(found, changing.body_count), changing.frame_count - 1
    palette = to_linear(worker_colors(2))
    for number in (0, last // 2, last):
        time = changing.times[number] - changing.times[0]
        matrices, states = found.matrices(time), changing.frame(number).states
        there, owner = changing.alive(number), changing.weights(number).argmax(axis=1)
        for body, node in enumerate(nodes):
            seen = seen_below(found, node, matrices)
            assert len(seen) == there[body]
            if not seen:
                continue
            np.testing.assert_allclose(matrices[node][:3, 3], UP @ states[body, :3], atol=2e-6)
            turn = UP @ rotation.to_matrix(states[body, 3:7])
            np.testing.assert_allclose(matrices[node][:3, :3], turn, atol=2e-6)
            np.testing.assert_allclose(color_of(found, seen[0]), palette[owner[body]], atol=1e-5)


def test_a_body_that_migrates_changes_its_colour(changing: Recording, tmp_path: Path) -> None:
    frames = frames_of_recording(changing)
    before = int(frames.owners[0, 3])
    frames.owners[5:, 3] = 1 - before
    path = tmp_path / "run.glb"
    write_gltf(frames, path)
    found = CheckedGltf(path)
    node = body_nodes(found, changing.body_count)[3]
    for number, owner in ((0, before), (4, before), (5, 1 - before), (11, 1 - before)):
        (seen,) = seen_below(found, node, found.matrices(frames.times[number]))
        np.testing.assert_allclose(color_of(found, seen), frames.palette[owner], atol=1e-5)


def test_meshes_are_written_once(tmp_path: Path) -> None:
    scene = Scene()
    for k in range(50):
        scene.add_body(Sphere(0.1 + 0.01 * k), (k, 0.0, 0.0), label=k % 2)
    path = tmp_path / "balls.glb"
    write_gltf(frames_of_scene(scene), path)
    found = CheckedGltf(path)
    assert len(found.root["meshes"]) == 2, "one for each colour"
    places = {mesh["primitives"][0]["attributes"]["POSITION"] for mesh in found.root["meshes"]}
    assert len(places) == 1


def test_who_comes_later_is_seen_and_is_no_physics(changing: Recording, tmp_path: Path) -> None:
    path = tmp_path / "run.glb"
    write_gltf(frames_of_recording(changing), path)
    scene = read_with_notes(path)[0]
    assert scene.body_count == changing.began_with[0] < changing.body_count
    np.testing.assert_allclose(scene.states, changing.scene.states[:6], atol=1e-9)


def test_too_much_for_one_file(changing: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(frames_of_recording.__globals__, "MOST_NUMBERS", 100)
    with pytest.raises(LapjointError, match="12 frames of 9 bodies are too many for one file; raise --every"):
        frames_of_recording(changing)
    with pytest.raises(LapjointError, match="every is 0, expected at least 1"):
        frames_of_recording(changing, 0)


def test_what_is_not_exported_is_a_warning(tmp_path: Path) -> None:
    scene = Scene("windy")
    scene.add_body(Sphere(0.1))
    scene.add_field(Gravity((0.0, 0.0, 1.0)))
    scene.add_sensor(Compound((Part(Sphere(0.1)), Part(Sphere(0.1), (1.0, 0.0, 0.0)))))
    scene.add_sensor(Sphere(0.5), name="kept")
    with pytest.warns(FileWarning) as caught:
        export_gltf(scene, tmp_path / "windy.glb")
    texts = sorted(str(one.message) for one in caught)
    assert [text.split(": ")[1] for text in texts] == ["force field, 1 of them", "sensor of several shapes, 1 of them"]
    assert list(read_with_notes(tmp_path / "windy.glb")[0].sensors.names.values()) == ["kept"]


# ---- scenes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".glb", ".gltf"])
@pytest.mark.parametrize("make", [every_shape, every_joint])
def test_a_scene_comes_back(make: object, ending: str, tmp_path: Path) -> None:
    scene = make()  # type: ignore[operator]
    path = tmp_path / f"scene{ending}"
    write_gltf(frames_of_scene(scene), path)
    CheckedGltf(path)
    read, notes = read_with_notes(path)
    assert notes.lines() == []
    assert_same_scene(scene, read)


@pytest.mark.slow
@pytest.mark.parametrize("name", scenes.names())
def test_every_scene_of_the_library_comes_back(name: str, tmp_path: Path) -> None:
    scene = scenes.build(name, {"pyramid": 4, "joint-grid": 4, "chain-net": 10}.get(name, 80))
    path = tmp_path / "scene.glb"
    write_gltf(frames_of_scene(scene), path)
    CheckedGltf(path)
    assert_same_scene(scene, read_with_notes(path)[0])


@pytest.mark.slow
def test_it_is_as_large_as_the_scene(tmp_path: Path) -> None:
    """What another program finds in it: trimesh's bounds of all meshes are those of the shapes."""
    trimesh = pytest.importorskip("trimesh")
    scene = Scene("two")
    scene.add_body(Sphere(0.5), (0.0, 0.0, 3.0))
    scene.add_body(Sphere(1.0), (4.0, 2.0, 1.0))
    path = tmp_path / "two.glb"
    write_gltf(frames_of_scene(scene), path)
    low, high = trimesh.load_scene(path).bounds
    np.testing.assert_allclose(low, (-0.5, 0.0, -3.0), atol=0.02)
    np.testing.assert_allclose(high, (5.0, 3.5, 0.5), atol=0.02)
