"""A worker's process. Started by child.py, never by hand."""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import sys
import threading
from contextlib import suppress

import numpy as np

from ...params import Params
from ...scene.shared import read_scene
from ..codec import read, write
from ..messages import NeighbourCommand, RemoteCommand
from ..worker import Worker, failure_of
from .child import pack_failure
from .remote_worker import RemoteSide, table
from .shared import DONE, GO, SharedMemory

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def leave_with_server(link: socket.socket) -> None:
    """End this process as soon as the server hangs up, in the middle of a step too."""
    poll = select.poll()
    poll.register(link, getattr(select, "POLLRDHUP", 0) | select.POLLHUP)
    poll.poll()
    os._exit(1)


def die_with_server() -> None:
    """Let Linux kill this process when the server dies: where it is stopped, it cannot notice that by itself."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def main() -> None:
    task = json.loads(sys.argv[1])
    link = socket.socket(fileno=task["socket"])
    die_with_server()
    threading.Thread(target=leave_with_server, args=(link,), daemon=True).start()
    try:
        states, worker_states, scene_block, mail, mailbox = (SharedMemory(size, fd) for fd, size in task["memory"])
        scene = read_scene(scene_block.map)
        params = Params(**task["params"])
        worker = Worker(task["index"], scene, params, table(states), table(worker_states))
        worker.set_mail(mail.array((-1,), np.uint8), task["mail_room"], task["bell"])
        remote = RemoteSide(worker, scene, params, states, worker_states, task["shared"])
        scene_block.close()
        buffer = memoryview(mailbox.map)
        link.send(DONE)
        while link.recv(1) == GO:  # an empty answer: the server is gone
            # There may be more workers or bodies than before; the server has made room.
            if mailbox.look_again():
                buffer = memoryview(mailbox.map)
            if states.look_again():
                worker.set_states(table(states))
            if worker_states.look_again():
                worker.set_worker_states(table(worker_states))
            message = read(buffer)
            command = message.command if isinstance(message, RemoteCommand) else message
            if isinstance(command, NeighbourCommand) and mail.look_again():
                worker.set_mail(mail.array((-1,), np.uint8), command.mail_room, task["bell"])
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
    main()
