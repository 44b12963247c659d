"""However a run ends, by itself, by a signal, by a full disk: its recording is right as far as it goes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lapjoint import LapjointError, Params, Recording, RecordingWriter, Simulation, scenes
from lapjoint.recording import place, store, writer
from parallel_support import finish, poll
from recording_support import balls, made
from tight_runs import pids

# ---- how a run ends ----------------------------------------------------------------------------------------------

CHILD = """
import sys
from lapjoint import Params, RecordingWriter, Simulation, scenes
from lapjoint.recording import writer

writer.CHUNK_S, writer.PART_S = 0.0, 0.01  # more moments to be killed in
with Simulation(scenes.build("chain", 12), Params(workers=2, runtime="inline")) as simulation:
    recorder = RecordingWriter(sys.argv[1], simulation, every=2, measures=["half"])
    print("recording", flush=True)
    while True:
        simulation.step()
        recorder.add(simulation, {"half": simulation.step_count / 2})
"""


def whole_run() -> Iterator[tuple[NDArray[np.float32], NDArray[np.float64]]]:
    """The frames of the same run, if nobody ends it."""
    with Simulation(scenes.build("chain", 12), Params(workers=2, runtime="inline")) as simulation:
        while True:
            simulation.step(2)
            yield simulation.states.astype(np.float32), simulation.workers.weights()


@pytest.mark.slow
def test_a_killed_run_leaves_a_recording_that_is_right_up_to_its_end(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    recordings = []
    paths = [tmp_path / "0", tmp_path / "1"]
    runs = [
        subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True) for path in paths
    ]
    for path, child in zip(paths, runs, strict=True):
        assert child.stdout is not None
        with child, child.stdout as output:
            assert output.readline() == "recording\n"
            least = int(rng.integers(0, 150))
            assert poll(lambda path=path, least=least: Recording(path).frame_count >= least, 60)
            time.sleep(rng.uniform(0, 0.05))
            recordings.append(Recording(path))  # while it is being written
            child.send_signal(signal.SIGKILL)
        assert child.returncode == -signal.SIGKILL
        recordings.append(Recording(path))
    assert not any(recording.complete for recording in recordings)
    longest = max(recording.frame_count for recording in recordings)
    run = whole_run()
    expected = [next(run) for _ in range(longest)]
    run.close()
    states = np.array([states for states, _ in expected])
    for recording in recordings:
        count = recording.frame_count
        assert recording.steps.tolist() == list(range(2, 2 * count + 1, 2))
        assert np.array_equal(recording.read("states", 0, count), states[:count])
        for i in range(0, count, 1 + count // 10):
            assert np.array_equal(recording.weights(i), expected[i][1])
        steps = recording.profile["step_count"]
        assert len(steps) >= 2 * count
        assert steps.tolist() == list(range(1, len(steps) + 1))
        assert np.array_equal(recording.measures["half"], steps / 2)
        assert recording.scene == scenes.build("chain", 12)


def test_full_chunks_count_while_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "CHUNK_S", 0.0)
    scene = balls(3)
    with RecordingWriter(tmp_path / "r", made(scene)) as recorder:
        for i in range(70):
            recorder.add(made(scene, i + 1, seed=i))
        assert poll(lambda: Recording(tmp_path / "r").frame_count == 64, 60)
        assert not Recording(tmp_path / "r").complete
    assert Recording(tmp_path / "r").frame_count == 70


def test_a_part_of_a_chunk_counts_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "PART_S", 0.01)
    scene = balls(3)
    with RecordingWriter(tmp_path / "r", made(scene)) as recorder:
        for count in (1, 5):
            for i in range(count):
                recorder.add(made(scene, i + 1, seed=i))
        assert poll(lambda: Recording(tmp_path / "r").frame_count == 6, 60)


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_run_loses_nothing(tmp_path: Path, kind: type[BaseException]) -> None:
    scene = balls(2)
    recorder = RecordingWriter(tmp_path / "r", made(scene))

    def go() -> None:
        with recorder:
            for i in range(40):
                recorder.add(made(scene, i + 1, seed=i))
            raise kind

    with pytest.raises(kind):
        go()
    assert Recording(tmp_path / "r").frame_count == 40
    assert Recording(tmp_path / "r").complete
    with pytest.raises(LapjointError, match="is closed"):
        recorder.add(made(scene))
    recorder.close()  # again


FORGETFUL = """
import sys
from lapjoint import Params, RecordingWriter, Simulation, scenes

