"""The memory through which workers send to each other within a step, as those see it who make it and watch over it.
native/exchange/mailboxes.h has its layout."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .bullet_module import load_bullet

if TYPE_CHECKING:
    from .. import _bullet_float32 as compiled

Memory = NDArray[np.uint8]


@cache
def _native() -> type[compiled.Mailboxes]:
    return load_bullet("float32").Mailboxes  # which knows no precision


def memory_size(worker_count: int, room: int) -> int:
    """Bytes for messages of up to `room` bytes between so many workers. Those for fewer are the first of them."""
    return _native().byte_count(worker_count, room)


def abandon(memory: Memory, attempt: int) -> None:
    """Let all workers that wait for another in this attempt at a step leave it."""
    _native().abandon(memory, attempt)


def is_waiting(memory: Memory, worker: int) -> bool:
    """Whether a worker waits for another."""
    return _native().is_waiting(memory, worker)
