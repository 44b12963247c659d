"""Memory that processes share. It has no name, so nothing can be left behind: it goes when the last process goes."""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

# What the two sides of a socket send: the command is there; the reply is there; a failure follows, as text.
GO, DONE, FAILED = b"g", b"d", b"f"


class SharedMemory:
    """A block of zeros, given to a child process by its file descriptor. Pages never touched cost nothing."""

    def __init__(self, size: int, fd: int | None = None) -> None:
        self.size = max(size, 1)
        if fd is None:
            fd = os.memfd_create("lapjoint") if hasattr(os, "memfd_create") else _unnamed_file()
            os.ftruncate(fd, self.size)
        self.fd = fd
        self.map = mmap.mmap(fd, self.size)

    def array(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """The block as an array; it keeps the mapping alive."""
        count = -1 if -1 in shape else int(np.prod(shape))
        return np.frombuffer(self.map, dtype, count).reshape(shape)

    def grow(self, size: int) -> None:
        """Make the block larger, with zeros. Arrays of before look at the same memory, as far as it went."""
        os.ftruncate(self.fd, size)
        self.size = size
        self.map = mmap.mmap(self.fd, size)

    def look_again(self) -> bool:
        """Map all of a block that another process may have made larger. Returns whether it has."""
        size = os.fstat(self.fd).st_size
        if size == self.size:
            return False
        self.size = size
        self.map = mmap.mmap(self.fd, self.size)
        return True

    def close(self) -> None:
        """Let go of the descriptor; the memory stays while an array looks at it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _unnamed_file() -> int:
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
