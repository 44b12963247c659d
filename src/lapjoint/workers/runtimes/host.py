"""The workers of one machine of several: processes that are started here, fed and watched over for a server that may be
elsewhere.

The server and a host have one link, and send each other one letter a step, whatever the number of workers. A host
reports by itself whose process has ended or failed, and when it is asked, for how long its workers have not answered;
that one hangs, the server finds out (gather.py), for a worker may wait for one on another machine.
"""

from __future__ import annotations

import os
import select
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...engines.bullet_module import load_bullet
from ...engines.mailboxes import abandon, is_waiting, memory_size
from ...params import Params
from ...scene import STATE_SIZE
from ...system.shortage import reason
from ...waits import LOOK_S, RunningTime
from ..codec import to_bytes
from .child import Child, leave_all, mailbox_size
from .copies import Copies
from .digest import source_digest
from .entrance import Entrance, Ticket, connect
from .letters import ASKED, checked
from .link import Letter, Link, core_count, wait_for_any
from .neighbour import Keeping, Neighbour
from .shared import SharedMemory
from .silence import Silence

ROW_BYTES = 8 * STATE_SIZE
CARRY_SPIN_US = 50
"""How long who carries messages between workers looks for the next before going to sleep [us]."""


def serve(ticket: Ticket) -> None:
    """Be the host of this machine, for the server that has sent the ticket, until it hangs up."""
    try:
        link = Link(connect(**ticket))
    except OSError as error:
        sys.exit(f"lapjoint: the server at {ticket['at'][0]} cannot be reached: {reason(error)}")
    host = Host(link)
    try:
        host.run()
    except (OSError, ValueError):
        pass  # the server is gone, or sends what no server does
    finally:
        host.close()
        link.close()


