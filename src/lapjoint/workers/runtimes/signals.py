"""Signals as a program has them that was started by nobody in particular."""

from __future__ import annotations

import signal
from contextlib import suppress

RAISED = ("SIGPIPE", "SIGXFSZ")
"""What Python ignores, for it raises an error instead."""


def reset_signals() -> None:
    """Block no signal, and handle all as Python does by itself, whatever the program that started this one has blocked
    or ignored: who is to be ended by a signal, or told by one that a child has ended, is so everywhere."""
    raised = [getattr(signal, name) for name in RAISED if hasattr(signal, name)]
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError):  # the system's own
            signal.signal(number, signal.SIG_IGN if number in raised else signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
