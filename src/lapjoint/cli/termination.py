"""SIGTERM, as batch systems and service managers send it: it ends a command as Ctrl-C does."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType


@contextmanager
def ended_in_order_by_sigterm() -> Iterator[None]:
    """Within it SIGTERM raises KeyboardInterrupt: what was done is written, and nothing is left behind.

    At its end the process dies of the signal, as if it had not been handled: whoever sent it looks for that.
    """
    came = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True
        raise KeyboardInterrupt

    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield  # ignored, or somebody else's
        return
    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if came:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.flush()
            os.kill(os.getpid(), signal.SIGTERM)
