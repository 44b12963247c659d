"""Interrupts at moments that tests choose: whatever Python is doing then, the signal comes just there."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def interrupt_at(event: int) -> Iterator[Callable[[], bool]]:
    """Within it, SIGINT comes when Python calls a function, or one returns, for the `event`-th time. Yields a function
    that returns whether it has come."""
    count = 0

    def look(frame: FrameType, kind: str, what: Any) -> None:
        nonlocal count
        count += 1
        if count == event:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

    sys.setprofile(look)
    try:
        yield lambda: count >= event
    finally:
        sys.setprofile(None)


def interrupted(action: Callable[[], object], event: int) -> bool | None:
    """Whether KeyboardInterrupt came of an interrupt at that event; None if the action was over before."""
    try:
        with interrupt_at(event) as has_come:
            action()
    except KeyboardInterrupt:
        return True
    return False if has_come() else None
