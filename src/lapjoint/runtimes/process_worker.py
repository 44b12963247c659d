"""The worker's side of the process runtime. Started by process.py, never by hand."""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import threading
import traceback

from ..messages import StepCommand, pack, unpack
from ..params import Params
from ..scene import STATE_SIZE
from ..scene_memory import read_scene
from ..worker import Worker
from .shared import DONE, FAILED, GO, SharedMemory


def leave_with_server(link: socket.socket) -> None:
    """End this process as soon as the server hangs up, in the middle of a step too."""
    poll = select.poll()
    poll.register(link, getattr(select, "POLLRDHUP", 0) | select.POLLHUP)
    poll.poll()
    os._exit(1)


def main() -> None:
    task = json.loads(sys.argv[1])
    link = socket.socket(fileno=task["socket"])
    threading.Thread(target=leave_with_server, args=(link,), daemon=True).start()
    try:
        states, worker_states, scene_block, mailbox = (SharedMemory(size, fd) for fd, size in task["memory"])
        scene = read_scene(scene_block.map)
        rows = scene.body_count
        worker = Worker(
            task["index"],
            scene,
            Params(**task["params"]),
            states.array((rows, STATE_SIZE), float),
            worker_states.array((rows * task["worker_count"], STATE_SIZE), float),
        )
        for block in (states, worker_states, scene_block, mailbox):
            block.close()
        buffer = memoryview(mailbox.map)
        link.send(DONE)
        while link.recv(1) == GO:  # an empty answer: the server is gone
            pack(worker.step(unpack(StepCommand, buffer)), buffer)
            link.send(DONE)
            worker.prepare()
    except (BrokenPipeError, ConnectionResetError):
        pass
    except BaseException:
        try:
            link.sendall(FAILED + traceback.format_exc().encode())
        except OSError:
            traceback.print_exc()
    link.close()


if __name__ == "__main__":
    main()
