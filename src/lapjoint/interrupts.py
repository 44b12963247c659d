"""Interrupts that wait until what must not be broken off is done."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

SIGNALS = ("SIGINT", "SIGTERM", "SIGALRM")
"""Those whose handlers may raise: Ctrl-C, and what programs use to end in order, or after some time."""
NUMBERS = [int(getattr(signal, name)) for name in SIGNALS if hasattr(signal, name)]
_plain = getattr(signal, "_signal", signal)
"""The same without conversions to enums and back: a tenth of the time, which is a few microseconds otherwise."""


class Uninterrupted:
    """Within it, what a handler of a signal raises waits until the end, as Python's own does at Ctrl-C. A second signal
    of the same kind raises at once: its sender does not want to wait.

    Handlers are called as soon as ever, and are those of before afterwards. Python calls them in the main thread:
    nothing is done in others.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}
        self._came: set[int] = set()
        self._raised: BaseException | None = None
        self._is_over = False

    def __enter__(self) -> None:
        if threading.get_ident() == threading.main_thread().ident:
            try:
                for number in NUMBERS:
                    handler = _plain.getsignal(number)
                    if callable(handler):
                        self._handlers[number] = handler
                        _plain.signal(number, self._note)
            except BaseException:  # of a signal that came before its handler was replaced
                self._restore()
                raise

    def _note(self, number: int, frame: FrameType | None) -> None:
        is_first = number not in self._came
        self._came.add(number)
        try:
            self._handlers[number](number, frame)
        except BaseException as error:
            if self._is_over or self._raised is not None or not is_first:
                raise
            self._raised = error

    def _restore(self) -> None:
        try:
            for number, handler in self._handlers.items():
                if getattr(_plain.getsignal(number), "__self__", None) is self:  # else another one was set within
                    _plain.signal(number, handler)
        finally:
            self._is_over = True

    def __exit__(self, *_: object) -> None:
        self._restore()
        raised, self._raised = self._raised, None
        if raised is not None:
            try:
                raise raised
            finally:
                del raised  # and with it a cycle of error, frame and error
