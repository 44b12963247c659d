"""Scene files: what is loaded is what was saved, equal scenes are equal bytes, and nothing else is ever loaded."""

from __future__ import annotations

import io
import json
import pickle
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib import format as npy

from lapjoint import (
    FREE,
    LOCKED,
    WORLD,
    Ball,
    Box,
    Capsule,
    Compound,
    ConvexHull,
    Cylinder,
    Drag,
    Fixed,
    Hinge,
    LapjointError,
    Material,
    Motor,
    Part,
    Plane,
    Scene,
    SixAxis,
    Slider,
    Sphere,
    Spring,
    TriangleMesh,
    scenes,
)
from lapjoint.arrays import rotation as rot
from lapjoint.scene.file import pack_scene
from lapjoint.scene.serialize import describe_scene, scene_from_bytes, scene_to_bytes
from lapjoint.scene.shared import SceneLayout, read_scene
from lapjoint.scene.tables import MAY_BE_MISSING

Arrays = dict[str, np.ndarray]


def full() -> Scene:
    """A scene with one of everything."""
    rng = np.random.default_rng(8)
    scene = Scene("Bühne", gravity=(0.1, 0.2, -3.0), timestep=0.003, iterations=77, growth_depth=2, search_depth=5)
    scene.camera = ((1.0, 2.0, 3.0), (0.0, 0.0, 0.5))
    turned = tuple(rot.from_axis_angle((0.0, 1.0, 0.0), 0.4))
    hull = ConvexHull(rng.random((9, 3)))
    shapes = [
        Sphere(0.1),
        Box((0.1, 0.2, 0.3)),
        Capsule(0.1, 0.7),
        Cylinder(0.2, 0.3),
        hull,
        Compound((Part(Sphere(0.3)), Part(hull, (0.5, 0.0, 0.1), turned))),
    ]
    stone = Material(0.7, 0.2, 0.01, 0.1, 0.2)
    turns = rot.from_axis_angle(rng.normal(size=(6, 3)), 1.0)
    scene.add_bodies(shapes, rng.normal(size=(6, 3)), turns, labels=range(6), material=stone, group=3, mask=5)
    scene.add_body(Sphere(0.1), (9.0, 9.0, 9.0), name="Kugel", linear_velocity=(1.0, 2.0, 3.0))
    scene.add_static(Plane(), material=stone)
    scene.add_static(TriangleMesh(rng.random((4, 3)), [(0, 1, 2), (1, 2, 3)]), (1.0, 0.0, 0.0), turned)
    spring = SixAxis((FREE, LOCKED, (-1.0, 2.0)), springs={0: Spring(3.0, 0.1, 0.2)}, motors={2: Motor(1.0, 2.0)})
    for k, joint in enumerate(
        [Ball(), Hinge((0.0, 1.0, 1.0), (-1.0, 1.0), Motor(1.0, 5.0)), Slider(), Fixed(), spring]
    ):
        scene.add_joint(joint, k, WORLD if k == 2 else k + 1, (0.1 * k, 0.0, 0.0), collide=k == 3)
    scene.ignore([0, 1], [4, 5])
    return scene


def test_a_scene_that_is_loaded_equals_the_one_saved(tmp_path: Path) -> None:
    scene = full()
    path = tmp_path / "full.npz"
    assert scene.save(path) == path
    loaded = Scene.load(str(path))
    assert loaded == scene
    assert loaded.save(tmp_path / "again.npz").read_bytes() == path.read_bytes()
    assert loaded.name == "Bühne"
    assert loaded.body_id("Kugel") == 6
    assert loaded.shapes == scene.shapes
    assert loaded.camera == scene.camera
    np.testing.assert_array_equal(loaded.states, scene.states)
    np.testing.assert_array_equal(loaded.ignored_pairs, scene.ignored_pairs)


def test_a_loaded_scene_can_grow_like_the_one_saved(tmp_path: Path) -> None:
    scene = full()
    loaded = Scene.load(scene.save(tmp_path / "full.npz"))
    for one in (scene, loaded):
        one.add_body(Sphere(0.1), name="more", density=3.0)
        one.add_joint(Ball(), 7, 0, (0.0, 0.0, 0.0))
    assert loaded == scene
    assert len(loaded.shapes) == len(full().shapes)
    with pytest.raises(LapjointError, match="already taken by body 6"):
        loaded.add_body(Sphere(0.1), name="Kugel")


