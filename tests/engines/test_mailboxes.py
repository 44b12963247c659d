"""Messages between workers within a step, where they are on different machines."""

from __future__ import annotations

import mmap
import os
import signal
import socket
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from lapjoint import _bullet_float32 as native
from lapjoint.engines.mailboxes import abandon, is_waiting
from parallel_support import poll

ROOM = 1 << 20
LIMIT_S = 60.0
MESSAGE, ABANDONED, FINISHED, SAYS_ONE = 1, 2, 4, 5
SAID = 2
EVERYBODY = 0xFFFF


def frame(kind: int, sender: int, to: int, number: int, content: bytes = b"", size: int | None = None) -> bytes:
    return struct.pack("IHHQQ", kind, sender, to, number, len(content) if size is None else size) + content


class Machine:
    """One of two, with workers and with mailboxes of its own."""

    def __init__(self, machine: int, link: socket.socket, machine_of: list[int], room: int = ROOM) -> None:
        self.memory = np.zeros(native.Mailboxes.byte_count(len(machine_of), room), np.uint8)
        self.links = native.MachineLinks(machine, 0)
        self.links.set_workers(self.memory, room, machine_of)
        self.links.connect(1 - machine, link.detach())
        self.mail = {
            worker: native.Mailboxes(self.memory, len(machine_of), room, worker, 0, self.links.bell)
            for worker, there in enumerate(machine_of)
            if there == machine
        }


def two(machine_of: list[int]) -> list[Machine]:
    return [Machine(machine, link, machine_of) for machine, link in enumerate(socket.socketpair())]


def workers_of(machines: list[Machine]) -> dict[int, native.Mailboxes]:
    return dict(sorted((worker, mail) for machine in machines for worker, mail in machine.mail.items()))


def take_step(
    worker: int,
    mail: native.Mailboxes,
    attempt: int,
    others: list[int],
    message: Callable[[int, int, int], bytes],
    turns: int,
) -> list[Any]:
    """Exchange messages with all others in every turn. Returns what came, and how the step ended."""
    mail.begin_step(attempt)
    received: list[Any] = []
    for turn in range(turns):
        for other in others:
            mail.send(other, message(worker, other, turn))
        received += [mail.receive(other, len(message(other, worker, turn))) for other in others]
    return [*received, mail.finish_step(SAID if worker == 0 else 0)]


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def take_steps(pool: ThreadPoolExecutor, machines: list[Machine], attempt: int, sizes: list[int]) -> None:
    """All take a step together, with messages of these sizes; everybody receives what the others have sent."""
    everybody = workers_of(machines)

    def message(sender: int, to: int, turn: int) -> bytes:
        return np.random.default_rng([attempt, sender, to, turn]).bytes(sizes[turn])

    others = {worker: [other for other in everybody if other != worker] for worker in everybody}
    futures = {
        worker: pool.submit(take_step, worker, mail, attempt, others[worker], message, len(sizes))
        for worker, mail in everybody.items()
    }
    for worker, future in futures.items():
        wanted = [message(other, worker, turn) for turn in range(len(sizes)) for other in others[worker]]
        assert future.result(LIMIT_S) == [*wanted, SAID], "what the first has said"


@pytest.mark.parametrize("machine_of", [[0, 1], [1, 0, 0, 1]])
def test_messages_and_the_end_of_a_step(pool: ThreadPoolExecutor, machine_of: list[int]) -> None:
    """More bytes than a socket holds, both ways at once, too."""
    machines = two(machine_of)
    for attempt in range(1, 12):
        take_steps(pool, machines, attempt, [0, 5, ROOM, 1, 1000] if attempt % 5 == 0 else [40] * attempt)
    here = machine_of.count(0)
    assert machines[0].links.message_count == here * (len(machine_of) - here) * (2 * 5 + sum(range(12)) - 15)


