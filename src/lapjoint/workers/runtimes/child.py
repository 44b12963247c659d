"""One worker's process, as the server sees it: how it starts, what it is sent, what it answers, how it ended."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ...errors import WorkerError
from ...params import Params
from ...waits import Patience
from ..codec import SIZE as SIZE_BYTES
from ..codec import from_bytes, read, read_bytes, to_bytes, write, write_bytes
from ..messages import Command, Reply, WorkerFailure
from .fork_server import start_worker
from .shared import DONE, FAILED, GO, SharedMemory
from .starter import KILL_S

READ_S = 10.0
"""What the rest of a failure may take to arrive [s]."""
REPORT_S = 2.0
"""What the fork server may take to report how a worker has ended [s]."""
LEAVE_S = 1.0
"""How long all workers together may take to leave before they are killed [s]."""
MOTION_BYTES = 1 << 20
"""What is told of kinematic bodies at most: see server.kinematic.MOST_NUMBERS."""
SIZE = struct.Struct("q")


def mailbox_size(body_count: int) -> int:
    """Room for any message of a worker. Untouched pages cost nothing."""
    return MOTION_BYTES + 4096 + 4096 * body_count


class Child:
    """Process of worker number `index`, just started. Its first answer reports that it is there."""

    def __init__(
        self,
        index: int,
        params: Params,
        blocks: Sequence[SharedMemory],
        mailbox_size: int,
        mail_room: int,
        bell: int = -1,
        is_shared: bool = True,
    ) -> None:
        """`blocks`: the tables of states and of worker states, the scene, the mail, and two to keep states in: those
        of Kept where the tables are the server's (`is_shared`), else those of Copies. `bell` wakes who carries mail to
        other machines."""
        self.index = index
        self.failure: WorkerFailure | None = None
        """Why it can take no step any more."""
        self._block = mailbox = SharedMemory(mailbox_size)
        self._mailbox = memoryview(mailbox.map)
        self.link, theirs = socket.socketpair()
        task = {
            "index": index,
            "params": params.options(),
            "mail_room": mail_room,
            "is_shared": is_shared,
            "has_bell": bell >= 0,
            "sizes": [block.size for block in (*blocks, mailbox)],
        }
        descriptors = [theirs.fileno(), *([bell] if bell >= 0 else []), *(block.fd for block in blocks), mailbox.fd]
        try:
            self._process = start_worker(task, descriptors)
        except BaseException:
            self.link.close()
            mailbox.close()
            raise
        finally:
            theirs.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def make_room(self, mailbox_size: int) -> None:
        """For larger messages; between two steps."""
        if mailbox_size <= self._block.size:
            return
        self._block.grow(mailbox_size)
        self._mailbox = memoryview(self._block.map)

    def send(self, command: Command) -> None:
        write(command, self._mailbox)
        with suppress(OSError):  # one that is gone is noticed where its answer is waited for
            self.link.send(GO)

    def send_bytes(self, message: Any) -> None:
        """A command that is bytes already."""
        if SIZE_BYTES + len(message) > len(self._mailbox):
            self.make_room(2 * len(message) + SIZE_BYTES)
        write_bytes(message, self._mailbox)
        with suppress(OSError):
            self.link.send(GO)

    def receive(self) -> None:
        """Take the answer that has come; `failure` is set if it is none."""
        try:
            answer = self.link.recv(1)
            if answer == FAILED:
                self._receive_failure()
                return
        except (OSError, ValueError):
            answer = b""
        if answer != DONE:
            self.failure = WorkerFailure(self.index, "gone", self._how_it_ended())

    def reply(self) -> Reply:
        reply: Reply = read(self._mailbox)
        return reply

    def reply_bytes(self) -> memoryview:
        """The reply, in place: until the next command."""
        return read_bytes(self._mailbox)

    def give_up(self, seconds: float) -> None:
        """It has not answered in so many seconds. It is killed at once: it must not write any more."""
        self.kill()
        self.failure = WorkerFailure(
            self.index, "hung", f"process {self.pid} has not answered within {seconds:.3g} s and was killed"
        )

    def _receive_failure(self) -> None:
        self.link.settimeout(READ_S)
        with self.link.makefile("rb") as stream:
            (size,) = SIZE.unpack(_exactly(stream.read(SIZE.size), SIZE.size))
            self.failure = from_bytes(_exactly(stream.read(size), size))

    def _how_it_ended(self) -> str:
        if not self.has_ended(READ_S):
            self.kill()
            return f"process {self.pid} hung up and was killed"
        code = self._process.exit_code(REPORT_S)
        if code is None:
            return f"process {self.pid} has ended, and the fork server has not reported how within {REPORT_S:.3g} s"
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return f"process {self.pid} {how}"

    # ---- the end -----------------------------------------------------------------------------------------------------

    def hang_up(self) -> None:
        """Close the socket, which makes the worker leave."""
        self.link.close()
        self._block.close()

    def has_ended(self, seconds: float) -> bool:
        """Whether its process has, after so long at most."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def is_gone(self, seconds: float) -> bool:
        """Whether nothing is left of a process that has ended, not even its number."""
        return self._process.exit_code(seconds) is not None

    def kill_at_once(self) -> None:
        """Do not wait for its end."""
        self.hang_up()
        self._process.kill()

    def kill(self) -> None:
        """A WorkerError, if it does not end."""
        self.kill_at_once()
        if not self.has_ended(KILL_S):
            raise WorkerError(
                f"worker {self.index}: process {self.pid} was killed and has not ended within {KILL_S:.3g} s"
            )
        self.is_gone(REPORT_S)
        if self.failure is None:
            self.failure = WorkerFailure(self.index, "gone", f"process {self.pid} was killed by the server")


def leave_all(children: Sequence[Child]) -> None:
    """Hang up, which makes the workers leave; kill those that have not left in time."""
    for child in children:
        child.hang_up()
    leaving, reporting = Patience(LEAVE_S), Patience(REPORT_S)
    left = [child for child in children if not leaving.wait(child.has_ended)]
    for child in children:
        if child not in left:
            reporting.wait(child.is_gone)
    for child in left:
        child.kill_at_once()
    for child in left:
        child.kill()


def pack_failure(failure: WorkerFailure) -> bytes:
    """What a worker sends in place of a reply."""
    content = to_bytes(failure)
    return FAILED + SIZE.pack(len(content)) + content


def _exactly(content: bytes, size: int) -> bytes:
    if len(content) != size:
        raise ValueError("the answer was cut off")
    return content
