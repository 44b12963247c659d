"""Start processes that Linux may end with this one.

A worker that is stopped cannot notice that its server is gone. So it asks the system for a signal when its parent dies,
and there its parent is the thread that started it. A simulation may be made in a thread that ends long before it does:
such processes are started by a thread of their own, which ends with the program. What that thread does, Ctrl-C does not
break off in the middle.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from queue import SimpleQueue
from typing import Protocol


class Process(Protocol):
    """A worker's process, as subprocess.Popen has it."""

    @property
    def pid(self) -> int: ...

    def kill(self) -> None: ...

    def wait(self, timeout: float | None = None) -> int: ...


class _Starter:
    def __init__(self) -> None:
        self._orders: SimpleQueue[tuple[Future[Process], Callable[[], Process], set[int]]] = SimpleQueue()
        threading.Thread(target=self._run, name="lapjoint-starter", daemon=True).start()

    def start(self, start: Callable[[], Process]) -> Process:
        done: Future[Process] = Future()
        self._orders.put((done, start, _cores()))
        try:
            return done.result()
        except BaseException:
            wait([done])  # interrupted, perhaps: descriptors that the process is given stay open until it has them
            if done.exception() is None:
                done.result().kill()
                done.result().wait()
            raise

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
