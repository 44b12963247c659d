"""Descriptors that somebody waits for, with a limit in time that this program runs (waits.py)."""

from __future__ import annotations

import errno
import select
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

from ...waits import LOOK_S, wait_within


def is_readable(fd: int, seconds: float) -> bool:
    """Whether there is something to read, or the other side is gone, after so long at most."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(1e3 * seconds))


def patiently(move: Callable[[], int], limit_s: float) -> int:
    """How many bytes `move` has moved, through a socket whose own limit is that of a look. A TimeoutError, if the other
    side lets it move none before the limit."""
    try:
        return move()
    except TimeoutError:
        pass
    moved = -1

    def has_moved(_: float) -> bool:
        nonlocal moved
        try:
            moved = move()
        except TimeoutError:
            return False
        return True

    if not wait_within(limit_s - LOOK_S, has_moved):
        raise TimeoutError(errno.ETIMEDOUT, f"the other side has taken and sent nothing for {limit_s:.3g} s")
    return moved


def send_all(link: socket.socket, content: Any, limit_s: float) -> None:
    """All of it, likewise."""
    left = memoryview(content).cast("B")
    while len(left):
        left = left[patiently(partial(link.send, left), limit_s) :]
