"""Memory that processes share. It has no name, so nothing can be left behind: it goes when the last process goes.

Linux makes such memory (memfd_create). Elsewhere it gets a name, which is removed before anybody is given the memory;
where that kind cannot grow, on macOS, it is a temporary file without a name. LAPJOINT_SHARED_MEMORY chooses one of
`memfd`, `named` and `file`.
"""

from __future__ import annotations

import mmap
import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import LapjointError, did_you_mean
from ...interrupts import Uninterrupted
from ...system.shortage import reason

try:
    import _posixshmem  # type: ignore[import-not-found]
except ImportError:  # no such memory here
    _posixshmem = None

VARIABLE = "LAPJOINT_SHARED_MEMORY"
# What the two sides of a socket send: the command is there; the reply is there; a failure follows, as text.
GO, DONE, FAILED = b"g", b"d", b"f"


class SharedMemory:
    """A block of zeros, given to a child process by its file descriptor. Pages never touched cost nothing."""

    def __init__(self, size: int, fd: int | None = None) -> None:
        self.size, self.fd = max(size, 1), -1
        with Uninterrupted(), _refused(self.size):  # interrupted, nobody would know the descriptor
            self.fd = _open() if fd is None else fd
            try:
                if fd is None:
                    os.ftruncate(self.fd, self.size)
                self.map = mmap.mmap(self.fd, self.size)
            except OSError:
                self.close()
                raise

    def array(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """The block as an array; it keeps the mapping alive."""
        count = -1 if -1 in shape else int(np.prod(shape))
        return np.frombuffer(self.map, dtype, count).reshape(shape)

    def grow(self, size: int) -> None:
        """Make the block larger, with zeros. Arrays of before look at the same memory, as far as it went."""
        with _refused(size):
            os.ftruncate(self.fd, size)
            self.map = mmap.mmap(self.fd, size)
        self.size = size

    def look_again(self) -> bool:
        """Map all of a block that another process may have made larger. Returns whether it has."""
        size = os.fstat(self.fd).st_size
        if size == self.size:
            return False
        with _refused(size):
            self.map = mmap.mmap(self.fd, size)
        self.size = size
        return True

    def close(self) -> None:
        """Let go of the descriptor; the memory stays while an array looks at it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __del__(self) -> None:
        self.close()


@contextmanager
def _refused(size: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        title = f"{size:,} bytes of memory for server and workers"
        raise OSError(error.errno, f"{title}: {reason(error)}") from None


# ---- where it comes from -----------------------------------------------------------------------------------------


def _open() -> int:
    """A descriptor of a new block of no size."""
    kind = os.environ.get(VARIABLE) or next(iter(KINDS))
    if kind not in KINDS:
        raise LapjointError(f"{VARIABLE} is {kind!r}{did_you_mean(kind, KINDS)}, expected {' or '.join(KINDS)} here")
    return KINDS[kind]()


def _memfd() -> int:
    return os.memfd_create("lapjoint")


def _named() -> int:
    """As `multiprocessing.shared_memory`, without the process that watches over names: this one is gone at once."""
    name = f"/lapjoint-{secrets.token_hex(8)}"
    fd: int = _posixshmem.shm_open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode=0o600)
    _posixshmem.shm_unlink(name)
    return fd


def _file() -> int:
    with tempfile.TemporaryFile(prefix="lapjoint-") as file:
        return os.dup(file.fileno())


def _kinds() -> Mapping[str, Callable[[], int]]:
    """Those that this machine has, the best one first."""
    kinds: dict[str, Callable[[], int]] = {}
    if hasattr(os, "memfd_create"):
        kinds["memfd"] = _memfd
    if _posixshmem is not None and sys.platform != "darwin":  # where the size can be set once only
        kinds["named"] = _named
    return {**kinds, "file": _file}


KINDS = _kinds()
