"""The directory of a recording: of several that want it, one has it, and nobody removes what another has written."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lapjoint import LapjointError, Recording, RecordingWriter
from lapjoint.recording import place, store, writer
from lapjoint.recording.place import NewFolder
from recording_support import balls, made

TAKEN = "r: is not empty, expected a new or empty directory"


@pytest.mark.parametrize("is_there", [False, True])
def test_of_several_at_once_one_has_it(tmp_path: Path, is_there: bool) -> None:
    for k in range(30):
        path, barrier = tmp_path / str(k) / "r", threading.Barrier(4)
        if is_there:
            path.mkdir(parents=True)
        taken: list[NewFolder] = []
        refused: list[str] = []

        def take(path: Path, barrier: threading.Barrier, taken: list[NewFolder], refused: list[str]) -> None:
            barrier.wait()
            try:
                taken.append(NewFolder(path, "first"))
            except LapjointError as error:
                refused.append(str(error))

        threads = [threading.Thread(target=take, args=(path, barrier, taken, refused)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(taken) == 1
        assert refused == [f"{path.parent}/{TAKEN}"] * 3
        assert [one.name for one in path.iterdir()] == ["first"]
        taken[0].remove()
        assert not (path / "first").exists()


def test_who_comes_second_leaves_the_recording_of_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both had looked before either wrote. The second one could not write, and removed all that was there."""
    scene = balls(2)
    with RecordingWriter(tmp_path / "r", made(scene)) as first:
        for module in (place, writer):
            monkeypatch.setattr(module, "check_place", lambda path: None)
        with pytest.raises(LapjointError, match=TAKEN):
            RecordingWriter(tmp_path / "r", made(scene))
        for k in range(3):
            first.add(made(scene, k + 1))
    assert Recording(tmp_path / "r").frame_count == 3
    assert Recording(tmp_path / "r").complete


def test_a_start_that_fails_removes_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(folder: Path, *_: object) -> None:
        (tmp_path / "r/notes").touch()  # of somebody else, meanwhile
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write_group", fail)
    for path, left in ((tmp_path / "r", ["notes"]), (tmp_path / "s", [])):
        with pytest.raises(LapjointError, match="cannot be written: No space left"):
            RecordingWriter(path, made(balls(2)))
        assert [one.name for one in path.iterdir()] == left if left else not path.exists()
