"""Start processes that Linux may end with this one.

A worker that is stopped cannot notice that its server is gone. So it asks the system for a signal when its parent dies,
and there its parent is the thread that started it. A simulation may be made in a thread that ends long before it does:
such processes are started by a thread of their own, which ends with the program. What that thread does, Ctrl-C does not
break off in the middle.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from queue import SimpleQueue
from subprocess import TimeoutExpired
from typing import Protocol

from ...waits import wait_within

KILL_S = 30.0
"""How long to wait for the end of a process that was killed [s]. It takes some milliseconds, unless the system itself
hangs."""
START_S = 300.0
"""What a process may take to start [s]: longer than two fork servers, one after the other, may take to answer."""


class Process(Protocol):
    """A worker's process."""

    @property
    def pid(self) -> int: ...

    def kill(self) -> None: ...

    def wait(self, timeout: float) -> object:
        """Until it has ended; subprocess.TimeoutExpired after so long."""
        ...

    def exit_code(self, timeout: float) -> int | None:
        """Of one that has ended; None, if that is not known after so long."""
        ...


class _Starter:
    def __init__(self) -> None:
        self._orders: SimpleQueue[tuple[Future[Process], Callable[[], Process], set[int]]] = SimpleQueue()
        threading.Thread(target=self._run, name="lapjoint-starter", daemon=True).start()

    def start(self, start: Callable[[], Process]) -> Process:
        done: Future[Process] = Future()
        self._orders.put((done, start, _cores()))

        def is_done(seconds: float) -> bool:
            return bool(wait([done], seconds).done)

        try:
            if wait_within(START_S, is_done):
                return done.result(0)
        except BaseException:
            wait_within(START_S, is_done)  # interrupted, perhaps: descriptors that the process is given stay open
            done.add_done_callback(_end)
            raise
        done.add_done_callback(_end)
        raise TimeoutError(errno.ETIMEDOUT, f"no process has started within {START_S:.3g} s")

    def _run(self) -> None:
        while True:
            done, start, cores = self._orders.get()
            try:
                with suppress(OSError, AttributeError):
                    os.sched_setaffinity(0, cores)  # as if the other thread had started it
                done.set_result(start())
            except BaseException as error:
                done.set_exception(error)
            del done, start


def _end(done: Future[Process]) -> None:
    """Nobody wants the process any more."""
    if done.exception(0) is None:
        process = done.result(0)
        process.kill()
        with suppress(TimeoutExpired):
            process.wait(KILL_S)


def _cores() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


_lock = threading.Lock()
_only: _Starter | None = None


def run_to_the_end(start: Callable[[], Process]) -> Process:
    """The process that `start` starts, in a thread that lives as long as this program."""
    global _only
    with _lock:
        if _only is None:
            _only = _Starter()
    return _only.start(start)


def _forget() -> None:
    """A process that was forked off has none of its parent's threads."""
    global _lock, _only
    _lock, _only = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
