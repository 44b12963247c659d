"""What `lapjoint view` and `lapjoint run --view` share: where a view is, and how it ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from ..errors import LapjointError
from .shared import console

PORT = 8080


def checked_fps(fps: float) -> float:
    if not 1 <= fps <= 120:
        raise LapjointError(f"--fps is {fps:g}, expected 1 to 120")
    return fps


def announce(address: str, no_browser: bool) -> None:
    """Print where the view is, and open it."""
    console.print(f"view: {address}  (Ctrl-C ends it)", markup=False, soft_wrap=True, highlight=False)
    screenless = sys.platform.startswith("linux") and not {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ)
    if not (no_browser or screenless):
        # Some browsers are started in the foreground.
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


@contextmanager
def until_interrupted() -> Iterator[Callable[[], bool]]:
    """Ctrl-C, or an end asked for by the system, is noted, not raised."""
    came = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        came.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
