"""What the operating system refuses, in words: what is short, how much of it there is, and what to do."""

from __future__ import annotations

import errno
import mmap
import os
import resource
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn

from ..errors import LapjointError

MAY_BE_SHORT = (OSError, MemoryError, RuntimeError, ImportError)
"""Kinds of errors behind which there can be that something is short."""
NO_THREAD = "can't start new thread"
"""All that Python says, in a RuntimeError, where there is no memory for a thread, or too many are there."""
NO_ROOM = ("failed to map segment", "cannot allocate memory")
"""What the system says of a library for which there is no memory, in an ImportError."""
LEAST_ADDRESSES, LEAST_FILES = 384 << 20, 16
"""Bytes of addresses, and open files, that a command needs to begin. With less, libraries end the process."""

PICTURE_ROOM, USD_ROOM = 704 << 20, 1152 << 20
"""Bytes of addresses that are to be free before OpenGL without a graphics card, or usd-core, is loaded: these end the
process where there are fewer."""
SPARE = 4 << 20
"""Bytes of addresses beyond those that are asked for: what an allocator takes at once."""


def reason(error: BaseException) -> str:
    """Why a call of the system or an allocation failed: for `path: cannot be written: reason`."""
    found = shortage(error)
    if found is not None:
        return found
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def reason_in(text: str) -> str:
    """The same, where a library has only the system's words of it somewhere in a text of its own."""
    known = (errno.ENOSPC, errno.EDQUOT, *_SHORT)
    found = next((number for number in known if os.strerror(number) in text), None)
    return text if found is None else reason(OSError(found, os.strerror(found)))


def shortage(error: BaseException) -> str | None:
    """What is short, where that is why something failed; else None."""
    text = str(error)
    if isinstance(error, MemoryError) or (isinstance(error, ImportError) and any(words in text for words in NO_ROOM)):
        return _memory()
    if isinstance(error, RuntimeError) and NO_THREAD in text:
        return _threads()
    if not isinstance(error, OSError) or error.errno is None or error.errno not in _SHORT:
        return None
    is_in_words = error.strerror not in (None, os.strerror(error.errno))
    return error.strerror if is_in_words else _SHORT[error.errno]()


def refusal(error: BaseException) -> str | None:
    """One line for an error that the system raised and nobody put in words; None for any other."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {reason(error)}"
    return shortage(error)


@contextmanager
def short_of(title: str) -> Iterator[None]:
    """Within it, an error because something is short is a LapjointError: `title: what is short`."""
    try:
        yield
    except MAY_BE_SHORT as error:
        raise_in_words(error, title)


def raise_in_words(error: BaseException, title: str) -> NoReturn:
    """Raise a LapjointError if an error is because something is short, else the error itself."""
    why = shortage(error)
    if why is None:
        raise error
    raise LapjointError(f"{title}: {why}") from error


def check_limits() -> None:
    """Refuse to begin where limits of this process are lower than any command needs."""
    for limit, least, words, unit in (
        (resource.RLIMIT_AS, LEAST_ADDRESSES, _memory, 1 << 20),
        (resource.RLIMIT_NOFILE, LEAST_FILES, _files, 1),
    ):
        most = resource.getrlimit(limit)[0]
        if most != resource.RLIM_INFINITY and most < least:
            raise LapjointError(f"{words()}, expected at least {least // unit}")


def check_room(size: int) -> None:
    """A MemoryError where addresses are limited and there are not so many bytes of them: for libraries that do not look
    whether they were given memory."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        try:
            mmap.mmap(-1, size + SPARE).close()
        except OSError:
            raise MemoryError from None


def _limited(what: str, limit: int, most: str, option: str, unit: int = 1) -> str:
    """`what`, and the limit of this process if it has one."""
    value = resource.getrlimit(limit)[0]
    if value == resource.RLIM_INFINITY:
        return what
    return f"{what}: this process may {most.format(value // unit)} (`ulimit {option}` raises that)"


def _memory() -> str:
    return _limited("memory is short", resource.RLIMIT_AS, "use {:,} MiB of addresses", "-v", 1 << 20)


def _files() -> str:
    return _limited("too many files are open", resource.RLIMIT_NOFILE, "have {:,}", "-n")


def _threads() -> str:
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        return _memory()
    return _limited("no thread can be started", resource.RLIMIT_NPROC, "have {:,} threads", "-u")


_SHORT: Mapping[int, Callable[[], str]] = {
    errno.EMFILE: _files,
    errno.ENFILE: lambda: "too many files are open on this machine",
    errno.ENOMEM: _memory,
    errno.EFBIG: lambda: _limited("a file is too large", resource.RLIMIT_FSIZE, "write {:,} bytes into one", "-f"),
}
