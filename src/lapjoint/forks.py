"""What belongs to the process that made it: workers, shared memory, sockets, threads, files that are being written.

A process that os.fork() makes of this one has copies of all objects, but the workers, the memory and the files are this
one's. A copy that took a step would change states under it, and one that only ended in order would end its workers. So
in the other process such an object lets go of what it has, and refuses to be used from then on. To close it there, or
to drop it, does nothing.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from .errors import LapjointError

Thing = TypeVar("Thing")

_things: WeakKeyDictionary[Any, tuple[str, int, Callable[[Any], object]]] = WeakKeyDictionary()


def belongs_here(thing: Thing, title: str, let_go: Callable[[Thing], object]) -> None:
    """Have this object, called so in messages, refuse to be used in processes that are forked from this one. `let_go`
    is called with it there, and gives up what would act without being used: finalizers, callbacks at the program's end,
    descriptors that keep a connection open."""
    _things[thing] = title, os.getpid(), let_go


def drop_exit_callbacks(package: str) -> None:
    """In a process that was forked off: what a package of others would do at the end is its parent's to do."""
    atexit.unregister(_OfPackage(package))  # type: ignore[arg-type]


class _OfPackage:
    """Equal to all functions of a package: nobody else knows them."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, package: str) -> None:
        self._package = package

    def __eq__(self, function: object) -> bool:
        return str(getattr(function, "__module__", "")).partition(".")[0] == self._package


def _refusing(kind: type, title: str, pid: int) -> type:
    """The class of an object of another process: its class as it was, of which only `close` can be called."""

    def refuse(thing: object, name: str, *_: object) -> Any:
        if name in ("close", "__class__"):
            return object.__getattribute__(thing, name)
        raise LapjointError(
            f"{title} belongs to process {pid}; in a process forked from it ({os.getpid()}) it cannot be used: make a "
            "new one there"
        )

    def close(_: object) -> None:
        """Nothing: it is open in its own process."""

    return type(kind)(kind.__name__, (kind,), {"__getattribute__": refuse, "__setattr__": refuse, "close": close})


def _leave_to_parent() -> None:
    """In a process that was just forked off."""
    for thing, (title, pid, let_go) in list(_things.items()):
        with suppress(Exception):  # it may have been in the making
            let_go(thing)
        thing.__class__ = _refusing(type(thing), title, pid)
    _things.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
