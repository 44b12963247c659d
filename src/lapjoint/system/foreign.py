"""Files that anyone may have written: read only where they are files, and never out of their folder.

In place of a file, a folder from a stranger can have a link to somewhere else, a FIFO that nobody ever writes to, or a
device without end. So a file is opened without waiting, within a folder without following links, and is looked at once
it is open: nothing can take its place in between. What is refused is an OSError in words.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

LARGEST = 1 << 32
"""Bytes of a file of another program, where its format has no smaller limit: as many as glTF and STL can count."""
MOST_DESCRIPTION = 1 << 26
"""Bytes of a description in JSON that lapjoint wrote: frozen bodies, a number each, are the most of it."""

_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a directory",
}


def open_foreign(path: str | Path, within: Path | None = None) -> BufferedReader:
    """A regular file, open to be read. `path` may be a link, for a user has named it; with `within`, the folder that it
    is in, neither it nor any folder on the way may be one."""
    fd = os.open(path, _FILE) if within is None else _open_within(within, Path(path))
    try:
        mode = stat.S_IFMT(os.fstat(fd).st_mode)
        if mode != stat.S_IFREG:
            raise OSError(errno.EINVAL, f"is {_KINDS.get(mode, 'of another kind')}, expected a file", str(path))
        return os.fdopen(fd, "rb")
    except BaseException:
        os.close(fd)
        raise


def read_foreign(path: str | Path, most: int = LARGEST, within: Path | None = None) -> bytes:
    """The content of a file of at most so many bytes."""
    with open_foreign(path, within) as file:
        return file.read(_checked_size(file, path, most))


def check_foreign(path: str | Path, most: int = LARGEST, within: Path | None = None) -> None:
    """Refuse what `read_foreign` would, where it is a library that opens the file, by its name."""
    with open_foreign(path, within) as file:
        _checked_size(file, path, most)


def _checked_size(file: BufferedReader, path: str | Path, most: int) -> int:
    size = os.fstat(file.fileno()).st_size
    if size > most:
        raise OSError(errno.EINVAL, f"is {size:,} bytes large, expected at most {most:,}", str(path))
    return size


def machine_memory() -> int:
    """Bytes of memory of this machine: a file that is larger cannot be read whole."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _open_within(within: Path, path: Path) -> int:
    """A descriptor of a file, opened folder by folder from `within` on."""
    parts = path.relative_to(within).parts if path.is_relative_to(within) else ("..",)
    if not parts or ".." in parts:
        raise OSError(errno.EINVAL, f"is outside the folder {within}", str(path))
    *folders, name = parts
    folder = os.open(within, _FOLDER)
    try:
        for one in folders:
            inner = os.open(one, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(name, _FILE | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
            way = (within.joinpath(*folders[:k]) for k in range(1, len(folders) + 1))
            link = next((one for one in (*way, path) if one.is_symlink()), None)
            if link is not None:
                what = "is a link" if link == path else f"{link.name} is a link"
                raise OSError(error.errno, f"{what}, which is not followed", str(path)) from None
        raise
    finally:
        os.close(folder)
