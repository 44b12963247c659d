"""Descriptors that somebody waits for, with a limit in time that this program runs (waits.py)."""

from __future__ import annotations

import errno
import select
import socket
from collections.abc import Callable

from ...waits import wait_within


def is_readable(fd: int, seconds: float) -> bool:
    """Whether there is something to read, or the other side is gone, after so long at most."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(1e3 * seconds))


def patiently(move: Callable[[], int], limit_s: float) -> int:
    """How many bytes `move` has moved, which raises a TimeoutError where the other side moves none for a look: one of
    its own, where that takes longer than the limit."""
    moved = -1

    def has_moved(_: float) -> bool:
        nonlocal moved
        try:
            moved = move()
        except TimeoutError:
            return False
        return True

    if not wait_within(limit_s, has_moved):
        raise TimeoutError(errno.ETIMEDOUT, f"the other side has taken and sent nothing for {limit_s:.3g} s")
    return moved


def send_all(link: socket.socket, content: bytes | memoryview, limit_s: float) -> None:
    """All of it, through a socket whose own limit is that of a look."""
    left = memoryview(content)
    while len(left):
        left = left[patiently(lambda: link.send(left), limit_s) :]  # noqa: B023
