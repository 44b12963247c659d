"""What a browser sends that no page of ours does: its connection is closed, or nothing comes of it, and that is one
line in the log. The server of the page would print a traceback for each."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from types import TracebackType

_LOGGERS = ("websockets.server", "asyncio")
_READERS = ("viser", "websockets")
"""Packages that take messages apart."""


class _OneLine(logging.Filter):
    """Takes the traceback out of what was logged because of a message."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[1] is not None and _is_of_message(record.exc_info[2]):
            error = record.exc_info[1]
            record.msg = "lapjoint: a browser has sent what no page sends, which is ignored (%s)"
            record.args = (type(error).__name__,)
            record.exc_info = record.exc_text = None
        return True


def _is_of_message(trace: TracebackType | None) -> bool:
    return any(module.split(".")[0] in _READERS for module in _modules(trace))


def _modules(trace: TracebackType | None) -> Iterator[str]:
    while trace is not None:
        yield str(trace.tb_frame.f_globals.get("__name__", ""))
        trace = trace.tb_next


_filter = _OneLine()


def log_in_one_line() -> None:
    """From now on, in this process. Once is enough."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_filter)  # the same one is added once
    # A browser may leave while something is written for it.
    warnings.filterwarnings("ignore", "Queued a .* on a closed connection")
