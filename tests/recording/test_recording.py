"""Recordings: what is read is what was simulated, and what is no recording is refused."""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lapjoint import (
    Blend,
    LapjointError,
    Params,
    Recording,
    RecordingWriter,
    Simulation,
    scenes,
)
from lapjoint.recording import decoding, layout, store, writer
from lapjoint.recording.description import seal
from lapjoint.recording.store import first_workers
from parallel_support import members
from recording_support import balls, made, record, table, write_example

# ---- what comes back ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """A real run, and what the simulation had to say in its frames."""
    path = tmp_path_factory.mktemp("recordings") / "bowl"
    scene = scenes.build("bowl", 120)
    frames, profiles = [], []
    with Simulation(scene, Params(workers=2, runtime="inline", blend=Blend(growth_depth=1))) as simulation:
        options: dict[str, Any] = {"every": 3, "contacts": True, "measures": {"height": 1, "low": 2}}
        with RecordingWriter(path, simulation, **options) as recorder:
            for done in range(1, 251):
                simulation.step()
                heights = simulation.states[:, 2]
                recorder.add(simulation, {"height": heights.mean(), "low": np.sort(heights)[:2]})
                profiles.append(simulation.profile)
                if done % 3 == 0:
                    frames.append(
                        SimpleNamespace(
                            step_count=simulation.step_count,
                            time=simulation.time,
                            states=simulation.states,
                            membership=table(simulation.workers.membership),
                            weights=simulation.workers.weights(),
                            contacts=simulation.contacts.pairs(),
                        )
                    )
        params = simulation.params
    return SimpleNamespace(path=path, scene=scene, params=params, frames=frames, profiles=profiles)


@pytest.mark.slow
def test_frames_are_what_the_simulation_had(run: SimpleNamespace) -> None:
    recording = Recording(run.path)
    assert len(recording) == recording.frame_count == len(run.frames) == 83
    assert recording.complete
    assert recording.steps.tolist() == [frame.step_count for frame in run.frames]
    assert recording.times.tolist() == [frame.time for frame in run.frames]
    assert any(frame.membership.sum(axis=1).max() > 1 for frame in run.frames)
    for i, (read, had) in enumerate(zip(recording, run.frames, strict=True)):
        assert (read.step_count, read.time) == (had.step_count, had.time)
        assert np.array_equal(read.states, had.states.astype(np.float32))
        assert np.array_equal(recording.membership(i), had.membership)
        assert np.array_equal(recording.weights(i), had.weights)
        assert np.allclose(recording.weights(i).sum(axis=1), 1)
        contacts = recording.contacts(i)
        assert np.array_equal(contacts.bodies, had.contacts.bodies)
        assert np.array_equal(contacts.point_count, had.contacts.point_count)
        assert np.array_equal(contacts.depth, had.contacts.depth.astype(np.float32))


@pytest.mark.slow
def test_contacts_of_a_worker_are_those_it_reported(run: SimpleNamespace) -> None:
    recording = Recording(run.path)
    reported = recording.profile["worker_contact_count"][2::3]
    assert reported.max() > 10
    for i in range(recording.frame_count):
        assert [len(recording.contacts(i, worker)) for worker in range(2)] == reported[i].tolist()


def test_profile_and_measures_have_every_step(run: SimpleNamespace) -> None:
    recording = Recording(run.path)
    assert recording.profile["step_count"].tolist() == list(range(1, 251))
    for name in (
        "server_ms",
        "residual",
        "overlap_count",
        "activation_count",
        "deactivation_count",
        "divided",
        "byte_count",
    ):
        assert recording.profile[name].tolist() == [getattr(profile, name) for profile in run.profiles]
    for name in ("worker_body_count", "worker_contact_count", "worker_cpu_ms", "worker_prepare_ms"):
        assert np.array_equal(recording.profile[name], [getattr(profile, name) for profile in run.profiles])
    phases = [list(profile.phases_ms.values()) for profile in run.profiles]
    assert np.array_equal(recording.profile["phases_ms"], phases)
    assert list(recording.measures) == ["height", "low"]
    assert recording.measures["low"].shape == (250, 2)
    heights = np.array([frame.states[:, 2].mean() for frame in run.frames])
    assert np.allclose(recording.measures["height"][2::3], heights, rtol=0, atol=1e-12)
    with pytest.raises(KeyError):
        recording.profile["temperature"]


