"""A directory that one run at a time writes into, whatever becomes of the run."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lapjoint import LapjointError
from lapjoint.system.folder_lock import NAME, FolderLock

TITLE = "another run writes there"


def test_one_at_a_time(tmp_path: Path) -> None:
    first = FolderLock(tmp_path / "c", TITLE)
    with pytest.raises(LapjointError, match="c: another run writes there, expected another directory"):
        FolderLock(tmp_path / "c", TITLE)
    first.check()
    first.release()
    second = FolderLock(tmp_path / "c", TITLE)
    first.release()  # once more is nothing
    second.check()
    second.release()


def test_what_was_made_is_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for folder in (tmp_path / "there", tmp_path / "new/inner"):
        FolderLock(folder, TITLE).release()
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    lock = FolderLock(tmp_path / "used/inner", TITLE)
    (tmp_path / "used/inner/notes").touch()
    lock.release()
    assert [path.name for path in (tmp_path / "used/inner").iterdir()] == ["notes"]


def test_that_of_a_killed_process_keeps_nobody_out(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from lapjoint.system.folder_lock import FolderLock
lock = FolderLock(Path(sys.argv[1]), "another run writes there")
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "c")], check=False)
    assert [path.name for path in (tmp_path / "c").iterdir()] == [NAME]
    lock = FolderLock(tmp_path / "c", TITLE)
    lock.release()
    assert list((tmp_path / "c").iterdir()) == []


def test_a_directory_that_was_removed_is_noticed(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path / "c", TITLE)
    shutil.rmtree(tmp_path / "c")
    with pytest.raises(FileNotFoundError, match="removed while the run went on"):
        lock.check()
    other = FolderLock(tmp_path / "c", TITLE)
    with pytest.raises(FileNotFoundError, match="removed while the run went on"):
        lock.check()
    lock.release()  # the other's stays
    other.check()
    other.release()


@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
def test_what_is_no_lock_is_not_followed(tmp_path: Path, kind: str) -> None:
    place = tmp_path / NAME
    if kind == "link":
        place.symlink_to(tmp_path / "outside")
    elif kind == "fifo":
        os.mkfifo(place)
    else:
        place.mkdir()
    with pytest.raises(LapjointError, match=rf"^{tmp_path}.*: "):
        FolderLock(tmp_path, TITLE)
    assert not (tmp_path / "outside").exists()


def test_where_there_are_no_locks_nobody_is_kept_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    FolderLock(tmp_path, TITLE).check()
