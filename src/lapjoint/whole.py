"""Calls that are whole: one thread at a time is in them, and Ctrl-C takes effect when they are done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

from .errors import LapjointError
from .interrupts import Uninterrupted

Method = TypeVar("Method", bound=Callable[..., Any])


class Use:
    """Of one object: who is using it, and whether that was broken off. `title` is what messages call the object."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._lock = threading.RLock()
        self.end = self._lock.release  # itself, not a function around it, which an interrupt could end before
        self._user = ""
        self.broken_off: str | None = None
        """The call that was left in the middle, after which nothing holds any more."""

    def begin(self, what: str) -> bool:
        """A thread begins a call, which `end` ends. An error, if another one is in a call."""
        if not self._lock.acquire(blocking=False):
            raise LapjointError(f"{what}: thread {self._user!r} is using {self._title}, expected one thread at a time")
        self._user = threading.current_thread().name
        return True

    @contextmanager
    def to_the_end(self, what: str) -> Iterator[None]:
        """Where an exception leaves things half done."""
        try:
            yield
        except BaseException:
            self.broken_off = what
            raise


class Used(Protocol):
    """What has such calls."""

    _prefix: str
    """Of its methods' names in messages."""

    @property
    def _use(self) -> Use: ...

    def _check_open(self, what: str) -> None:
        """An error, if this cannot be called now."""


def alone(method: Method) -> Method:
    """A method that one thread at a time may be in, of all methods that are marked so."""
    name = method.__name__.lstrip("_")

    @wraps(method)
    def call(self: Used, *args: Any, **kwargs: Any) -> Any:
        began, what = False, self._prefix + name
        try:
            with Uninterrupted():
                began = self._use.begin(what)
            self._check_open(what)
            return method(self, *args, **kwargs)
        finally:
            if began:
                self._use.end()

    return cast(Method, call)


def whole(method: Method) -> Method:
    """The same, and Ctrl-C waits for its end. One that is broken off all the same is noted."""
    name = method.__name__.lstrip("_")

    @wraps(method)
    def call(self: Used, *args: Any, **kwargs: Any) -> Any:
        what = self._prefix + name
        with Uninterrupted():
            self._use.begin(what)
            try:
                self._check_open(what)
                return method(self, *args, **kwargs)
            except Exception:
                raise
            except BaseException:
                self._use.broken_off = what
                raise
            finally:
                self._use.end()

    return cast(Method, call)
