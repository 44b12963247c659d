"""The fork server's own side. Started by fork_server.py, never by hand."""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

from ...engines import bullet  # noqa: F401 which nearly all workers have: loaded once for all
from ...engines.bullet_module import load_bullet
from .fork_server import FORKED, HEAD, STATUS
from .process_worker import die_with_parent, set_name, work
from .signals import reset_signals

MOST_DESCRIPTORS = 32


class ForkServerMain:
    """Forks workers as it is told to, and reports how they end."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._workers: dict[int, tuple[int, int]] = {}  # by handle: process id, and where to write how it ended
        self._poll = select.poll()
        self._poll.register(link, select.POLLIN)

    def run(self) -> tuple[dict[str, Any], list[int]] | None:
        """In the fork server: None, when the server has hung up. In a worker: its task and its descriptors."""
        while True:
            for fd, _ in self._poll.poll():
                if fd in self._workers:
                    self._report_end(fd)
                    continue
                order = self._receive()
                if order is None:
                    return None
                if self._fork(*order):
                    return order

    def _receive(self) -> tuple[dict[str, Any], list[int]] | None:
        head, descriptors, _, _ = socket.recv_fds(self._link, HEAD.size, MOST_DESCRIPTORS)
        if len(head) < HEAD.size:
            return None
        content = bytearray()
        while len(content) < HEAD.unpack(head)[0]:
            part = self._link.recv(HEAD.unpack(head)[0] - len(content))
            if not part:
                return None
            content += part
        return json.loads(content), descriptors

    def _fork(self, task: dict[str, Any], descriptors: list[int]) -> bool:
        """Whether this is the worker."""
        status, *others = descriptors
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self._link.send(FORKED.pack(0, error.errno or 0))
            for fd in descriptors:
                os.close(fd)
            return False
        if pid == 0:
            self._become_worker(task, descriptors, parent)
            return True
        handle = os.pidfd_open(pid)
        self._workers[handle] = pid, status
        self._poll.register(handle, select.POLLIN)
        with suppress(OSError):  # the server has hung up, which is noticed next
            socket.send_fds(self._link, [FORKED.pack(pid, 0)], [handle])
        for fd in others:
            os.close(fd)
        return False

    def _become_worker(self, task: dict[str, Any], descriptors: list[int], parent: int) -> None:
        """Leave behind what is the fork server's, and take over what the server has now."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()
        die_with_parent(parent)
        self._link.close()
        for handle, (_, fd) in self._workers.items():
            os.close(handle)
            os.close(fd)
        status, output, errors = descriptors[:3]
        os.dup2(output, 1)
        os.dup2(errors, 2)
        for fd in (status, output, errors):
            os.close(fd)
        del descriptors[:3]
        os.environ.clear()
        os.environ.update(task["environment"])
        sys.path[:] = task["path"]
        importlib.invalidate_caches()
        with suppress(OSError, TypeError):
            os.chdir(task["folder"])
        with suppress(OSError):
            os.sched_setaffinity(0, task["cores"])

    def _report_end(self, handle: int) -> None:
        """Of the worker that has ended."""
        self._poll.unregister(handle)
        pid, fd = self._workers.pop(handle)
        _, status = os.waitpid(pid, 0)  # at once: it has ended
        with suppress(BrokenPipeError):  # nobody wants to know
            os.write(fd, STATUS.pack(os.waitstatus_to_exitcode(status)))
        os.close(handle)
        os.close(fd)


def main() -> None:
    reset_signals()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    die_with_parent(os.getppid())
    set_name("lapjoint-fork")
    server = ForkServerMain(socket.socket(fileno=int(sys.argv[1])))
    load_bullet("float32")
    gc.collect()
    gc.freeze()  # what all workers share stays as it is, in memory that they share
    order = server.run()
    if order is not None:
        work(*order)


if __name__ == "__main__":
    main()