simulation = Simulation(scenes.build("chain", 5), Params(runtime="inline"))
recorder = RecordingWriter(sys.argv[1], simulation)
for _ in range(5):
    simulation.step()
    recorder.add(simulation)
"""


@pytest.mark.slow
def test_a_program_that_forgets_to_close_loses_nothing(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FORGETFUL, str(tmp_path / "r")], check=True)
    assert Recording(tmp_path / "r").frame_count == 5
    assert Recording(tmp_path / "r").complete


def test_the_step_waits_for_a_slow_disk_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    add = store.RecordingStore.add

    def slow(self: store.RecordingStore, step: store.StepSample) -> bool:
        assert gate.wait(60)
        return add(self, step)

    monkeypatch.setattr(store.RecordingStore, "add", slow)
    monkeypatch.setattr(writer, "QUEUE_BYTES", 0)
    scene = balls(2)
    steps = [made(scene, i + 1, seed=i) for i in range(12)]
    done: list[int] = []
    with RecordingWriter(tmp_path / "r", made(scene)) as recorder:

        def go() -> None:
            for step in steps:
                recorder.add(step)
                done.append(step.step_count)

        thread = threading.Thread(target=go)
        thread.start()
        assert poll(lambda: len(done) == 3, 60)  # one with the thread, two in the queue
        thread.join(0.1)
        assert done == [1, 2, 3]
        gate.set()
        thread.join()
    assert Recording(tmp_path / "r").steps.tolist() == list(range(1, 13))


# ---- full disks --------------------------------------------------------------------------------------------------

FULL_DISK = """
import json, resource, sys
from pathlib import Path
import numpy as np
from lapjoint import LapjointError, Recording, RecordingWriter
from lapjoint.recording import writer
from recording_support import balls, made

path, limit, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
writer.CHUNK_S = 0.0
scene = balls(200)
recorder = RecordingWriter(path, made(scene))
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
told = []
try:
    for i in range(count):
        step = made(scene, i + 1, seed=i)
        if i < 40:
            step.states[:] = 1.5  # these take next to no space
        recorder.add(step)
        if i == 63 and limit:
            while not Recording(path).frame_count:
                pass
except LapjointError as error:
    told.append(f"add: {error}")
try:
    recorder.close()
except LapjointError as error:
    told.append(f"close: {error}")
recording = Recording(path)
right = True
for i, frame in enumerate(recording):
    expected = made(scene, seed=i).states if i >= 40 else np.full((200, 13), 1.5)
    right = right and np.array_equal(frame.states, expected.astype(np.float32))