def test_all_that_there_is_goes_in_one_piece(pool: ThreadPoolExecutor) -> None:
    """Messages that were put in while nobody carried."""
    memory = np.zeros(native.Mailboxes.byte_count(4, 64), np.uint8)
    links = native.MachineLinks(0, 0)
    links.set_workers(memory, 64, [0, 0, 1, 1])
    for worker in (0, 1):
        mail = native.Mailboxes(memory, 4, 64, worker, 0, links.bell)
        mail.begin_step(1)
        for other in (2, 3):
            mail.send(other, bytes([worker, other]))
    ours, theirs = socket.socketpair()
    links.connect(1, ours.detach())
    wanted = b"".join(frame(MESSAGE, w, to, 1 << 20, bytes([w, to])) for w in (0, 1) for to in (2, 3))
    theirs.settimeout(LIMIT_S)
    assert theirs.recv(1000) == wanted
    theirs.close()
    assert links.message_count == 4
    assert poll(lambda: links.send_count == 1, LIMIT_S)


def test_mailboxes_that_are_opened_again(pool: ThreadPoolExecutor) -> None:
    """Where there is more room and one worker more; and what comes meanwhile is there then."""
    machines = two([0, 1])
    take_steps(pool, machines, 1, [10])
    room, machine_of = 2 * ROOM, [0, 1, 1]
    for number, machine in enumerate(machines):
        machine.memory = np.zeros(native.Mailboxes.byte_count(3, room), np.uint8)
        machine.links.set_workers(machine.memory, room, machine_of)
        machine.mail = {
            worker: native.Mailboxes(machine.memory, 3, room, worker, 0, machine.links.bell)
            for worker in range(3)
            if machine_of[worker] == number
        }
    take_steps(pool, machines, 2, [10, room, 3])


@pytest.mark.parametrize("way", ["memory", "link"])
def test_an_attempt_is_abandoned(pool: ThreadPoolExecutor, way: str) -> None:
    machines = two([0, 1])
    waiting = pool.submit(take_step, 0, machines[0].mail[0], 1, [1], lambda *_: b"unanswered", 1)
    assert poll(lambda: is_waiting(machines[0].memory, 0), LIMIT_S)
    if way == "memory":
        abandon(machines[0].memory, 1)
    else:
        machines[1].links.abandon(1)
    assert waiting.result(LIMIT_S) == [None, None]
    take_steps(pool, machines, 2, [10, 20])


def test_who_has_got_its_message_waits_for_nobody_though_it_has_no_core() -> None:
    """A worker that the system leaves without a core would else count as one that hangs."""
    memory = np.frombuffer(mmap.mmap(-1, native.Mailboxes.byte_count(2, ROOM)), np.uint8)
    pid = os.fork()
    if pid == 0:
        mail = native.Mailboxes(memory, 2, ROOM, 1, 0)
        mail.begin_step(1)
        os._exit(0 if mail.receive(0, 5) == b"hello" else 1)
    try:
        assert poll(lambda: is_waiting(memory, 1), LIMIT_S)
        os.kill(pid, signal.SIGSTOP)
        assert os.waitpid(pid, os.WUNTRACED)[0] == pid
        assert is_waiting(memory, 1)
        mail = native.Mailboxes(memory, 2, ROOM, 0, 0)
        mail.begin_step(1)
        mail.send(1, b"hello")
        assert not is_waiting(memory, 1)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert os.waitpid(pid, 0)[1] == 0


def test_nobody_waits_for_a_machine_that_does_not_read(pool: ThreadPoolExecutor) -> None:
    """What cannot be sent before an attempt is abandoned comes before what is sent in the next."""
    ours, theirs = socket.socketpair()
    machine = Machine(0, ours, [0, 1])
    for attempt, content in ((1, bytes(ROOM)), (2, b"next")):
        machine.mail[0].begin_step(attempt)
        assert machine.mail[0].send(1, content)
        assert poll(lambda attempt=attempt: machine.links.message_count == attempt, LIMIT_S)
    wanted = frame(MESSAGE, 0, 1, 1 << 20, bytes(ROOM)) + frame(MESSAGE, 0, 1, 2 << 20, b"next")
    received = b""
    while len(received) < len(wanted):
        received += theirs.recv(1 << 20)
    assert received == wanted
    theirs.close()