def test_equal_scenes_are_equal_bytes_and_others_are_not() -> None:
    assert scene_to_bytes(full()) == scene_to_bytes(full())
    assert full() == full()
    changes: list[Callable[[Scene], object]] = [
        lambda scene: scene.add_body(Sphere(0.1)),
        lambda scene: scene.ignore(2, 5),
        lambda scene: scene.add_joint(Ball(), 0, 3, (0.0, 0.0, 0.0)),
        lambda scene: scene.bodies.mass.__setitem__(0, 5.0),
        lambda scene: setattr(scene, "timestep", 0.004),
        lambda scene: setattr(scene, "camera", None),
        lambda scene: setattr(scene, "name", "other"),
    ]
    for change in changes:
        scene = full()
        change(scene)
        assert scene != full()
    assert full() != "full"


def test_an_empty_scene_can_be_saved(tmp_path: Path) -> None:
    assert Scene.load(Scene("empty").save(tmp_path / "empty.npz")) == Scene("empty")


def test_a_file_holds_no_pickle(tmp_path: Path) -> None:
    path = full().save(tmp_path / "full.npz")
    with np.load(path, allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files)


# ---- what is refused ---------------------------------------------------------------------------------------------


def test_files_that_are_no_scenes_are_refused_by_name(tmp_path: Path) -> None:
    contents: dict[str, bytes] = {
        "empty.npz": b"",
        "text.npz": b"hello\n",
        "picture.npz": b"\x89PNG\r\n\x1a\n" + bytes(100),
        "pickle.npz": pickle.dumps({"a": 1}),
        "zip.npz": _zip({"readme.txt": b"hello"}),
        "array.npz": _npy(np.zeros(3)),
        "arrays.npz": _zip({"a.npy": _npy(np.zeros(3))}),
        "foreign.npz": _zip({"description.npy": _npy(np.frombuffer(b'{"format": "song"}', np.uint8))}),
        "list.npz": _zip({"description.npy": _npy(np.frombuffer(b"[1, 2]", np.uint8))}),
        "binary.npz": _zip({"description.npy": _npy(np.arange(9, dtype=np.uint8))}),
    }
    for name, content in contents.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(LapjointError) as caught:
            Scene.load(path)
        assert str(caught.value).startswith(f"{path}: not a lapjoint scene file")


def test_absent_files_and_directories_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(LapjointError, match=r"gone\.npz: there is no such file"):
        Scene.load(tmp_path / "gone.npz")
    with pytest.raises(LapjointError, match="directory"):
        Scene.load(tmp_path)
    with pytest.raises(LapjointError, match="cannot be written"):
        full().save(tmp_path / "no" / "such" / "place.npz")


def test_a_file_of_another_version_says_so(tmp_path: Path) -> None:
    for version in (2, None):
        path = _damaged(tmp_path, version=version)
        with pytest.raises(LapjointError, match=f"scene file version {version}, this lapjoint reads 1"):
            Scene.load(path)


