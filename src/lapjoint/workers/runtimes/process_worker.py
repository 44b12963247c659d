"""A worker's process: forked off by the fork server, or a program of its own. Started by child.py, never by hand."""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ...params import Params
from ...scene.shared import read_scene
from ..codec import read, write
from ..kept import Kept
from ..messages import NeighbourCommand, RemoteCommand
from ..worker import Worker, failure_of
from .child import pack_failure
from .copies import Copies
from .remote_worker import RemoteSide, table
from .shared import DONE, GO, SharedMemory
from .signals import reset_signals

PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15  # linux/prctl.h


def leave_with_server(link: socket.socket) -> None:
    """End this process as soon as the server hangs up, in the middle of a step too."""
    poll = select.poll()
    poll.register(link, getattr(select, "POLLRDHUP", 0) | select.POLLHUP)
    poll.poll()
    os._exit(1)


def die_with_parent(parent: int) -> None:
    """Let Linux kill this process when its parent dies: where it is stopped, it cannot notice that by itself."""
    _control(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # which died before
        os._exit(1)


def set_name(name: str) -> None:
    """What this process is called in lists of processes."""
    _control(PR_SET_NAME, name.encode())


def _control(what: int, value: int | bytes) -> None:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


def keep(worker: Worker, kept: Sequence[SharedMemory]) -> None:
    """Where the worker keeps states of before a step, and notes that it has."""
    states, noted = kept
    worker.set_kept(Kept(table(states), noted.array((-1,), np.int64)))


def work(task: dict[str, Any], descriptors: Sequence[int]) -> None:
    """Be the worker that the task describes, until the server hangs up."""
    socket_fd, *memory = descriptors
    bell = memory.pop(0) if task["has_bell"] else -1
    link = socket.socket(fileno=socket_fd)
    set_name(f"lapjoint-{task['index']}")
    threading.Thread(target=leave_with_server, args=(link,), daemon=True).start()
    try:
        blocks = (SharedMemory(size, fd) for size, fd in zip(task["sizes"], memory, strict=True))
        states, worker_states, scene_block, mail, *kept, mailbox = blocks
        copies = None if task["is_shared"] else Copies(kept)
        scene = read_scene(scene_block.map)
        params = Params.from_options(**task["params"])
        worker = Worker(task["index"], scene, params, table(states), table(worker_states))
        worker.set_mail(mail.array((-1,), np.uint8), task["mail_room"], bell)
        if copies is None:
            keep(worker, kept)
        remote = RemoteSide(worker, scene, params, states, worker_states, copies)
        scene_block.close()
        buffer = memoryview(mailbox.map)
        link.send(DONE)
        while link.recv(1) == GO:  # an empty answer: the server is gone
            # There may be more workers or bodies than before; the server has made room.
            if mailbox.look_again():
                buffer = memoryview(mailbox.map)
            if states.look_again():
                worker.set_states(table(states))
            if copies is None and kept[0].look_again():
                keep(worker, kept)
            if worker_states.look_again():
                worker.set_worker_states(table(worker_states))
            message = read(buffer)
            command = message.command if isinstance(message, RemoteCommand) else message
            if isinstance(command, NeighbourCommand) and mail.look_again():
                worker.set_mail(mail.array((-1,), np.uint8), command.mail_room, bell)
            write(remote.answer(message) if isinstance(message, RemoteCommand) else worker.execute(message), buffer)
            link.send(DONE)
            worker.prepare()
    except (BrokenPipeError, ConnectionResetError):
        pass
    except BaseException as error:
        failure = failure_of(task["index"], error)
        try:
            link.sendall(pack_failure(failure))
        except OSError:
            print(failure.title, file=sys.stderr)
    link.close()


if __name__ == "__main__":
    reset_signals()
    work(*json.loads(sys.argv[1]))
