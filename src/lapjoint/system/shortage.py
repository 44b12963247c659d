"""What the operating system refuses, in words: what is short, how much of it there is, and what to do."""

from __future__ import annotations

import errno
import resource
from collections.abc import Callable, Mapping

NO_THREAD = "can't start new thread"
"""All that Python says of a RuntimeError where memory or processes are short."""


def reason(error: BaseException) -> str:
    """Why a call of the system or an allocation failed: for `path: cannot be written: reason`."""
    found = shortage(error)
    if found is not None:
        return found
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def shortage(error: BaseException) -> str | None:
    """What is short, where that is why something failed; else None."""
    if isinstance(error, MemoryError):
        return _SHORT[errno.ENOMEM]()
    if isinstance(error, RuntimeError) and NO_THREAD in str(error):
        return _SHORT[errno.EAGAIN]()
    words = _SHORT.get(error.errno or 0) if isinstance(error, OSError) else None
    return None if words is None else words()


def _limited(what: str, limit: int, most: str, option: str, unit: int = 1) -> str:
    """`what`, and the limit of this process if it has one."""
    value = resource.getrlimit(limit)[0]
    if value == resource.RLIM_INFINITY:
        return what
    return f"{what}: this process may {most.format(value // unit)} (`ulimit {option}` raises that)"


_SHORT: Mapping[int, Callable[[], str]] = {
    errno.EMFILE: lambda: _limited("too many files are open", resource.RLIMIT_NOFILE, "have {:,}", "-n"),
    errno.ENFILE: lambda: "too many files are open on this machine",
    errno.ENOMEM: lambda: _limited("memory is short", resource.RLIMIT_AS, "use {:,} MiB of addresses", "-v", 1 << 20),
    errno.EAGAIN: lambda: _limited("no process or thread can be started", resource.RLIMIT_NPROC, "have {:,}", "-u"),
    errno.EFBIG: lambda: _limited("a file is too large", resource.RLIMIT_FSIZE, "write {:,} bytes into one", "-f"),
}