def test_scene_and_origin_come_back(run: SimpleNamespace) -> None:
    recording = Recording(run.path)
    assert recording.scene == run.scene
    assert recording.params == run.params
    assert (recording.body_count, recording.worker_count, recording.every) == (120, 2, 3)
    assert set(recording.versions) == {"lapjoint", "python", "numpy", "engine"}
    assert recording.versions["engine"].startswith("bullet of lapjoint ")
    assert set(recording.machine) == {"cpu", "core_count", "platform"}
    assert recording.started.startswith("20")
    assert "83 frames of 120 bodies" in repr(recording)


def test_frames_are_found_by_number_time_and_body(run: SimpleNamespace) -> None:
    recording = Recording(run.path)
    assert recording.frame(-1).step_count == 249
    assert recording.at_time(-5.0).step_count == 3
    assert recording.at_time(0.0131).step_count == 6
    assert recording.at_time(99.0).step_count == 249
    expected = np.array([frame.states[7] for frame in run.frames], np.float32)
    assert np.array_equal(recording.track(7), expected)
    for mistake in (
        lambda: recording.frame(83),
        lambda: recording.membership(-84),
        lambda: recording.track(120),
        lambda: recording.track(-1),
        lambda: recording.at_time(float("nan")),
        lambda: recording.contacts(0, 2),
    ):
        with pytest.raises(LapjointError, match=r"bowl: .*(frame|body|time|worker)"):
            mistake()


def test_other_programs_can_read_it(run: SimpleNamespace) -> None:
    """It is plain Zarr: shapes agree, dimensions have names, and nothing in it is a pickled object."""
    import zarr

    group = zarr.open_group(run.path, mode="r")
    arrays = {name: array for name, array in group.members(max_depth=None) if isinstance(array, zarr.Array)}
    assert {name for name, array in arrays.items() if array.metadata.dimension_names is None} == set()
    assert {array.dtype.kind for array in arrays.values()} <= set("iuf")
    assert arrays["states"].shape == (83, 120, 13)
    assert arrays["states"].chunks == (32, 256, 13)
    assert np.array_equal(arrays["states"][40], run.frames[40].states.astype(np.float32))
    for name, array in arrays.items():
        rows = {"profile": 250, "measures": 250}.get(name.split("/")[0], 83)
        assert array.metadata.dimension_names[0] not in ("frame", "step") or array.shape[0] == rows