def test_frames_come_in_pieces() -> None:
    ours, theirs = socket.socketpair()
    machine = Machine(0, ours, [0, 1])
    machine.mail[0].begin_step(7)
    frames = frame(MESSAGE, 1, 0, 7 << 20, b"hello") + frame(SAYS_ONE, 1, EVERYBODY, 7)
    for place in range(len(frames)):
        theirs.sendall(frames[place : place + 1])
    assert machine.mail[0].receive(1, 5) == b"hello"
    assert machine.mail[0].finish_step() == 1
    theirs.close()


def test_what_is_left_of_a_worker_that_has_moved(pool: ThreadPoolExecutor) -> None:
    """Is not taken for what it sends from where it is now."""
    ours, theirs = socket.socketpair()
    machine = Machine(0, ours, [0, 2, 1])
    for left in (frame(MESSAGE, 1, 0, 1 << 20, b"stale"), frame(MESSAGE, 2, 1, 1 << 20, b"away")):
        theirs.sendall(left)
    theirs.sendall(frame(MESSAGE, 2, 0, 1 << 20, b"fresh"))
    machine.mail[0].begin_step(1)
    assert machine.mail[0].receive(2, 5) == b"fresh"
    waiting = pool.submit(machine.mail[0].receive, 1, 5)
    assert poll(lambda: is_waiting(machine.memory, 0), LIMIT_S)
    abandon(machine.memory, 1)
    assert waiting.result(LIMIT_S) is None
    theirs.close()


BAD_FRAMES = [
    frame(MESSAGE, 1, 0, 1 << 20, size=ROOM + 1),
    frame(MESSAGE, 1, 0, 1 << 20, size=(1 << 64) - 1),
    frame(MESSAGE, 1024, 0, 1 << 20),
    frame(MESSAGE, 1, 1024, 1 << 20),
    frame(FINISHED, 1, EVERYBODY, 1, size=1),
    frame(FINISHED, 1, 0, 1),
    frame(ABANDONED, 1, EVERYBODY, 1, size=ROOM),
    frame(0, 1, 0, 1),
    frame(5, 1, 0, 1),
    frame((1 << 32) - 1, 1, 0, 1),
]


@pytest.mark.parametrize("bad", BAD_FRAMES)
def test_bad_frames_close_the_link(bad: bytes) -> None:
    ours, theirs = socket.socketpair()
    machine = Machine(0, ours, [0, 1])
    before = machine.memory.copy()
    theirs.sendall(bad + bytes(64))
    theirs.settimeout(LIMIT_S)
    with suppress(ConnectionResetError):
        assert theirs.recv(1) == b""
    before[8:12] = machine.memory[8:12]  # whether the thread that carries sleeps
    assert np.array_equal(machine.memory, before), "nothing was written"
    machine.mail[0].begin_step(1)
    assert machine.mail[0].send(1, b"into the void"), "whoever watches the machines notices, not who sends"
    machine.links.abandon(1)
    theirs.close()


def test_a_link_is_replaced(pool: ThreadPoolExecutor) -> None:
    ours, old = socket.socketpair()
    machine = Machine(0, ours, [0, 1])
    ours, theirs = socket.socketpair()
    machine.links.connect(1, ours.detach())
    old.settimeout(LIMIT_S)
    assert old.recv(1) == b"", "the old one is closed"
    take_steps(pool, [machine, Machine(1, theirs, [0, 1])], 1, [10])
    machine.links.disconnect(1)
    old.close()


@pytest.mark.parametrize("number", [-1, 0])
def test_links_to_nobody(number: int) -> None:
    ours, theirs = socket.socketpair()
    machine = Machine(0, ours, [0, 1])
    more, other = socket.socketpair()
    with pytest.raises(ValueError, match="cannot be linked"):
        machine.links.connect(number, more.detach())
    for link in (theirs, other):
        link.close()
