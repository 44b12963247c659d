"""A directory that one run at a time writes into."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path

from ..errors import LapjointError
from .shortage import reason

NAME = ".lock"
WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""What file systems answer that have none: there, nobody is kept out."""


class FolderLock:
    """A lock on a directory, which is made where it is missing. It ends with its process, however that ends: what a
    killed one leaves keeps nobody out. Two of one process keep each other out too."""

    def __init__(self, folder: Path, title: str) -> None:
        """`title` is what whoever has it does there, for the error: `another run writes checkpoints there`."""
        self._folder, self._title, self._owner = folder, title, os.getpid()
        self._made = [one for one in (folder, *folder.absolute().parents) if not one.exists()]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._fd = self._take()
        except OSError as error:
            self._remove_made()
            raise LapjointError(f"{folder}: cannot be written: {reason(error)}") from None

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def check(self) -> None:
        """An OSError if the directory is gone, or is another one now."""
        if not self._is_own(self._fd):
            raise FileNotFoundError(errno.ENOENT, "its directory was removed while the run went on", str(self._folder))

    def release(self) -> None:
        """Let others have it, and remove the directory if it was made here and nothing is in it."""
        if self._fd < 0 or os.getpid() != self._owner:
            return
        with suppress(OSError):
            if self._is_own(self._fd):
                os.unlink(self._folder / NAME)
        os.close(self._fd)
        self._fd = -1
        self._remove_made()

    def leave(self) -> None:
        """In a process that was forked off: the lock is its parent's, and is not to outlive that here."""
        os.close(self._fd)
        self._fd = -1

    def _take(self) -> int:
        while True:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            fd = os.open(self._folder / NAME, flags, 0o600)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise LapjointError(f"{self._folder / NAME}: is no file, expected one")
                if not _lock(fd):
                    raise LapjointError(f"{self._folder}: {self._title}, expected another directory")
                if self._is_own(fd):
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)  # whoever had it has just removed it

    def _is_own(self, fd: int) -> bool:
        """Whether the file that has the lock is still the one in the directory."""
        try:
            return os.path.samestat(os.fstat(fd), os.lstat(self._folder / NAME))
        except OSError:
            return False

    def _remove_made(self) -> None:
        with suppress(OSError):
            for folder in self._made:
                folder.rmdir()


def _lock(fd: int) -> bool:
    """Whether the lock was to be had."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in WITHOUT_LOCKS:
            raise
    return True
