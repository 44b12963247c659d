"""Where files of a run may go, and a recording: a new directory with room for it."""

from __future__ import annotations

import os
import shutil
import warnings
from contextlib import suppress
from pathlib import Path

from ..errors import LapjointError
from ..scene import STATE_SIZE
from .layout import CHUNK_FRAMES, PART, ROOT

LEAST_SHARE = 1 / 3
"""States compress to 0.6 to 0.7 of their size in motion, at rest to less: a recording is hardly smaller than this."""


def existing_parent(path: Path) -> Path:
    """The nearest directory above a path that exists, or the file that is in its way."""
    return next(parent for parent in path.absolute().parents if parent.exists())


def check_parents(path: Path, title: str | None = None) -> None:
    """Refuse a path whose directories neither exist nor can be made. They are made when something is written."""
    parent = existing_parent(path)
    if not parent.is_dir():
        raise LapjointError(f"{title or path}: {parent} is a file, expected a directory")
    if not path.exists() and not os.access(parent, os.W_OK):
        raise LapjointError(f"{title or path}: no permission to write there")


def check_place(path: Path) -> bool:
    """Refuse a place that is taken, before anything starts; whether the directory is not there yet."""
    check_parents(path)
    if not path.exists():
        return True
    if not path.is_dir():
        raise LapjointError(f"{path}: is a file, expected a new or empty directory")
    if any(path.iterdir()):
        raise _is_taken(path)
    return False


def check_space(path: Path, scene_size: int, body_count: int, frame_count: int | None) -> None:
    """Refuse if not even the first chunk can fit, warn if all frames, where their number is known, hardly will."""
    free = shutil.disk_usage(path if path.exists() else existing_parent(path)).free
    frame_size = LEAST_SHARE * 4 * STATE_SIZE * body_count
    first_count = CHUNK_FRAMES if frame_count is None else min(frame_count, CHUNK_FRAMES)
    needed = scene_size + first_count * frame_size
    if needed > free:
        raise LapjointError(
            f"{path}: {free / 1e6:.3g} MB are free, expected at least {needed / 1e6:.3g} MB for the scene and "
            f"{first_count} frames"
        )
    needed = scene_size + (frame_count or 0) * frame_size
    if needed > free:
        warnings.warn(
            f"{path}: {free / 1e6:.3g} MB are free, but {frame_count} frames will take at least {needed / 1e6:.3g} MB",
            stacklevel=3,
        )


class NewFolder:
    """A new or empty directory that one writer has for itself. Of several that want it at once, it is whoever makes the
    first entry, which the system lets only one of them do."""

    def __init__(self, path: Path, first: str) -> None:
        """`first` is the name of the first entry, a directory: the same for all who may want it."""
        self.path = path
        self._is_new = check_place(path)
        self._made: list[Path] = []
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.mkdir()
        except FileExistsError:
            self._is_new = False
        try:
            self.make(first)
        except FileExistsError:
            raise _is_taken(path) from None
        if os.listdir(path) != [first]:  # of somebody who came in by another way
            self.remove()
            raise _is_taken(path)

    def make(self, name: str) -> Path:
        """Make a directory in it."""
        made = self.path / name
        made.mkdir()
        self._made.append(made)
        return made

    def remove(self) -> None:
        """Remove what was made here, and the directory if it was."""
        for made in self._made:
            shutil.rmtree(made, ignore_errors=True)
        for file in (ROOT, ROOT + PART):
            with suppress(OSError):
                (self.path / file).unlink()
        if self._is_new:
            with suppress(OSError):
                self.path.rmdir()


def _is_taken(path: Path) -> LapjointError:
    return LapjointError(f"{path}: is not empty, expected a new or empty directory")
