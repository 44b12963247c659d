"""Recordings of runs in which bodies and joints come and go."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lapjoint import (
    Ball,
    Box,
    Breaks,
    Checkpoint,
    CheckpointWriter,
    Fixed,
    LapjointError,
    Params,
    Plane,
    Recording,
    RecordingWriter,
    Scene,
    Simulation,
    Sphere,
)
from lapjoint.recording import layout, writer
from lapjoint.recording.changes import ChangeFinder
from lapjoint.recording.description import seal
from lapjoint.scene.joints import WORLD
from lapjoint.scene.living import NEVER, LivingScene
from lapjoint.scene.serialize import scene_to_bytes
from lapjoint.scene.shapes import mass_properties
from parallel_support import poll
from recording_support import table


def boxes(count: int = 6) -> Scene:
    scene = Scene("row")
    scene.add_static(Plane())
    scene.add_bodies(Box((1.0, 1.0, 1.0)), [[2.0 * i, 0.0, 0.501] for i in range(count)])
    return scene


def start(**params: Any) -> Simulation:
    return Simulation(
        boxes(), Params.from_options(**{"runtime": "inline", "workers": 2, "coupling": "tight", **params})
    )


def change(simulation: Simulation, k: int) -> None:
    """What happens before the steps of round k: something is made in every one, and goes in some."""
    x = 2.0 * (k % 6)
    first, second = simulation.bodies.add([Sphere(0.3), Box((0.4, 0.4, 0.1 + 0.01 * k))], [[x, 0, 3], [x, 0, 3.7]])
    if k % 3 == 2:
        simulation.joints.add(Ball(), [first], [second], [[x, 0.0, 3.4]])
    if k % 4 == 3:
        simulation.bodies.remove(np.flatnonzero(simulation.alive)[[0, -3]])
    if k == 5:
        simulation.joints.add_one(Fixed(breaks=Breaks(force=1.0)), second, WORLD, (x, 0.0, 3.7))
        simulation.joints.remove(np.flatnonzero(simulation.scene.joint_alive)[:1])


def record(path: Path, simulation: Simulation, rounds: int = 8, *, in_callback: bool = False) -> list[SimpleNamespace]:
    """What the simulation had in each frame. Changes come between two steps, or within a call of `step`."""
    frames = []
    if in_callback:
        simulation.on_step(lambda one: change(one, one.step_count // 3) if one.step_count % 3 == 0 else None)
    with RecordingWriter(path, simulation, every=2, contacts=True) as recorder:
        for step in range(3 * rounds):
            if not in_callback and step % 3 == 0:
                change(simulation, step // 3)
            simulation.step()
            recorder.add(simulation)
            if step % 2:
                frames.append(
                    SimpleNamespace(
                        states=simulation.states,
                        alive=simulation.alive.copy(),
                        joint_alive=simulation.scene.joint_alive.copy(),
                        membership=table(simulation.workers.membership),
                        weights=simulation.workers.weights(),
                        events=simulation.events.all,
                        breaks=simulation.events.joint_breaks,
                        steps=simulation.scene.steps,
                    )
                )
    return frames


def check(recording: Recording, scene: LivingScene, frames: list[SimpleNamespace]) -> None:
    """Every frame is as the simulation had it; `scene` is that of its end."""
    assert (recording.scene.extent, recording.scene.shapes) == (scene.extent, scene.shapes)
    seen = np.flatnonzero(np.any([recording.alive(i) for i in range(len(recording))], axis=0))
    for name in scene.bodies:
        assert np.array_equal(getattr(recording.scene.bodies, name)[seen], getattr(scene.bodies, name)[seen])
    for name in scene.joints:
        assert np.array_equal(getattr(recording.scene.joints, name), getattr(scene.joints, name))
    assert len(recording) == len(frames)
    assert recording.body_count == scene.body_count
    for name in ("first_step", "last_step", "joint_first_step", "joint_last_step"):
        assert np.array_equal(getattr(recording, name), getattr(scene, name))
    tracks = [recording.track(body) for body in range(recording.body_count)]
    for i, had in enumerate(frames):
        count, joint_count = len(had.alive), len(had.joint_alive)
        states = recording.frame(i).states
        assert states.shape == (recording.body_count, 13)
        assert np.array_equal(states[:count], had.states.astype(np.float32))
        assert not states[count:].any()
        assert np.array_equal(states, [track[i] for track in tracks])
        assert np.array_equal(np.flatnonzero(recording.alive(i)), np.flatnonzero(had.alive))
        assert np.array_equal(np.flatnonzero(recording.joint_alive(i)), np.flatnonzero(had.joint_alive))
        assert not recording.joint_alive(i)[joint_count:].any()
        if i % 3:
            continue
        workers = had.membership.shape[1]
        assert np.array_equal(recording.membership(i)[:count, :workers], had.membership)
        assert np.array_equal(recording.weights(i)[:count, :workers], had.weights * had.alive[:, None])
        assert not recording.membership(i)[~recording.alive(i)].any()
        for name, column in vars(had.events).items():
            assert np.array_equal(getattr(recording.events(i), name), column)
        assert np.array_equal(recording.joint_breaks(i).joint, had.breaks.joint)
        assert (recording.contacts(i).bodies[:, 0] < count).all()


@pytest.mark.slow
@pytest.mark.parametrize("in_callback", [False, True])
@pytest.mark.parametrize("way", [{"workers": 1}, {"coupling": "tight"}, {"coupling": "blend"}], ids=str)
def test_frames_have_whoever_was_there(
    way: dict[str, Any], in_callback: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "BLOCK_BODIES", 4)
    with start(**way) as simulation:
        frames = record(tmp_path / "r", simulation, in_callback=in_callback)
        assert len(simulation.events.joint_breaks.joint) == 1
        check(Recording(tmp_path / "r"), simulation.scene, frames)
    assert json.loads((tmp_path / "r" / "zarr.json").read_text())["attributes"]["changes"] is True


def test_a_run_without_changes_is_recorded_as_ever(tmp_path: Path) -> None:
    with start() as simulation, RecordingWriter(tmp_path / "r", simulation) as recorder:
        for _ in range(3):
            simulation.step()
            recorder.add(simulation)
    attributes = json.loads((tmp_path / "r" / "zarr.json").read_text())["attributes"]
    assert attributes["changes"] is False
    assert not any(path.name.startswith(("life", "growth")) for path in (tmp_path / "r").iterdir())
    recording = Recording(tmp_path / "r")
    assert recording.alive(0).all()
    assert recording.last_step.tolist() == [NEVER] * 6
    assert len(recording.events()) == 0
    with pytest.raises(LapjointError, match="no frame 3"):
        recording.alive(3)


def test_a_recording_that_begins_late_knows_what_was_before(tmp_path: Path) -> None:
    with start() as first:
        for k in range(8):
            change(first, k)
            first.step(3)
        path = CheckpointWriter(tmp_path / "c", first).save(first)
    with Checkpoint(path).resume() as second:
        frames = record(tmp_path / "r", second, 3)
        recording = Recording(tmp_path / "r")
        check(recording, second.scene, frames)
        assert len(recording.events(0).of("made")) > 16


def test_bodies_that_have_come_and_gone_between_frames_are_of_the_scene(tmp_path: Path) -> None:
    """So many that their memory was given back before they are recorded."""
    with start(workers=1) as simulation:
        for first in (6, 2506):
            new = simulation.bodies.add(Sphere(0.1), [[0.3 * i, 9.0, 1.0] for i in range(2500)], mass=2.0)
            assert new[0] == first
            simulation.bodies.remove(new[:-1])
            if first == 6:
                recorder = RecordingWriter(tmp_path / "r", simulation)
            assert not simulation.scene.bodies.inertia[1024:2048].all()
        with recorder:
            simulation.step()
            recorder.add(simulation)
    recording = Recording(tmp_path / "r")
    assert np.flatnonzero(recording.alive(0)).tolist() == [*range(6), 2505, 5005]
    assert recording.scene.bodies.mass[[2505, 5005]].tolist() == [2.0, 2.0]
    assert len(recording.events().of("removed")) == 4998
    files = list((tmp_path / "r" / "states").glob("c.*"))
    assert len(files) == 3


def test_joints_that_break_and_those_that_are_removed_are_told_apart(tmp_path: Path) -> None:
    with start(workers=1) as simulation, RecordingWriter(tmp_path / "r", simulation) as recorder:
        simulation.joints.add_one(Fixed(breaks=Breaks(force=1.0)), 0, WORLD, (0, 0, 0.5))
        simulation.joints.add(Ball(), [1, 3], [2, 4], [[3, 0, 0.5], [7, 0, 0.5]])
        simulation.set_states([0], [[0, 0, 4.0, 1, 0, 0, 0, *[0.0] * 6]])
        simulation.step()
        recorder.add(simulation)
        simulation.joints.remove([1])
        simulation.bodies.remove([4])
        simulation.step()
        recorder.add(simulation)
    recording = Recording(tmp_path / "r")
    assert recording.joint_breaks().joint.tolist() == [0]
    assert [recording.joint_alive(i).tolist() for i in range(2)] == [[False, True, True], [False, False, False]]
    assert recording.joint_last_step.tolist() == [0, 1, 1]


def test_disk_use_follows_those_who_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many pass through, few are there at a time: their blocks have files, and no others."""
    monkeypatch.setattr(layout, "BLOCK_BODIES", 16)
    with start(workers=1) as simulation, RecordingWriter(tmp_path / "r", simulation) as recorder:
        for _ in range(96):
            new = simulation.bodies.add(Sphere(0.1), [[0.0, 5.0, 1.0 + 0.3 * i] for i in range(4)])
            simulation.step()
            recorder.add(simulation)
            simulation.bodies.remove(new)
    recording = Recording(tmp_path / "r")
    assert recording.body_count == 390
    for name in ("states", "first_worker"):
        files = [path.name.split(".")[1:3] for path in (tmp_path / "r" / name).glob("c.*")]
        per_chunk = np.bincount([int(chunk) for chunk, _ in files])
        assert len(per_chunk) == 3
        assert per_chunk.max() <= 1 + 4 * 32 // 16 + 1
    assert recording.alive(50).sum() == 10
    assert np.array_equal(np.flatnonzero(recording.frame(50).states[:, 3]), np.flatnonzero(recording.alive(50)))


CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from lapjoint import RecordingWriter
from lapjoint.recording import layout, writer
from recording.test_recording_changes import change, start

writer.CHUNK_S, writer.PART_S, layout.BLOCK_BODIES = 0.0, 0.01, 16
with start() as simulation:
    recorder = RecordingWriter(sys.argv[1], simulation)
    print("recording", flush=True)
    for k in range(100_000):
        change(simulation, k)
        simulation.step()
        recorder.add(simulation)
"""


@pytest.mark.slow
def test_a_killed_run_leaves_what_was_there_up_to_its_last_frame(tmp_path: Path) -> None:
    tests = str(Path(__file__).parents[1])
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD.format(tests=tests), str(tmp_path / "r")], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    with child, child.stdout as output:
        assert output.readline() == "recording\n"
        assert poll(lambda: Recording(tmp_path / "r").frame_count >= 45, 60)
        living = Recording(tmp_path / "r")  # while it is being written
        child.send_signal(signal.SIGKILL)
    dead = Recording(tmp_path / "r")
    assert not dead.complete
    with start() as simulation:
        states = []
        for k in range(dead.frame_count):
            change(simulation, k)
            simulation.step()
            states.append((simulation.states.astype(np.float32), simulation.alive.copy()))
            if k + 1 in (living.frame_count, dead.frame_count):
                recording = living if k + 1 == living.frame_count else dead
                assert recording.scene == simulation.scene
                assert np.array_equal(recording.last_step, simulation.scene.last_step)
                assert np.array_equal(recording.events().number, simulation.events.all.number)
                for i, (had, alive) in enumerate(states):
                    found = recording.frame(i).states
                    assert np.array_equal(found[: len(had)], had)
                    assert not found[len(had) :].any()
                    assert np.array_equal(np.flatnonzero(recording.alive(i)), np.flatnonzero(alive))


def test_a_restart_is_refused_where_it_takes_bodies_back(tmp_path: Path) -> None:
    with start(workers=1) as simulation, RecordingWriter(tmp_path / "r", simulation) as recorder:
        simulation.bodies.add_one(Sphere(0.2), (0, 0, 3))
        simulation.step()
        recorder.add(simulation)
        simulation.restart()
        simulation.step()
        with pytest.raises(LapjointError, match="was restarted, and its recording cannot be"):
            recorder.add(simulation)
    assert len(Recording(tmp_path / "r")) == 1


def test_the_queue_has_room_for_fewer_frames_of_more_bodies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "QUEUE_BYTES", 8 * 13 * 60)
    with start(workers=1) as simulation, RecordingWriter(tmp_path / "r", simulation) as recorder:
        assert recorder._queue.maxsize == 9
        simulation.bodies.add(Sphere(0.1), [[0.0, 5.0, 1.0 + 0.3 * i] for i in range(14)])
        simulation.step()
        recorder.add(simulation)
        assert recorder._queue.maxsize == 2


def test_nothing_new_is_no_change() -> None:
    with start() as simulation:
        finder = ChangeFinder(simulation.scene)
        none = np.empty(0, np.int32)
        assert finder.find(simulation.scene, none) is None
        simulation.bodies.add_one(Sphere(0.1), (0, 0, 5))
        changes = finder.find(simulation.scene, none)
        assert changes is not None
        assert len(changes.growth)
        assert finder.find(simulation.scene, none) is None
        simulation.bodies.remove([2])
        changes = finder.find(simulation.scene, none)
        assert changes is not None
        assert (changes.number.tolist(), len(changes.growth)) == ([2], 0)


# ---- damage ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("changes") / "r"
    with pytest.MonkeyPatch.context() as patch, start(workers=1) as simulation:
        patch.setattr(layout, "BLOCK_BODIES", 4)
        record(path, simulation)
    return path


def use(recording: Recording) -> list[Any]:
    """All that depends on who is there."""
    frames = [(frame.states.tolist(), recording.alive(i).tolist()) for i, frame in enumerate(recording)]
    events = {name: column.tolist() for name, column in vars(recording.events()).items()}
    return [frames, events, recording.joint_alive(-1).tolist(), scene_to_bytes(recording.scene)]


@pytest.mark.slow
def test_a_missing_file_is_damage_and_no_absence(whole: Path, tmp_path: Path) -> None:
    for name in ("states", "first_worker", "life_number", "growth_byte"):
        files = sorted((whole / name).glob("c.*"))[-2:]
        assert files
        for file in files:
            path = shutil.copytree(whole, tmp_path / "r", dirs_exist_ok=True)
            (path / name / file.name).unlink()
            with pytest.raises(LapjointError, match=rf"damaged recording \({name}/{file.name} is missing"):
                [(use(recording), recording.membership(i)) for recording in [Recording(path)] for i in range(12)]
            shutil.rmtree(path)


@pytest.mark.slow
def test_a_flipped_bit_is_never_read(whole: Path, tmp_path: Path) -> None:
    path = shutil.copytree(whole, tmp_path / "r")
    expected, chance = use(Recording(path)), random.Random(3)
    for name in ("life_offset", "life_step", "life_kind", "life_number", "growth_offset", "growth_byte"):
        for file in (path / name).iterdir():
            content = file.read_bytes()
            for _ in range(12):
                flipped = bytearray(content)
                flipped[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
                file.write_bytes(flipped)
                try:
                    found = use(Recording(path))
                except LapjointError as error:
                    assert "damaged" in str(error)  # noqa: PT017
                else:  # space between words
                    assert found == expected
            file.write_bytes(content)


def rewrite(path: Path, name: str, values: Any) -> None:
    """Put other numbers into an array, as a stranger would, with checksums that are right."""
    import zarr

    array: Any = zarr.open_array(path / name, mode="r+", zarr_format=3)
    array[: len(values)] = values


WRONG: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "an unknown kind": ("life_kind", lambda values: values + 9, "life_kind has"),
    "a number that is none": ("life_number", lambda values: values + 5, "are made, expected the last of"),
    "a negative number": ("life_number", lambda values: np.where(values == 0, -1, values), "are removed, expected"),
    "gone before it came": ("life_step", lambda values: np.arange(len(values))[::-1], "before it is made"),
    "a negative step": ("life_step", lambda values: values - 40, "before it is made"),
    "offsets that go back": (
        "life_offset",
        lambda values: np.where(np.arange(len(values)) == 9, 0, values),
        "goes back",
    ),
    "an offset not from 0": ("life_offset", lambda values: values + 1, "goes back|rows"),
    "growth that goes back": ("growth_offset", lambda values: values[::-1], "goes back"),
    "growth of others": ("growth_byte", lambda values: values[::-1], "damaged scene file"),
    "less growth": ("growth_offset", lambda values: np.minimum(values, values[3]), "body_count is"),
    "growth in other pieces": ("growth_offset", lambda values: values // 2, "damaged scene file"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_what_a_stranger_writes_is_one_clear_error(name: str, whole: Path, tmp_path: Path) -> None:
    import zarr

    array, wrong, text = WRONG[name]
    path = shutil.copytree(whole, tmp_path / "r")
    rewrite(path, array, wrong(np.array(zarr.open_array(path / array, mode="r"))))
    with pytest.raises(LapjointError, match=text) as caught:
        use(Recording(path))
    assert str(path) in str(caught.value)


MASS = 1000 * mass_properties(Sphere(0.3))[0]
GROWN: dict[str, Callable[[bytes], bytes]] = {
    "names a shape that is none": lambda content: content.replace(b'"Sphere"', b'"Spherx"'),
    "shape with a negative radius": lambda content: content.replace(b'"radius": 0.3', b'"radius": -.3'),
    "another extent": lambda content: content.replace(b'"extent": [2, 6, 0]', b'"extent": [1, 5, 0]'),
    "mass not a number": lambda content: content.replace(np.float64(MASS).tobytes(), b"\xff" * 8),
    "fewer rows": lambda content: content.replace(b'"bodies/mass", "<f8", [2]', b'"bodies/mass", "<f8", [1]'),
    "endless rows": lambda content: content.replace(b'"<f8", [2, 3]', b'"<f8", [8, 0]'),
    "objects": lambda content: content.replace(b'"<f8", [2]', b'"|O8", [2]'),
    "no json": lambda content: content.replace(b'{"description"', b'["description"'),
}


@pytest.mark.parametrize("name", GROWN)
def test_growth_of_a_stranger_is_checked_like_a_scene(name: str, whole: Path, tmp_path: Path) -> None:
    recording = Recording(whole)
    edges = recording.read("growth_offset", 0, 3)
    content = recording.read("growth_byte", 0, int(edges[1])).tobytes()
    changed = GROWN[name](content)
    assert changed != content
    assert len(changed) == len(content)
    path = shutil.copytree(whole, tmp_path / "r")
    rewrite(path, "growth_byte", np.frombuffer(changed, np.uint8))
    with pytest.raises(LapjointError, match=r"damaged scene file|expected"):
        _ = Recording(path).scene


def test_attributes_that_do_not_fit_are_told(whole: Path, tmp_path: Path) -> None:
    for name, value in (("body_count", 7), ("body_count", 10**9), ("changes", False), ("changes", "yes")):
        path = shutil.copytree(whole, tmp_path / "r")
        content = json.loads((path / "zarr.json").read_text())
        del content["attributes"]["checksum"]
        content["attributes"] = seal(content["attributes"] | {name: value})
        (path / "zarr.json").write_text(json.dumps(content))
        with pytest.raises(LapjointError, match=f"{path}: damaged recording"):
            use(Recording(path))
        shutil.rmtree(path)