DAMAGE: dict[str, Callable[[Arrays], object]] = {
    "a body's shape": lambda a: a["bodies/shape_id"].__setitem__(0, 99),
    "a body's shape, negative": lambda a: a["bodies/shape_id"].__setitem__(0, -1),
    "a body that is a plane": lambda a: a["bodies/shape_id"].__setitem__(0, 6),
    "a mass": lambda a: a["bodies/mass"].__setitem__(0, -1.0),
    "an inertia": lambda a: a["bodies/inertia"].__setitem__(0, 0.0),
    "a place": lambda a: a["bodies/position"].__setitem__(0, np.inf),
    "a turn": lambda a: a["bodies/quaternion"].__setitem__(0, 0.0),
    "a velocity": lambda a: a["bodies/linear_velocity"].__setitem__(0, np.nan),
    "a friction": lambda a: a["statics/friction"].__setitem__(0, np.inf),
    "a static body's shape": lambda a: a["statics/shape_id"].__setitem__(0, 8),
    "a joint's body": lambda a: a["joints/body_a"].__setitem__(0, 7),
    "a joint's other body": lambda a: a["joints/body_b"].__setitem__(0, -2),
    "a joint to itself": lambda a: a["joints/body_b"].__setitem__(0, 0),
    "a joint's kind": lambda a: a["joints/kind"].__setitem__(0, 7),
    "a joint without a length": lambda a: a["joints/kind"].__setitem__(0, 5),
    "a joint's anchor": lambda a: a["joints/frame_a"].__setitem__((0, 0), np.inf),
    "a joint's turn": lambda a: a["joints/frame_b"].__setitem__((0, 3), 9.0),
    "a joint's limits": lambda a: a["joints/lower"].__setitem__((0, 0), 1.0),
    "an ignored body": lambda a: a["ignored"].__setitem__((0, 0), 70),
    "a missing column": lambda a: a.pop("bodies/mass"),
    "a short column": lambda a: a.update({"bodies/mass": a["bodies/mass"][:3]}),
    "a narrow column": lambda a: a.update({"bodies/position": a["bodies/position"][:, :2]}),
    "a missing hull": lambda a: a.pop("shape/4/points"),
    "a flat hull": lambda a: a["shape/4/points"].__setitem__((slice(None), 2), 0.0),
    "gravity": lambda a: a["gravity"].__setitem__(0, np.nan),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_file_is_refused(tmp_path: Path, what: str) -> None:
    path = _damaged(tmp_path, DAMAGE[what])
    with pytest.raises(LapjointError, match=r"damaged\.npz: damaged scene file"):
        Scene.load(path)


@pytest.mark.parametrize(
    "entries",
    [{"shapes": []}, {"shapes": [{"kind": "Blob"}]}, {"timestep": -1.0}, {"body_names": {"99": "x"}}, {"camera": 3}],
    ids=str,
)
def test_a_damaged_description_is_refused(tmp_path: Path, entries: dict[str, Any]) -> None:
    with pytest.raises(LapjointError, match=r"damaged\.npz: damaged scene file"):
        Scene.load(_damaged(tmp_path, **entries))


def test_fields_in_tables_are_refused(tmp_path: Path) -> None:
    """They were taken, and failed when a worker was made."""
    scene = full()
    scene.add_field(Drag(0.1))
    description, arrays = describe_scene(scene)
    for name in ("values", "kinds", "body_counts"):
        changed = {**arrays, f"fields/{name}": arrays[f"fields/{name}"][:, None]}
        with pytest.raises(LapjointError, match=r"damaged scene file .*fields are in tables"):
            scene_from_bytes(Scene, pack_scene(description, changed), "tables")


def test_an_error_does_not_quote_a_whole_file() -> None:
    """The name of an entry that is as long as the file: zipfile has it in its message."""
    content = bytearray(scene_to_bytes(full()))
    place = content.index(b"PK\x03\x04") + 26
    content[place : place + 2] = (9000).to_bytes(2, "little")
    with pytest.raises(LapjointError, match="not a lapjoint scene file") as caught:
        scene_from_bytes(Scene, bytes(content), "long")
    assert len(str(caught.value)) < 500


@pytest.mark.slow
@given(st.integers(0, 100_000), st.integers(1, 255))
@settings(max_examples=60)
def test_a_flipped_byte_is_noticed_or_harmless(tmp_path: Path, place: int, flip: int) -> None:
    content = bytearray(scene_to_bytes(full()))
    content[place % len(content)] ^= flip
    path = tmp_path / "flipped.npz"
    path.write_bytes(content)
    try:
        loaded = Scene.load(path)
    except LapjointError:
        return
    assert loaded == full()


@given(st.floats(0, 1))
@settings(max_examples=40)
def test_a_torn_file_is_refused(tmp_path: Path, share: float) -> None:
    content = scene_to_bytes(full())
    path = tmp_path / "torn.npz"
    path.write_bytes(content[: int(share * (len(content) - 1))])
    with pytest.raises(LapjointError, match=r"torn\.npz: not a lapjoint scene file"):
        Scene.load(path)


def _peak_bytes(path: Path) -> int:
    """What loading takes at most, whether it ends well or not."""
    tracemalloc.start()
    try:
        with suppress(LapjointError):
            Scene.load(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


HUGE = 1 << 27
"""Bytes: more than any file may inflate to, and enough to be noticed."""


def _bomb(folder: Path, name: str, header: tuple[int, ...] | None = None) -> Path:
    """The file of the full scene with one more member, or another one in place of its own, that inflates to much."""
    start = io.BytesIO()
    if header is not None:
        npy.write_array_header_1_0(start, {"descr": "|u1", "fortran_order": False, "shape": header})
    path = folder / "bomb.npz"
    with (
        zipfile.ZipFile(io.BytesIO(scene_to_bytes(full()))) as source,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        for member in source.namelist():
            if member != name:
                archive.writestr(member, source.read(member))
        with archive.open(name, "w") as file:
            file.write(start.getvalue())
            for _ in range(HUGE >> 20):
                file.write(bytes(1 << 20))
    return path


@pytest.mark.slow
def test_what_is_no_part_of_a_scene_is_never_inflated(tmp_path: Path) -> None:
    for name in ("bomb.npy", "readme.txt", "bodies/more.npy", "shape/4/extra.npy", "shape/points.npy"):
        path = _bomb(tmp_path, name, (HUGE,))
        assert Scene.load(path) == full()
        assert _peak_bytes(path) < HUGE // 8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("bodies/mass.npy", (HUGE,)),
        ("shape/99/points.npy", (HUGE,)),
        ("description.npy", (HUGE,)),
        ("bodies/mass.npy", (7,)),
        ("bodies/mass.npy", None),
    ],
)
def test_what_inflates_to_much_more_than_the_file_is_refused(
    tmp_path: Path, name: str, header: tuple[int, ...] | None
) -> None:
    path = _bomb(tmp_path, name, header)
    assert path.stat().st_size < HUGE // 200
    with pytest.raises(LapjointError, match=r"bomb\.npz: not a lapjoint scene file \(it would inflate to 134,"):
        Scene.load(path)
    assert _peak_bytes(path) < HUGE // 8


@pytest.mark.parametrize(
    ("shape", "text"), [((7, 10**12), "expected 7,000,"), ((6,), "expected"), ((10**30,), "expected")]
)
def test_a_member_must_be_as_large_as_its_header_says(tmp_path: Path, shape: tuple[int, ...], text: str) -> None:
    header = io.BytesIO()
    npy.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": shape})
    path = tmp_path / "lying.npz"
    path.write_bytes(_zip({"bodies/mass.npy": header.getvalue() + bytes(56)}))
    with pytest.raises(LapjointError, match=rf"not a lapjoint scene file \(bodies/mass has 184 bytes, {text}"):
        Scene.load(path)


def test_a_scene_that_was_compressed_by_hand_is_read(tmp_path: Path) -> None:
    scene = scenes.build("bridge", 400)
    for way, is_read in ((zipfile.ZIP_DEFLATED, True), (zipfile.ZIP_LZMA, False)):
        path = tmp_path / f"{way}.npz"
        with (
            zipfile.ZipFile(io.BytesIO(scene_to_bytes(scene))) as source,
            zipfile.ZipFile(path, "w", way) as archive,
        ):
            for member in source.namelist():
                archive.writestr(member, source.read(member))
        if is_read:
            assert Scene.load(path) == scene
        else:
            with pytest.raises(LapjointError, match="in a way that is not read"):
                Scene.load(path)


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _damaged(folder: Path, damage: Callable[[Arrays], object] = lambda arrays: None, **entries: Any) -> Path:
    """The file of the full scene with one thing wrong in its arrays or its description."""
    with np.load(io.BytesIO(scene_to_bytes(full()))) as archive:
        arrays = {name: archive[name].copy() for name in archive.files}
    description = json.loads(arrays["description"].tobytes())
    description.update(entries)
    arrays["description"] = np.frombuffer(json.dumps(description).encode(), np.uint8).copy()
    damage(arrays)
    path = folder / "damaged.npz"
    path.write_bytes(_zip({f"{name}.npy": _npy(array) for name, array in arrays.items()}))
    return path


# ---- in memory that processes share ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bridge", "bowl", "full"])
def test_a_scene_laid_out_in_memory_is_the_same_and_is_not_copied(name: str) -> None:
    scene = full() if name == "full" else scenes.build(name, 120)  # the full one has hulls and compounds
    layout = SceneLayout(scene)
    block = bytearray(layout.size)
    layout.write(block)
    read = read_scene(block)
    assert scene_to_bytes(read) == scene_to_bytes(scene)
    tables = {
        name: column for name, column in read.bodies.to_arrays().items() if f"bodies/{name}" not in MAY_BE_MISSING
    }
    assert all(np.shares_memory(column, np.frombuffer(block, np.uint8)) for column in tables.values())
    assert all(column.ctypes.data % 8 == 0 for column in tables.values()) or len(block) < 64
    with pytest.raises(ValueError, match="read-only"):
        read.bodies.mass[0] = 1.0
    read.add_body(Sphere(0.1))  # grows into memory of its own
    assert read.body_count == scene.body_count + 1