def test_pandas_has_a_column_for_every_number(run: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = Recording(run.path)
    frame = recording.to_pandas()
    assert frame.index.name == "step_count"
    assert len(frame) == 250
    assert {"phases_ms_balance", "worker_cpu_ms_1", "residual", "height", "low_0"} <= set(frame.columns)
    assert np.array_equal(frame["phases_ms_step"], recording.profile["phases_ms"][:, 4])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(LapjointError, match="pip install pandas"):
        recording.to_pandas()


@st.composite
def shapes_of_files(draw: st.DrawFn) -> dict[str, Any]:
    """Small chunks, so that a few frames have all the boundaries of a long recording."""
    return {
        "bodies": draw(st.integers(0, 9)),
        "workers": draw(st.sampled_from((1, 2, 3, 64, 65, 130))),
        "steps": draw(st.integers(0, 11)),
        "every": draw(st.integers(1, 3)),
        "contacts": draw(st.booleans()),
        "chunk_frames": draw(st.integers(1, 5)),
        "block_bodies": draw(st.integers(1, 6)),
        "row_bytes": draw(st.integers(8, 60)),
        "list_bytes": draw(st.integers(4, 60)),
        "part_s": draw(st.sampled_from((1e-6, 10.0))),
        "seed": draw(st.integers(0, 1000)),
    }


@pytest.mark.slow
@given(shapes_of_files())
@settings(max_examples=20)
def test_any_data_comes_back_over_any_chunk_boundaries(
    tmp_path_factory: pytest.TempPathFactory, drawn: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("random") / "r"
    scene, workers, every = balls(drawn["bodies"]), drawn["workers"], drawn["every"]
    seeds = range(drawn["seed"], drawn["seed"] + drawn["steps"])
    steps = [made(scene, i + 1, seed, workers) for i, seed in enumerate(seeds)]
    with (
        patch.object(store, "CHUNK_FRAMES", drawn["chunk_frames"]),
        patch.object(layout, "BLOCK_BODIES", drawn["block_bodies"]),
        patch.multiple(store, ROW_CHUNK_BYTES=drawn["row_bytes"], LIST_CHUNK_BYTES=drawn["list_bytes"]),
        patch.multiple(writer, CHUNK_S=0.0, PART_S=drawn["part_s"]),
        RecordingWriter(
            path, made(scene, workers=workers), every=every, contacts=drawn["contacts"], measures={"one": 1, "three": 3}
        ) as recorder,
    ):
        for step in steps:
            recorder.add(step, {"one": step.step_count, "three": [step.step_count, 0, 1]})
    recording = Recording(path)
    frames = steps[every - 1 :: every]
    assert recording.frame_count == len(frames)
    assert recording.profile["byte_count"].tolist() == [step.profile.byte_count for step in steps]
    times = np.array([step.profile.worker_cpu_ms for step in steps]).reshape(-1, workers)
    assert np.array_equal(recording.profile["worker_cpu_ms"], times)
    assert recording.measures["three"][:, 0].tolist() == recording.measures["one"].tolist()
    for i, step in enumerate(frames):
        assert np.array_equal(recording.frame(i).states, step.states.astype(np.float32))
        assert np.array_equal(recording.membership(i), table(step.membership))
        weights = recording.weights(i)
        rows = np.repeat(step.overlap, np.diff(step.weight_offset))
        assert np.array_equal(weights[rows, step.weight_worker], step.weight)
        assert np.allclose(weights.sum(axis=1), 1)
        if drawn["contacts"]:
            assert np.array_equal(recording.contacts(i).bodies, step.profile.contacts.bodies)
            assert np.array_equal(recording.contacts(i).depth, step.profile.contacts.depth)
    for body in range(scene.body_count):
        assert np.array_equal(recording.track(body), np.float32([s.states[body] for s in frames]).reshape(-1, 13))


@pytest.mark.parametrize("worker_count", [1, 64, 65, 200])
def test_the_first_worker_is_the_lowest(worker_count: int) -> None:
    last = worker_count - 1
    membership = members(worker_count, [last], [last, 0], [worker_count // 2, last])
    assert first_workers(membership.bits).tolist() == [last, 0, worker_count // 2]


# ---- mistakes ----------------------------------------------------------------------------------------------------


def test_a_place_that_is_taken_is_refused(tmp_path: Path) -> None:
    simulation = made(balls(2))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    with pytest.raises(LapjointError, match="full: is not empty, expected a new or empty directory"):
        RecordingWriter(tmp_path / "full", simulation)
    with pytest.raises(LapjointError, match="file: is a file, expected a new or empty directory"):
        RecordingWriter(tmp_path / "full" / "file", simulation)
    with pytest.raises(LapjointError, match="file is a file, expected a directory"):
        RecordingWriter(tmp_path / "full" / "file" / "r", simulation)
    assert (tmp_path / "full" / "file").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    RecordingWriter(tmp_path / "empty", simulation).close()
    RecordingWriter(tmp_path / "made" / "on" / "the way", simulation).close()
    assert Recording(tmp_path / "empty").frame_count == 0


def test_a_start_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.GrowingArray, "append", fail)
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new"):
        with pytest.raises(LapjointError, match=f"{name}: the recording cannot be written: No space left"):
            RecordingWriter(tmp_path / name, made(balls(2)))
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["empty"]


def test_wrong_options_and_measures_are_named(tmp_path: Path) -> None:
    simulation = made(balls(2))
    for options, text in (
        ({"every": 0}, "every is 0"),
        ({"measures": ["Gap"]}, "'Gap': expected a name"),
        ({"measures": ["../gap"]}, "'../gap': expected a name"),
        ({"measures": ["residual"]}, "'residual': the profile has that name"),
        ({"measures": {"gap": 0}}, "'gap' has 0 numbers"),
    ):
        with pytest.raises(LapjointError, match=text):
            RecordingWriter(tmp_path / "r", simulation, **options)  # type: ignore[arg-type]
    with RecordingWriter(tmp_path / "r", simulation, measures=["gap"]) as recorder:
        for measures, text in (
            ({}, "measure 'gap' is missing; expected: gap"),
            ({"gap": 1.0, "pag": 2.0}, "measure 'pag' was not named"),
            ({"gap": [1.0, 2.0]}, "measure 'gap' is .*, expected one number"),
            ({"gap": "wide"}, "measure 'gap' is 'wide', expected one number"),
        ):
            with pytest.raises(LapjointError, match=text):
                recorder.add(simulation, measures)  # type: ignore[arg-type]
    assert len(Recording(tmp_path / "r").measures["gap"]) == 0


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    for make in (
        lambda path: None,
        lambda path: path.write_text("a file"),
        lambda path: path.mkdir(),
        lambda path: (path.mkdir(), (path / "zarr.json").write_text("{torn")),
        lambda path: (path.mkdir(), (path / "zarr.json").write_text('{"attributes": {"format": "pictures"}}')),
    ):
        path = tmp_path / f"x{len(list(tmp_path.iterdir()))}"
        make(path)
        with pytest.raises(LapjointError, match=f"{path.name}: not a lapjoint recording .* expected a directory"):
            Recording(path)


@pytest.mark.parametrize("version", [0, 2, "new", None])
def test_another_version_is_refused(tmp_path: Path, version: object) -> None:
    record(tmp_path / "r", balls(2), 3)
    root = tmp_path / "r" / "zarr.json"
    content = json.loads(root.read_text())
    content["attributes"]["version"] = version
    root.write_text(json.dumps(content))
    with pytest.raises(LapjointError, match=f"r: recording version {version}, this lapjoint reads 1"):
        Recording(tmp_path / "r")


def test_damage_is_told_and_never_read_as_zeros(tmp_path: Path) -> None:
    record(tmp_path / "r", balls(2), 40)
    states = tmp_path / "r" / "states"
    chunk = (states / "c.1.0.0").read_bytes()
    (states / "c.1.0.0").unlink()
    with pytest.raises(LapjointError, match=r"damaged recording \(states/c\.1\.0\.0 is missing\)"):
        Recording(tmp_path / "r").frame(39)
    assert Recording(tmp_path / "r").frame(3).step_count == 4
    (states / "c.1.0.0").write_bytes(chunk[: len(chunk) // 2])
    with pytest.raises(LapjointError, match=r"damaged recording \(states/c\.1\.0\.0: \d+ bytes in \d+, expected"):
        Recording(tmp_path / "r").track(1)
    (states / "c.1.0.0").write_bytes(chunk[:100] + bytes(8) + chunk[108:])
    with pytest.raises(LapjointError, match=r"damaged recording \(states/c\.1\.0\.0: its checksum is wrong"):
        Recording(tmp_path / "r").track(1)
    (states / "zarr.json").unlink()
    with pytest.raises(LapjointError, match=r"damaged recording \(states: "):
        Recording(tmp_path / "r").frame(3)
    root = tmp_path / "r" / "zarr.json"
    root.write_text(root.read_text().replace('"every"', '"evermore"'))
    with pytest.raises(LapjointError, match=r"damaged recording \(zarr.json is not what was written"):
        Recording(tmp_path / "r")
    content = json.loads(root.read_text())
    del content["attributes"]["checksum"]
    root.write_text(json.dumps(content))
    with pytest.raises(LapjointError, match=r"damaged recording \(zarr.json is not what was written"):
        Recording(tmp_path / "r")
    content["attributes"] = seal(content["attributes"])
    root.write_text(json.dumps(content))
    with pytest.raises(LapjointError, match=r"damaged recording \(zarr\.json: every is missing, expected an"):
        Recording(tmp_path / "r")


@pytest.mark.slow
def test_a_flipped_bit_is_never_read(tmp_path: Path) -> None:
    """Wherever it is in a chunk, or in what the recording says of itself."""
    steps = record(tmp_path / "r", balls(40), 40)
    chance = random.Random(5)
    for path in [
        *(tmp_path / "r" / "states").glob("c.*"),
        tmp_path / "r" / "zarr.json",
        tmp_path / "r" / "scene" / "c.0",
    ]:
        content = path.read_bytes()
        for _ in range(60):
            flipped = bytearray(content)
            flipped[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            path.write_bytes(flipped)
            try:
                recording = Recording(tmp_path / "r")
                states = [recording.frame(i).states for i in range(len(recording))]
                found = len(recording), recording.timestep, recording.scene, recording.params
            except LapjointError as error:
                assert "damaged recording" in str(error) or "not a lapjoint recording" in str(error)  # noqa: PT017
            else:  # a name that nobody reads, or space between words
                assert path.name == "zarr.json"
                assert found == (40, steps[0].timestep, steps[0].scene, recording.params)
                assert np.array_equal(states[39], np.float32(steps[39].states))
        path.write_bytes(content)
        whole = Recording(tmp_path / "r")
        assert np.array_equal(whole.frame(39).states, np.float32(steps[39].states))
        assert whole.scene == steps[0].scene


FOREIGN: dict[str, Callable[[dict[str, Any]], object]] = {
    "codec": lambda content: content["codecs"].insert(1, {"name": "numcodecs.pickle", "configuration": {}}),
    "last codec": lambda content: content["codecs"].append({"name": "gzip", "configuration": {"level": 1}}),
    "no codec": lambda content: content.update(codecs=[]),
    "data type": lambda content: content.update(data_type="variable_length_utf8"),
    "order": lambda content: content["codecs"][0]["configuration"].update(order=[0, 0, 0]),
    "chunk": lambda content: content["chunk_grid"]["configuration"].update(chunk_shape=[1 << 20, 1 << 20, 13]),
    "no chunk": lambda content: content["chunk_grid"]["configuration"].update(chunk_shape=[0, 2, 13]),
    "shape": lambda content: content.update(shape=[-1, 2, 13]),
    "transformer": lambda content: content.update(storage_transformers=[{"name": "x"}]),
    "key": lambda content: content.update(chunk_key_encoding={"name": "v2", "configuration": {"separator": "/"}}),
    "format": lambda content: content.update(zarr_format=2),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_an_array_that_was_not_written_here_is_not_opened(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path / "r", balls(2), 3)
    path = tmp_path / "r" / "states" / "zarr.json"
    content = json.loads(path.read_text())
    FOREIGN[name](content)
    path.write_text(json.dumps(content))
    monkeypatch.setattr(decoding, "_blosc", lambda: pytest.fail("it was opened"))
    with pytest.raises(LapjointError, match=r"r: damaged recording \(states: "):
        Recording(tmp_path / "r").frame(0)


def test_an_array_of_zarr_2_is_not_opened(tmp_path: Path) -> None:
    """There an array may hold pickles, which run code when they are read."""
    import zarr

    record(tmp_path / "r", balls(2), 3)
    folder = tmp_path / "r" / "states"
    shape = zarr.open_array(folder, mode="r").shape
    shutil.rmtree(folder)
    zarr.create_array(folder, shape=shape, dtype="float32", chunks=(32, 2, 13), zarr_format=2)[:] = 1.0
    with pytest.raises(LapjointError, match=r"r: damaged recording \(states: .*zarr.json"):
        Recording(tmp_path / "r").frame(0)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of five bodies on two workers."""
    return write_example(tmp_path_factory.mktemp("example") / "r")


def with_attribute(example: Path, folder: Path, name: str, value: object) -> Path:
    """A copy of it with one attribute changed."""
    path = Path(shutil.copytree(example, folder / "changed", dirs_exist_ok=True))
    content = json.loads((path / "zarr.json").read_text())
    content["attributes"] = seal({**content["attributes"], name: value})
    (path / "zarr.json").write_text(json.dumps(content))
    return path


WRONG: dict[str, list[object]] = {
    "frame_count": [-1, 1.5, "3", None, True, 10**30],
    "profile_count": [-1, {}],
    "body_count": [-1, "all", 2**31],
    "worker_count": [-1, 0, 1.5, "two", None, [], 10**9],
    "every": [0, -2, None],
    "timestep": [0, -0.1, float("nan"), float("inf"), 10**400, "fast", None],
    "complete": [1, "yes", None],
    "contacts": ["no"],
    "interface": [3],
    "started": [5],
    "versions": [[], "1.0"],
    "machine": [7, {"core_count": "two"}],
    "resumed_from": [4],
    "params": [[], None],
    "phases": ["solve", [1], [None]],
    "profile": [{"a": 1}, ["../states"], ["/etc"], [""]],
    "measures": [None, [[]]],
    "events": [{}, [1], ["x"], [{}], [{"step_count": "x", "kind": "stop", "text": ""}]],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_attribute_is_named_with_its_file(example: Path, tmp_path: Path, name: str) -> None:
    for value in WRONG[name]:
        path = with_attribute(example, tmp_path, name, value)
        with pytest.raises(LapjointError) as caught:
            Recording(path)
        assert str(caught.value).startswith(f"{path}: damaged recording (zarr.json: {name} is ")
        assert ", expected " in str(caught.value)


def test_attributes_that_do_not_fit_the_arrays_are_told(example: Path, tmp_path: Path) -> None:
    cases: list[tuple[str, object, Callable[[Recording], object], str]] = [
        ("worker_count", 1, lambda r: r.membership(0), r"_worker has 1, expected 0 to 0"),
        ("worker_count", 1, lambda r: r.weights(0), r"_worker has 1, expected 0 to 0"),
        (
            "body_count",
            10**9,
            lambda r: r.membership(0),
            r"first_worker has rows of \[5\] numbers, expected \[1000000000\]",
        ),
        ("body_count", 3, lambda r: r.frame(0), r"states has rows of \[5, 13\] numbers, expected \[3, 13\]"),
        ("body_count", 3, lambda r: r.scene, r"body_count is 3, expected the scene's, 5"),
        ("frame_count", 10**6, lambda r: r.times, r"time"),
        ("phases", ["one"], lambda r: r.profile["phases_ms"], r"phases_ms has rows of"),
        ("params", {"workers": "many"}, lambda r: r.params, r"zarr\.json: params: workers is many"),
        ("params", {"coupling": ["tight"]}, lambda r: r.params, r"zarr\.json: params: coupling"),
    ]
    for number, (name, value, use, text) in enumerate(cases):
        recording = Recording(with_attribute(example, tmp_path / str(number), name, value))
        with pytest.raises(LapjointError, match=rf"changed: damaged recording \(.*{text}"):
            use(recording)


def test_contacts_that_were_not_recorded_are_not_made_up(tmp_path: Path) -> None:
    record(tmp_path / "r", balls(2), 1)
    with pytest.raises(LapjointError, match="recorded without contacts"):
        Recording(tmp_path / "r").contacts(0)


# ---- all of one run ----------------------------------------------------------------------------------------------


def test_all_that_a_run_leaves_is_read(example: Path) -> None:
    recording = Recording(example)
    assert recording.complete
    assert recording.steps.tolist() == [2, 4, 6, 8]
    assert recording.at_time(0.012).step_count == 6
    assert recording.scene.name == "example"
    assert recording.scene.joint_count == 1
    assert (recording.params.workers, recording.params.sequential.iterations, recording.every) == (2, 50, 2)
    for i, frame in enumerate(recording):
        assert np.allclose(frame.states[:, 2], [0.25, 0.75, 1.25, 1.75, 2.25], rtol=0, atol=0.01)
        assert np.allclose(np.linalg.norm(frame.states[:, 3:7], axis=1), 1, rtol=0, atol=1e-6)
        assert np.array_equal(frame.states[4], recording.track(4)[i])
        assert recording.membership(i).sum(axis=1).max() == 2
        assert np.allclose(recording.weights(i).sum(axis=1), 1)
        contacts = recording.contacts(i)
        assert contacts.bodies.tolist() == [[0, -1], [0, 1], [1, 2], [2, 3]]
        assert contacts.point_count.tolist() == [4, 4, 4, 4]
        assert np.abs(contacts.depth).max() < 0.01
    loads = recording.profile["worker_body_count"]
    assert loads.shape == (9, 2)
    assert loads[7].tolist() == recording.membership(3).sum(axis=0).tolist()
    assert recording.profile["step_count"].tolist() == list(range(1, 10))
    assert np.array_equal(recording.measures["ends"][1::2].astype(np.float32), heights(recording)[:, [0, 4]])
    assert recording.to_pandas().shape == (9, 29)


def heights(recording: Recording) -> NDArray[np.float32]:
    return np.array([frame.states[:, 2] for frame in recording], np.float32)