print(json.dumps({"told": told, "frame_count": recording.frame_count, "right": right, "complete": recording.complete}))
"""


def full_disk(path: Path, limit: int, count: int, *before: str) -> dict[str, Any]:
    command = [*before, sys.executable, "-c", FULL_DISK, str(path), str(limit), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.slow
def test_a_file_that_cannot_grow_is_told_by_the_next_step(tmp_path: Path) -> None:
    """A limit of the system on the size of files: the chunk that exceeds it is the second one."""
    told = full_disk(tmp_path / "r", 100_000, 10_000)
    (text,) = told.pop("told")
    assert text == (
        f"add: {tmp_path}/r: the recording cannot be written: a file is too large: this process may write "
        "100,000 bytes into one (`ulimit -f` raises that); its first 32 frames are kept"
    )
    assert told == {"frame_count": 32, "right": True, "complete": False}


@pytest.mark.slow
def test_a_failure_at_the_end_is_told_by_close(tmp_path: Path) -> None:
    told = full_disk(tmp_path / "r", 1000, 10)
    (text,) = told.pop("told")
    assert text.startswith(f"close: {tmp_path}/r: the recording cannot be written: a file is too large")
    assert told == {"frame_count": 0, "right": True, "complete": False}


@pytest.mark.slow
def test_a_full_disk_leaves_what_was_written(tmp_path: Path) -> None:
    """A file system of two megabytes, mounted where only this test sees it."""
    mount = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    inside = f'mount -t tmpfs -o size=2m none "{tmp_path}" && exec "$@"'
    try:
        subprocess.run([*mount, inside, "sh", "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no right to mount a file system here")
    told = full_disk(tmp_path / "r", 0, 100_000, *mount, inside, "sh")
    (text,) = told.pop("told")
    assert text.startswith(f"add: {tmp_path}/r: the recording cannot be written: No space left on device; its first ")
    assert told.pop("frame_count") >= 64
    assert told == {"right": True, "complete": False}


def test_an_error_of_the_run_is_not_hidden_by_one_of_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    scene = balls(2)

    def go() -> None:
        with RecordingWriter(tmp_path / "r", made(scene)) as recorder:
            monkeypatch.setattr(store, "write_group", fail)
            recorder.add(made(scene, 1))
            raise RuntimeError("the run's own")

    with pytest.raises(RuntimeError, match="the run's own") as caught:
        go()
    assert "No space left on device" in caught.value.__notes__[0]
    assert Recording(tmp_path / "r").frame_count == 0


def test_too_little_space_is_told_before_the_first_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = balls(100)

    def free(size: int) -> None:
        monkeypatch.setattr(place.shutil, "disk_usage", lambda path: SimpleNamespace(free=size))

    free(20_000)
    with pytest.raises(LapjointError, match=r"r: 0\.02 MB are free, expected at least 0\.0\d+ MB"):
        RecordingWriter(tmp_path / "r", made(scene))
    assert not (tmp_path / "r").exists()
    free(1_000_000)
    with pytest.warns(UserWarning, match=r"r: 1 MB are free, but 1000 frames will take at least 1\.7\d MB"):
        RecordingWriter(tmp_path / "r", made(scene), steps=2000, every=2).close()
    RecordingWriter(tmp_path / "fits", made(scene), steps=200, every=2).close()


def test_a_failure_in_the_thread_never_blocks_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "QUEUE_BYTES", 0)
    scene = balls(2)
    recorder = RecordingWriter(tmp_path / "r", made(scene))
    wrong = made(scene, 1)
    wrong.states = np.zeros((3, 13))  # one body too many
    recorder.add(wrong)

    def go() -> None:
        for _ in range(1000):
            recorder.add(made(scene, 2))

    error = finish(go)
    assert isinstance(error, LapjointError)
    assert "r: the recording cannot be written: ValueError" in str(error)
    recorder.close()


def test_contacts_of_a_frame_are_there_though_a_worker_is_gone_after_its_step(tmp_path: Path) -> None:
    """The run ended with an error: contacts were asked for after the step."""
    with Simulation(scenes.build("bowl", 60), Params(workers=2, coupling="tight")) as simulation:
        simulation.step(160)  # until they have fallen
        with RecordingWriter(tmp_path / "r", simulation, every=3, contacts=True) as recorder:
            simulation.step(2)
            assert not all(reply.has_contacts for reply in simulation.replies)  # of no frame: nobody wants them
            recorder.add(simulation)
            recorder.add(simulation)
            simulation.step()
            os.kill(pids(simulation)[1], signal.SIGKILL)
            recorder.add(simulation)
            simulation.step(2)
        assert [(incident.kind, incident.worker) for incident in simulation.incidents] == [("gone", 1)]
        simulation.step()
        assert not all(reply.has_contacts for reply in simulation.replies)  # the recording is closed
    assert len(Recording(tmp_path / "r").contacts(0))


def test_a_disk_that_takes_nothing_is_an_error_and_no_wait_without_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()
    add = store.RecordingStore.add

    def hang(self: store.RecordingStore, step: store.StepSample) -> bool:
        assert goes_on.wait(120.0)
        return add(self, step)

    monkeypatch.setattr(store.RecordingStore, "add", hang)
    monkeypatch.setattr(writer, "DISK_S", 0.3)
    monkeypatch.setattr(writer, "_room", lambda body_count: 2)
    with Simulation(scenes.build("bowl", 4), Params(workers=1)) as simulation:
        recording = RecordingWriter(tmp_path / "run.zarr", simulation)

        def record() -> None:
            for _ in range(10):
                simulation.step()
                recording.add(simulation)

        with pytest.raises(
            LapjointError, match=r"run\.zarr: .* cannot be written: the disk has taken nothing for 0\.3"
        ):
            record()
        recording.close()  # that was the error, and nobody waits again
        goes_on.set()
        assert finish(recording._thread.join) is None
