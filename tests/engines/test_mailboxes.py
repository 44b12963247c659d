"""Messages between workers within a step, where they do not see the same memory."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

from lapjoint import _bullet_float32 as native
from lapjoint.engines.mailboxes import abandon, is_waiting
from parallel_support import poll

ROOM = 1 << 20
LIMIT_S = 60.0
MESSAGE, FINISHED, ABANDONED = 1, 2, 3


class End:
    """One of two workers, with mailboxes of its own."""

    def __init__(self, worker: int, link: socket.socket) -> None:
        self.worker = worker
        self.memory = np.zeros(native.Mailboxes.byte_count(2, ROOM), np.uint8)
        self.links = native.MailLinks(worker)
        self.links.set_memory(self.memory, 2, ROOM)
        self.links.connect(1 - worker, link.detach())
        self.mail = native.Mailboxes(self.memory, 2, ROOM, worker, 0, self.links)

    def take_step(self, attempt: int, messages: list[bytes]) -> list[bytes | None]:
        """Send messages, of which each waits for the other worker's of the same size."""
        self.mail.begin_step(attempt)
        received = []
        for message in messages:
            self.mail.send(1 - self.worker, message)
            received.append(self.mail.receive(1 - self.worker, len(message)))
        return [*received, b"finished" if self.mail.finish_step() is not None else None]


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def take_steps(pool: ThreadPoolExecutor, ends: list[End], attempt: int, sizes: list[int]) -> None:
    """Both take a step, with messages of these sizes, and receive what the other has sent."""
    random = np.random.default_rng(attempt)
    messages = [[random.bytes(size) for size in sizes] for _ in ends]
    futures = [pool.submit(end.take_step, attempt, own) for end, own in zip(ends, messages, strict=True)]
    for future, theirs in zip(futures, reversed(messages), strict=True):
        assert future.result(LIMIT_S) == [*theirs, b"finished"]


def test_messages_and_the_end_of_a_step(pool: ThreadPoolExecutor) -> None:
    """More bytes than a socket holds, both ways at once, too."""
    ends = [End(worker, link) for worker, link in enumerate(socket.socketpair())]
    for attempt in range(1, 20):
        take_steps(pool, ends, attempt, [0, 5, ROOM, 1, 1000] if attempt % 5 == 0 else [40] * attempt)


def test_mailboxes_that_are_opened_again(pool: ThreadPoolExecutor) -> None:
    """For another number of workers; what comes meanwhile is there then."""
    ends = [End(worker, link) for worker, link in enumerate(socket.socketpair())]
    take_steps(pool, ends, 1, [10])
    first = pool.submit(ends[0].take_step, 2, [b"early"])
    assert poll(lambda: is_waiting(ends[0].memory, 0), LIMIT_S)
    ends[1].mail = native.Mailboxes(ends[1].memory, 2, ROOM, 1, 0, ends[1].links)
    assert ends[1].take_step(2, [b"later"]) == [b"early", b"finished"]
    assert first.result(LIMIT_S) == [b"later", b"finished"]


@pytest.mark.parametrize("way", ["memory", "link"])
def test_an_attempt_is_abandoned(pool: ThreadPoolExecutor, way: str) -> None:
    ends = [End(worker, link) for worker, link in enumerate(socket.socketpair())]
    waiting = pool.submit(ends[0].take_step, 1, [b"unanswered"])
    assert poll(lambda: is_waiting(ends[0].memory, 0), LIMIT_S)
    if way == "memory":
        abandon(ends[0].memory, 1)
    else:
        ends[1].links.abandon(1)
    assert waiting.result(LIMIT_S) == [None, None]
    take_steps(pool, ends, 2, [10, 20])


def test_a_frame_that_was_cut_off_comes_before_the_next(pool: ThreadPoolExecutor) -> None:
    """Nobody reads, so that not all of it can be sent before the attempt is abandoned."""
    ours, theirs = socket.socketpair()
    end = End(0, ours)
    end.mail.begin_step(1)
    sent = pool.submit(end.mail.send, 1, bytes(ROOM))
    assert poll(lambda: is_waiting(end.memory, 0), LIMIT_S)
    abandon(end.memory, 1)
    assert sent.result(LIMIT_S) is False
    end.mail.begin_step(2)
    sent = pool.submit(end.mail.send, 1, b"next")
    frames = b""
    while len(frames) < 2 * 24 + ROOM + 4:
        frames += theirs.recv(1 << 20)
    assert sent.result(LIMIT_S) is True
    assert struct.unpack_from("QQQ", frames, 0) == (MESSAGE, 1 << 20, ROOM)
    assert struct.unpack_from("QQQ4s", frames, 24 + ROOM) == (MESSAGE, 2 << 20, 4, b"next")
    theirs.close()


def test_frames_come_in_pieces() -> None:
    ours, theirs = socket.socketpair()
    end = End(0, ours)
    end.mail.begin_step(7)
    frames = struct.pack("QQQ5s", MESSAGE, 7 << 20, 5, b"hello") + struct.pack("QQQ", FINISHED, 7, 0)
    for place in range(len(frames)):
        theirs.sendall(frames[place : place + 1])
    assert end.mail.receive(1, 5) == b"hello"
    assert end.mail.finish_step() is False
    theirs.close()


@pytest.mark.parametrize(
    "frame",
    [
        (MESSAGE, 1 << 20, ROOM + 1),
        (MESSAGE, 1 << 20, (1 << 64) - 1),
        (FINISHED, 1, 1),
        (ABANDONED, 1, ROOM),
        (0, 1, 0),
        (4, 1, 0),
        (1 << 63, 1, 0),
    ],
)
def test_bad_frames_close_the_link(frame: tuple[int, int, int]) -> None:
    ours, theirs = socket.socketpair()
    end = End(0, ours)
    theirs.sendall(struct.pack("QQQ", *frame) + bytes(64))
    theirs.settimeout(LIMIT_S)
    with suppress(ConnectionResetError):
        assert theirs.recv(1) == b""
    assert not end.memory.any(), "nothing was written"
    end.mail.begin_step(1)
    assert end.mail.send(1, b"into the void"), "whoever watches the workers notices, not who sends"
    end.links.abandon(1)
    theirs.close()


def test_a_link_is_replaced(pool: ThreadPoolExecutor) -> None:
    ours, old = socket.socketpair()
    end = End(0, ours)
    ours, theirs = socket.socketpair()
    end.links.connect(1, ours.detach())
    old.settimeout(LIMIT_S)
    assert old.recv(1) == b"", "the old one is closed"
    take_steps(pool, [end, End(1, theirs)], 1, [10])
    old.close()


@pytest.mark.parametrize("worker", [-1, 0, 2])
def test_links_to_nobody(worker: int) -> None:
    ours, theirs = socket.socketpair()
    end = End(0, ours)
    more, other = socket.socketpair()
    with pytest.raises(ValueError, match="cannot be linked"):
        end.links.connect(worker, more.detach())
    for link in (theirs, other):
        link.close()