class Host:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._children: dict[int, Child] = {}  # by worker
        self._tables: list[SharedMemory] = []  # states, worker states, kept, noted: the server's memory, if it is here
        self._mail_block = SharedMemory(0)
        self._copies: dict[int, Copies] = {}  # of workers here, where the server's memory is not
        self._neighbour: Neighbour | None = None  # who keeps copies for this host
        self._sent: dict[int, int] = {}  # by worker: the copy that was last sent to the neighbour
        self._is_sending = False  # copies, which the neighbour does not have yet
        self._keeping = Keeping()
        self._mail: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._links: Any = None
        self._entrance: Entrance | None = None
        self._asked: list[int] = []
        self._attempt: int | None = None
        self._waiting: set[int] = set()  # of those that were asked, who has not answered
        self._silence = Silence()  # of these
        self._answers: dict[str, Callable[[Letter], None]] = {
            "open": self._open,
            "start": self._start,
            "stop": self._stop,
            "listen": self._listen,
            "connect": self._connect,
            "let in": self._let_in,
            "disconnect": self._disconnect,
            "make room": self._make_room,
            "step": self._step,
            "abandon": self._abandon,
            "who": self._who,
            "give up": self._give_up,
            "offer": self._offer,
            "keep at": self._keep_at,
            "keep alone": self._keep_alone,
            "recall": self._recall,
        }

    def run(self) -> None:
        while True:
            poll = select.poll()
            poll.register(self._link.fileno(), select.POLLIN)
            by_fd = {self._children[index].link.fileno(): index for index in self._waiting}
            for fd in by_fd:
                poll.register(fd, select.POLLIN)
            neighbour_fd = -1
            while True:
                if self._is_sending and neighbour_fd < 0 and self._neighbour is not None:
                    neighbour_fd = self._neighbour.fileno()
                    poll.register(neighbour_fd, select.POLLIN)
                ready = wait_for_any(poll, LOOK_S if self._waiting else None, self._is_core_free)
                self._silence.running.look()
                if not ready:
                    waiting = [self._children[index] for index in self._waiting]
                    self._silence.note(waiting, [child for child in waiting if not self._waits(child.index)])
                for fd in ready:
                    if fd in by_fd:
                        poll.unregister(fd)
                        self._receive(by_fd.pop(fd))
                    elif fd == neighbour_fd:
                        poll.unregister(fd)
                        neighbour_fd = -1
                        self._confirm()
                if self._link.fileno() in ready:
                    letter = checked(self._link.receive(), ASKED)
                    if letter.kind not in self._answers:
                        raise ValueError(f"a letter {letter.kind!r}, which no server sends")
                    self._answers[letter.kind](letter)
                    break
            del poll

    @property
    def _is_core_free(self) -> bool:
        return len(self._children) < core_count()

    # ---- a step ------------------------------------------------------------------------------------------------------

    def _step(self, letter: Letter) -> None:
        """Pass commands on. The answer follows when all have answered."""
        asked = letter.values["workers"]
        if len(asked) != len(letter.parts) or not self._children.keys() >= set(asked):
            raise ValueError("commands for workers that are not here")
        self._asked, self._attempt, self._silence = asked, letter.number or None, Silence()
        for index, message in zip(self._asked, letter.parts, strict=True):
            child = self._children[index]
            if child.failure is None:
                child.send_bytes(message)
                self._waiting.add(index)
        self._answer_if_done()

    def _receive(self, index: int) -> None:
        """One has answered, or has ended."""
        self._waiting.discard(index)
        child = self._children[index]
        child.receive()
        if child.failure is not None and self._attempt is not None:
            self._let_all_leave(self._attempt)
        self._answer_if_done()

    def _answer_if_done(self) -> None:
        """When all have answered, and the neighbour has copies of what they have."""
        if self._waiting or not self._asked or self._is_sending:
            return
        if self._neighbour is None or not self._send_copies(self._neighbour):
            self._answer()

    def _answer(self) -> None:
        children = [self._children[index] for index in self._asked]
        parts = [to_bytes(child.failure) if child.failure else child.reply_bytes() for child in children]
        failed = [child.index for child in children if child.failure]
        workers, self._asked, self._attempt = self._asked, [], None
        self._link.send("answers", parts, workers=workers, failed=failed, alone=self._neighbour is None)

    # ---- copies ------------------------------------------------------------------------------------------------------

    def _send_copies(self, neighbour: Neighbour) -> bool:
        """Begin to send a neighbour the copies that it does not have. False: there are none."""
        found = [copies for worker, copies in self._copies.items() if copies.number != self._sent.get(worker, 0)]
        if not found:
            return False
        self._sent = {worker: copies.number for worker, copies in self._copies.items()}
        self._is_sending = True
        neighbour.send([copies.find(copies.number) for copies in found])
        return True

    def _confirm(self) -> None:
        """The neighbour has what was sent, or is gone."""
        self._is_sending = False
        assert self._neighbour is not None
        self._neighbour.confirm()
        if self._neighbour.is_gone:
            self._drop_neighbour()
        if self._asked and not self._waiting:
            self._answer()

    def _offer(self, letter: Letter) -> None:
        """Be a neighbour: keep copies for another host."""
        self._link.send("offer", ticket=self._keeping.offer(letter.values["address"]))

    def _keep_at(self, letter: Letter) -> None:
        """Have another host keep copies from now on, of what is here already too."""
        self._drop_neighbour()
        error = ""
        try:
            self._neighbour = Neighbour(letter.values["ticket"])
        except OSError as failure:
            error = str(failure)
        else:
            if self._send_copies(self._neighbour):
                self._confirm()
            error = "it is gone" if self._neighbour is None else ""
        self._link.send("keep at", error=error)

    def _keep_alone(self, letter: Letter) -> None:
        """The neighbour is gone: answer without it."""
        was_sending, self._is_sending = self._is_sending, False
        self._drop_neighbour()
        if was_sending:
            self._answer()

    def _drop_neighbour(self) -> None:
        self._sent.clear()
        if self._neighbour is not None:
            self._neighbour.close()
            self._neighbour = None

    def _recall(self, letter: Letter) -> None:
        """The copy of a worker's states after a command, from here or kept for another host."""
        worker, number = letter.values["worker"], letter.number
        found = self._copies[worker].find(number) if worker in self._copies else self._keeping.find(worker, number)
        self._link.send("recall", [] if found is None else [found])

    # ---- who is given up ---------------------------------------------------------------------------------------------

    def _let_all_leave(self, attempt: int) -> None:
        """Workers wait for each other in this attempt at a step: nobody does so any longer, here and elsewhere."""
        if self._links is not None:
            self._links.abandon(attempt)
        if len(self._mail):
            abandon(self._mail, attempt)
        self._silence.restart()

    def _abandon(self, letter: Letter) -> None:
        if len(self._mail):
            abandon(self._mail, letter.number)
        self._silence.restart()

    def _who(self, letter: Letter) -> None:
        """Who has not answered, for how long, and who of these waits for another."""
        late = [(index, max(0.0, self._silence.of(self._children[index]))) for index in sorted(self._waiting)]
        waiting = [index for index, _ in late if self._waits(index)]
        self._link.send("who", late=late, waiting=waiting, sending=self._is_sending)

    def _waits(self, worker: int) -> bool:
        """Whether it waits for another worker."""
        return len(self._mail) > 0 and is_waiting(self._mail, worker)

    def _give_up(self, letter: Letter) -> None:
        for index in letter.values["workers"]:
            if index in self._waiting:
                self._waiting.discard(index)
                self._children[index].give_up(letter.values["seconds"])
                if self._attempt is not None:
                    self._let_all_leave(self._attempt)
        self._answer_if_done()

    # ---- workers come and go -----------------------------------------------------------------------------------------

    def _open(self, letter: Letter) -> None:
        """Begin, as machine number so and so, with the server's memory where it can be had."""
        spin_us = CARRY_SPIN_US if core_count() > 1 else 0
        self._links = load_bullet("float32").MachineLinks(letter.values["machine"], spin_us)
        blocks = [open_block(**where) for where in letter.values["memory"]]
        found = [block for block in blocks if block is not None]
        self._is_shared = len(found) == len(blocks) > 0
        if not self._is_shared:
            for block in found:
                block.close()
            found = []
        if found:
            self._mail_block.close()
            *self._tables, self._mail_block = found
        self._link.send("open", pid=os.getpid(), digest=source_digest(), shared=self._is_shared)

    def _start(self, letter: Letter) -> None:
        """Start workers in place of those of the same numbers, and wait until they are there."""
        values = letter.values
        error, started = "", []
        try:
            scene = self._scene(letter)
            try:
                for index in values["workers"]:
                    self._end([index])
                    started.append(self._start_one(index, scene, values))
                    self._children[index] = started[-1]
            finally:
                scene.close()
            self._wait_until_there(started, values["seconds"])
        except OSError as failure:
            error = f"worker {index} cannot be started: {reason(failure)}"
        failures = [child.failure.title for child in started if child.failure is not None]
        pids = {child.index: child.pid for child in started}
        self._link.send("start", pids=list(pids.items()), errors=[*([error] if error else []), *failures])

    def _scene(self, letter: Letter) -> SharedMemory:
        """The scene's memory: the server's, or what came with the letter."""
        if (where := letter.values["scene"]) is not None:
            block = open_block(**where)
            if block is None:
                raise OSError("the server's memory cannot be reached any more")
            return block
        (content,) = letter.parts
        block = SharedMemory(len(content))
        block.map[:] = bytes(content) if len(content) < 1 << 20 else content
        return block

    def _start_one(self, index: int, scene: SharedMemory, values: dict[str, Any]) -> Child:
        own = [] if self._is_shared else [SharedMemory(ROW_BYTES * rows) for rows in values["rows"]]
        tables, kept = own or self._tables[:2], self._tables[2:]
        if not self._is_shared:
            self._copies[index] = Copies.empty()
            kept = self._copies[index].blocks
        params, room = Params.from_options(**values["params"]), mailbox_size(values["body_room"])
        try:
            blocks = [*tables, scene, self._mail_block, *kept]
            return Child(index, params, blocks, room, values["mail_room"], self._links.bell, self._is_shared)
        finally:
            for block in own:
                block.close()

    @staticmethod
    def _wait_until_there(children: Sequence[Child], seconds: float) -> None:
        running, poll, waiting = RunningTime(), select.poll(), {child.link.fileno(): child for child in children}
        for fd in waiting:
            poll.register(fd, select.POLLIN)
        while waiting:
            ready = wait_for_any(poll, LOOK_S, False)
            late = list(waiting) if running.look() >= seconds and not ready else []
            for fd in [*ready, *late]:
                child = waiting.pop(fd)
                poll.unregister(fd)
                child.receive() if ready else child.give_up(seconds)

    def _stop(self, letter: Letter) -> None:
        self._end(letter.values["workers"])
        self._link.send("stop")

    def _end(self, indices: Sequence[int]) -> None:
        gone = [self._children.pop(index) for index in indices if index in self._children]
        for child in gone:
            if child.failure is not None:
                child.kill()
        leave_all([child for child in gone if child.failure is None])
        for index in indices:
            if index in self._copies:
                self._copies.pop(index).close()

    def _make_room(self, letter: Letter) -> None:
        """For so many bodies and workers, of which each is on a machine, and messages of so many bytes between them."""
        machines, mail_room = letter.values["machines"], letter.values["mail_room"]
        for child in self._children.values():
            if child.failure is None:
                child.make_room(mailbox_size(letter.values["body_room"]))
        if mail_room:
            block, size = self._mail_block, memory_size(len(machines), mail_room)
            if self._is_shared:
                block.look_again()  # the server has made room
            elif size > block.size:
                block.grow(size)
            self._mail = block.array((-1,), np.uint8)
            self._links.set_workers(self._mail, mail_room, machines)
        self._link.send("make room")

    # ---- other machines ----------------------------------------------------------------------------------------------

    def _listen(self, letter: Letter) -> None:
        self._entrance = Entrance(letter.values["address"])
        tickets = {machine: self._entrance.ticket(machine) for machine in letter.values["machines"]}
        self._link.send("listen", tickets=list(tickets.items()))

    def _connect(self, letter: Letter) -> None:
        errors = []
        for machine, address, ticket in letter.values["tickets"]:
            try:
                self._links.connect(machine, _detached(connect(**ticket)))
            except OSError as error:
                errors.append(f"{address}: {error}")
        self._link.send("connect", errors=errors)

    def _let_in(self, letter: Letter) -> None:
        """Take those in that have connected, and listen no longer."""
        missing: list[int] = []
        if self._entrance is not None:
            for machine, link in self._entrance.receive(letter.values["seconds"]).items():
                self._links.connect(machine, _detached(link))
            missing = self._entrance.missing
            self._entrance.close()
            self._entrance = None
        self._link.send("let in", missing=missing)

    def _disconnect(self, letter: Letter) -> None:
        for machine in letter.values["machines"]:
            self._links.disconnect(machine)
        self._link.send("disconnect")

    def close(self) -> None:
        """End all workers, however they fare."""
        leave_all(list(self._children.values()))
        self._children.clear()
        if self._entrance is not None:
            self._entrance.close()
        self._drop_neighbour()
        self._keeping.close()
        for copies in self._copies.values():
            copies.close()
        for block in [*self._tables, self._mail_block]:
            block.close()
        self._links = None


def _detached(link: socket.socket) -> int:
    return link.detach()


def open_block(pid: int, fd: int, size: int, inode: int) -> SharedMemory | None:
    """Memory of the server on this machine; None where it cannot be reached, as from within another container."""
    try:
        own = os.open(f"/proc/{pid}/fd/{fd}", os.O_RDWR)
    except OSError:
        return None
    if os.fstat(own).st_ino != inode or os.fstat(own).st_size != size:
        os.close(own)
        return None
    return SharedMemory(size, own)


def where(block: SharedMemory) -> dict[str, int]:
    """What a process of this machine needs to open a block of this one's."""
    return {"pid": os.getpid(), "fd": block.fd, "size": block.size, "inode": os.fstat(block.fd).st_ino}
