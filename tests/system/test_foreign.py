"""Files of strangers: only files are read, and none outside the folder, whatever has been put in a file's place."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkpoint.test_checkpoint_files import small_simulation
from files.test_gltf import mesh_document
from lapjoint import Checkpoint, CheckpointWriter, LapjointError, Recording, Scene
from lapjoint.files.read import read_scene
from lapjoint.scene.meshes import load_mesh
from lapjoint.server.partition import worker_count_of_file
from lapjoint.studies.report.bench_file import read_bench
from lapjoint.system.foreign import open_foreign, read_foreign
from parallel_support import finish
from recording_support import write_example

LINK, FIFO = "is a link, which is not followed", "is a FIFO, expected a file"


def refused(read: Callable[[], Any]) -> str:
    """The error of reading, which must not wait for anything."""
    error = finish(read)
    assert isinstance(error, LapjointError | OSError), error
    assert "\n" not in str(error)
    return str(error)


def put(place: Path, kind: str, outside: Path) -> None:
    """Something else in the place of a file, which goes outside."""
    outside.mkdir(exist_ok=True)
    place.rename(outside / place.name)
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "zero":
        place.symlink_to("/dev/zero")
    else:
        place.symlink_to(outside / place.name)


# ---- the one way to open them -----------------------------------------------------------------------------------


def test_a_file_is_read_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "fifo")
    assert read_foreign(tmp_path / "file", 3) == read_foreign(tmp_path / "link") == b"abc"
    assert read_foreign(tmp_path / "file", within=tmp_path) == b"abc"
    with pytest.raises(OSError, match="is 3 bytes large, expected at most 2"):
        read_foreign(tmp_path / "file", 2)
    for path, text in ((tmp_path / "fifo", FIFO), (tmp_path, "is a directory, expected"), ("/dev/zero", "is a device")):
        assert text in refused(lambda path=path: read_foreign(path))  # type: ignore[misc]


@pytest.mark.parametrize("name", ["link", "folder/file", "folder/../file", "../file", "."])
def test_nothing_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to("../file")
    (inside / "folder").symlink_to("..")
    with pytest.raises(OSError, match=r"is a link, which is not followed|is outside the folder"):
        open_foreign(inside / name, inside)


def test_a_sparse_file_without_end_is_refused(tmp_path: Path) -> None:
    with open(tmp_path / "large.npz", "wb") as file:
        file.truncate(1 << 42)
    for name in ("large.npz", "large.gltf", "large.xml", "large.usda", "large.stl"):
        (tmp_path / "large.npz").rename(tmp_path / name)
        read = load_mesh if name.endswith("stl") else read_scene
        with pytest.raises(LapjointError, match=f"{name}: is 4,398,046,511,104 bytes large, expected at most"):
            read(tmp_path / name)
        (tmp_path / name).rename(tmp_path / "large.npz")


# ---- all that opens them ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["fifo", "zero", "link"])
@pytest.mark.parametrize(
    "file", ["zarr.json", "states/zarr.json", "states/c.0.0.0", "scene/c.0", "profile/residual/c.0"]
)
def test_a_recording(tmp_path: Path, file: str, kind: str) -> None:
    path = tmp_path / "r"
    write_example(path)
    put(path / file, kind, tmp_path / "outside")

    def read() -> None:
        recording = Recording(path)
        recording.frame(0)
        assert recording.scene.body_count
        assert len(recording.profile["residual"])

    assert (FIFO if kind == "fifo" else LINK) in refused(read)


def test_a_recording_whose_array_is_elsewhere(tmp_path: Path) -> None:
    write_example(tmp_path / "r")
    put(tmp_path / "r/states", "link", tmp_path / "outside")
    assert "states is a link, which is not followed" in refused(lambda: Recording(tmp_path / "r").frame(0))


@pytest.mark.parametrize("kind", ["fifo", "zero", "link"])
def test_a_directory_of_checkpoints(tmp_path: Path, kind: str) -> None:
    with small_simulation() as simulation:
        file = CheckpointWriter(tmp_path / "c", simulation).save(simulation)
    put(file, kind, tmp_path / "outside")
    assert (FIFO if kind == "fifo" else LINK) in refused(lambda: Checkpoint(tmp_path / "c"))
    if kind == "link":
        assert Checkpoint(file).step_count == 0  # it was named


def test_a_checkpoint_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    with small_simulation() as simulation:
        writer = CheckpointWriter(tmp_path / "c", simulation)
        (tmp_path / "c/step-000000000.checkpoint.part").symlink_to(tmp_path / "precious")
        writer.save(simulation)
    assert (tmp_path / "precious").read_text() == "mine"
    assert Checkpoint(tmp_path / "c").step_count == 0


READERS: dict[str, Callable[[Path], object]] = {
    "a.npz": Scene.load,
    "a.xml": read_scene,
    "a.urdf": read_scene,
    "a.usda": read_scene,
    "a.glb": read_scene,
    "a.stl": load_mesh,
    "a.txt": worker_count_of_file,
    "a.json": read_bench,
    "a.checkpoint": Checkpoint,
}


@pytest.mark.parametrize("name", READERS)
def test_a_file_that_is_named(tmp_path: Path, name: str) -> None:
    place, read = tmp_path / name, READERS[name]
    os.mkfifo(place)
    assert refused(lambda: read(place)) == f"{place}: {FIFO}"
    place.unlink()
    place.symlink_to("/dev/zero")
    assert refused(lambda: read(place)) == f"{place}: is a device, expected a file"


def gltf(tmp_path: Path) -> Path:
    (tmp_path / "a.gltf").write_text(json.dumps(mesh_document("a.bin")))
    return tmp_path / "a.gltf"


def mjcf(tmp_path: Path) -> Path:
    (tmp_path / "a.xml").write_text('<mujoco><asset><mesh name="m" file="a.bin"/></asset></mujoco>')
    return tmp_path / "a.xml"


def usd(tmp_path: Path) -> Path:
    (tmp_path / "a.usda").write_text('#usda 1.0\ndef "a" (references = @./a.bin@</a>) {}\n')
    return tmp_path / "a.usda"


@pytest.mark.parametrize("write", [gltf, mjcf, usd])
def test_a_file_that_a_file_names(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    path, place = write(inside), inside / "a.bin"
    os.mkfifo(place)
    assert FIFO in refused(lambda: read_scene(path))
    place.unlink()
    (tmp_path / "outside").touch()
    place.symlink_to(tmp_path / "outside")
    assert "which is outside the folder" in refused(lambda: read_scene(path))


@pytest.mark.slow
def test_a_texture_of_a_mesh_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "a.obj").write_text("mtllib a.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl m\nf 1 2 3\n")
    (tmp_path / "a.mtl").write_text("newmtl m\nmap_Kd a.png\n")
    os.mkfifo(tmp_path / "a.png")
    assert finish(lambda: load_mesh(tmp_path / "a.obj")) is None
