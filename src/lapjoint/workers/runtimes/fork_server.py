"""The fork server: a process that has imported what a worker needs, and forks one worker after the other.

A worker that is started as a program takes 0.4 s of CPU time, nearly all of it for imports, and has memory of its own
for them. Forked off, it is there after some milliseconds, and shares that memory with the others. So more workers, and
one in the place of a worker that was lost, cost next to nothing.

One fork server belongs to this process, from its first worker on, and ends with it. This side sends it tasks over a
socket, with the descriptors that a worker is given; the other side is `fork_server_main.py`. When the fork server dies,
Linux kills its workers: they are lost, and replaced by those of the next one.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ...waits import LOOK_S, wait_within
from .patient import is_readable, send_all
from .starter import KILL_S, Process, run_to_the_end

MODULE = "lapjoint.workers.runtimes.fork_server_main"
ANSWER_S = 60.0
"""What the fork server may take to fork a worker [s]. It has nothing else to do; its first worker waits for imports."""
HEAD = struct.Struct("=q")
"""How many bytes of a task follow; descriptors come with it."""
FORKED = struct.Struct("=ii")
"""Process id, or 0 and why there is none (errno); a descriptor of the process comes with it."""
STATUS = struct.Struct("=i")
"""How a worker ended, as os.waitstatus_to_exitcode has it."""


class NotForked(OSError):
    """The fork server is there, and could not fork."""


class Forked:
    """A process that the fork server has started."""

    def __init__(self, pid: int, handle: int, status: int) -> None:
        """`handle` refers to the process, whatever becomes of its id; `status` is where the fork server writes how it
        ended. Takes both over."""
        self.pid, self._handle, self._status = pid, handle, status
        self._has_ended = False
        self._exit_code: int | None = None

    def kill(self) -> None:
        if not self._has_ended:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def wait(self, timeout: float) -> None:
        """Until it has ended, which is known without the fork server; subprocess.TimeoutExpired after so long."""
        if not self._has_ended and not wait_within(timeout, lambda seconds: is_readable(self._handle, seconds)):
            raise subprocess.TimeoutExpired(MODULE, timeout)
        self._has_ended = True

    def exit_code(self, timeout: float) -> int | None:
        """That of a process that has ended, the negative number of a signal that killed it; None, if the fork server
        has not reported it after so long."""
        if self._exit_code is None and wait_within(timeout, lambda seconds: is_readable(self._status, seconds)):
            # Without a word of it the fork server has died, and Linux has killed its workers.
            found = os.read(self._status, STATUS.size)
            self._exit_code = STATUS.unpack(found)[0] if len(found) == STATUS.size else -signal.SIGKILL
        return self._exit_code

    def _close(self) -> None:
        for fd in (self._handle, self._status):
            with suppress(OSError):
                os.close(fd)

    def __del__(self) -> None:
        self._close()


class Program(subprocess.Popen[bytes]):
    """A process of its own, where there is no fork server."""

    def exit_code(self, timeout: float) -> int | None:
        return self.wait(timeout)


class ForkServer:
    """A fork server that runs, with the interpreter of now."""

    def __init__(self) -> None:
        self._link, theirs = socket.socketpair()
        try:
            with theirs:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", MODULE, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    env=worker_environment(),
                    start_new_session=True,  # Ctrl-C is for the server
                )
        except BaseException:
            self._link.close()
            raise
        self._link.settimeout(LOOK_S)
        self.answer_s = ANSWER_S

    def fork(self, task: Mapping[str, Any], descriptors: Sequence[int]) -> Forked:
        """A worker with this task, and copies of these descriptors. NotForked, if it cannot fork, another OSError, if
        it is not there any more."""
        content = json.dumps({**task, **surroundings()}).encode()
        status, theirs = os.pipe()
        try:
            with standard_streams() as streams:
                socket.send_fds(self._link, [HEAD.pack(len(content))], [theirs, *streams, *descriptors])
            send_all(self._link, content, self.answer_s)
            if not wait_within(self.answer_s, lambda seconds: is_readable(self._link.fileno(), seconds)):
                raise TimeoutError(errno.ETIMEDOUT, f"the fork server has not answered within {self.answer_s:.3g} s")
            answer, handles, _, _ = socket.recv_fds(self._link, FORKED.size, 1)
            if len(answer) != FORKED.size:
                raise ConnectionResetError("the fork server is gone")
            pid, error = FORKED.unpack(answer)
            if pid == 0:
                raise NotForked(error, os.strerror(error))
        except BaseException:
            os.close(status)
            raise
        finally:
            os.close(theirs)
        return Forked(pid, handles[0], status)

    def close(self) -> None:
        """Hang up, which ends it, and its workers with it."""
        self._link.close()

    def end(self) -> None:
        """The same, by force, and wait for its end. An OSError, if it does not end."""
        self.close()
        self.process.kill()
        try:
            self.process.wait(KILL_S)
        except subprocess.TimeoutExpired:
            pid = self.process.pid
            raise TimeoutError(
                errno.ETIMEDOUT, f"the fork server, process {pid}, was killed and has not ended within {KILL_S:.3g} s"
            ) from None


def worker_environment() -> dict[str, str]:
    """The same modules as here, whatever was done to sys.path; one thread each, for the workers are the threads."""
    path = os.pathsep.join(filter(None, sys.path))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def surroundings() -> dict[str, Any]:
    """What a worker takes over from this process as it is now, and not as it was when the fork server began."""
    try:
        folder = os.getcwd()
    except OSError:  # it was removed
        folder = None
    path = [place for place in sys.path if place]
    cores = sorted(os.sched_getaffinity(0))
    return {"environment": worker_environment(), "path": path, "folder": folder, "cores": cores}


@contextmanager
def standard_streams() -> Iterator[list[int]]:
    """Descriptors of standard output and standard error; of nothing, where one is closed."""
    with open(os.devnull, "wb") as nothing:
        streams = []
        for fd in (1, 2):
            try:
                os.fstat(fd)
                streams.append(fd)
            except OSError:
                streams.append(nothing.fileno())
        yield streams


def start_worker(task: Mapping[str, Any], descriptors: Sequence[int]) -> Process:
    """A worker's process with this task and these descriptors, in this order. OSError, if there can be none."""
    start = _fork if _can_fork() else _start_program
    return run_to_the_end(lambda: start(task, descriptors))


def _can_fork() -> bool:
    """Elsewhere it is not safe to fork, and there are no handles of processes."""
    return sys.platform == "linux" and hasattr(os, "pidfd_open")


def _start_program(task: Mapping[str, Any], descriptors: Sequence[int]) -> Process:
    return Program(
        [sys.executable, "-m", "lapjoint.workers.runtimes.process_worker", json.dumps([task, list(descriptors)])],
        stdin=subprocess.DEVNULL,
        pass_fds=descriptors,
        env=worker_environment(),
        start_new_session=True,
    )


_servers: dict[str, ForkServer] = {}  # by their interpreters: it is one, unless sys.executable is changed


def _fork(task: Mapping[str, Any], descriptors: Sequence[int]) -> Process:
    for is_last in (False, True):
        if sys.executable not in _servers:
            _servers[sys.executable] = ForkServer()
        try:
            return _servers[sys.executable].fork(task, descriptors)
        except NotForked:
            raise
        except OSError:  # it has died, or does not answer
            _servers.pop(sys.executable).end()
            if is_last:
                raise
    raise AssertionError("it returns or raises")


def _forget() -> None:
    """In a process that was forked off: fork servers are its parent's, and end when that hangs up."""
    for server in _servers.values():
        server.close()
    _servers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
