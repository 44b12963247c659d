"""Who may connect to a machine that listens for others, and what goes through a link."""

from __future__ import annotations

import socket
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from lapjoint.errors import WorkerError
from lapjoint.waits import Patience
from lapjoint.workers.runtimes import host
from lapjoint.workers.runtimes.entrance import CONNECT_S, MOST_SILENT, Entrance, connect
from lapjoint.workers.runtimes.link import MOST_DESCRIPTION, PREFIX, READ_AT_ONCE, Link
from lapjoint.workers.runtimes.placement import Node, place
from lapjoint.workers.runtimes.remote_host import HostLost, RemoteHost
from ray_support import LIMIT_S


def test_only_tickets_are_let_in() -> None:
    entrance = Entrance("127.0.0.1")
    first, second = entrance.ticket(4), entrance.ticket(2)
    strangers = [connect(first["at"], "78" * 32), connect(first["at"], "0123")]
    strangers[1].shutdown(socket.SHUT_WR)
    links = [connect(**second), connect(**first), connect(**first)]  # the last once more than allowed
    found = entrance.receive(LIMIT_S)
    assert sorted(found) == [2, 4]
    found[2].sendall(b"two")
    assert links[0].recv(3) == b"two"
    entrance.close()
    for stranger in (*strangers, links[2]):
        stranger.settimeout(LIMIT_S)
        with suppress(ConnectionResetError):
            assert stranger.recv(1) == b""
        stranger.close()
    with pytest.raises(OSError, match="refused"):
        connect(**second)
    for link in (*links[:2], *found.values()):
        link.close()


def test_silent_connections_cost_nothing() -> None:
    """Each once took a second, one after the other, so that a few kept all others out."""
    entrance = Entrance("127.0.0.1")
    ticket = entrance.ticket(0)
    with ThreadPoolExecutor(1) as pool:
        received = pool.submit(entrance.receive, CONNECT_S)
        silent = [connect(ticket["at"], part) for part in ["", "78"] * (MOST_SILENT // 2 + 20)]
        machine = connect(ticket["at"], ticket["token"][:32])
        silent[0].settimeout(LIMIT_S)
        assert silent[0].recv(1) == b"", "the oldest are closed"
        machine.sendall(bytes.fromhex(ticket["token"][32:]) + b"more")
        found = received.result()
    assert list(found) == [0]
    assert found[0].recv(9) == b"more", "nothing beyond the token was read"
    for link in (*silent, machine, found[0]):
        link.close()
    entrance.close()


def test_a_token_may_come_after_the_first_look() -> None:
    """Who was about to send it was sent away, and left."""
    entrance = Entrance("127.0.0.1")
    ticket = entrance.ticket(0)
    machine = connect(ticket["at"], ticket["token"][:32])
    assert entrance.receive(0.05) == {}
    machine.sendall(bytes.fromhex(ticket["token"][32:]))
    found = entrance.receive(LIMIT_S)
    assert list(found) == [0]
    for link in (machine, found[0]):
        link.close()
    entrance.close()


# ---- letters ---------------------------------------------------------------------------------------------------------


def two_links() -> tuple[Link, Link]:
    ours, theirs = socket.socketpair()
    return Link(ours, LIMIT_S), Link(theirs, LIMIT_S)


@pytest.mark.parametrize("sizes", [[], [0], [3, 0, 64], [1, 1 << 20, 5]])
def test_letters_come_as_they_were_sent(sizes: list[int]) -> None:
    ours, theirs = two_links()
    parts = [bytes([number]) * size for number, size in enumerate(sizes)]
    with ThreadPoolExecutor(1) as pool:
        for turn in range(4):
            sent = pool.submit(ours.send, "step", parts, -turn, turn=turn // 2, name="ö")
            letter = theirs.receive()
            sent.result()
            assert (letter.kind, letter.number, letter.values) == ("step", -turn, {"turn": turn // 2, "name": "ö"})
            assert [bytes(part) for part in letter.parts] == parts
    ours.close()
    theirs.close()


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"short", OSError),
        (PREFIX.pack(0, 0, 0, 0), ValueError),
        (PREFIX.pack(1 << 30, MOST_DESCRIPTION + 1, 0, 0), ValueError),
        (PREFIX.pack(1 << 62, 10, 1 << 61, 0), ValueError),
        (PREFIX.pack(10, 11, 0, 0), ValueError),
        (PREFIX.pack(4, 4, 0, 0) + b"none", ValueError),
        (PREFIX.pack(17, 9, 1, 0) + bytes([64, *[0] * 7]) + b'["a", {}]', ValueError),
        (PREFIX.pack(9, 9, 0, 0) + b'[["a"],3]', ValueError),
        (PREFIX.pack(9, 9, 0, 0) + b'"nothing"', ValueError),
        (PREFIX.pack(9000, 9000, 0, 0) + b"[" * 9000, ValueError),
        (PREFIX.pack(1 << 45, 4, 0, 0) + b"much", OSError),
    ],
    ids=[
        *(
            "cut off",
            "empty",
            "too long",
            "too many",
            "too short",
            "no description",
            "a part is missing",
            "no values",
            "no kind",
        ),
        *("deep", "less than it says"),
    ],
)
def test_what_is_no_letter(content: bytes, error: type[Exception]) -> None:
    ours, theirs = socket.socketpair()
    link = Link(theirs, LIMIT_S)
    ours.sendall(content)
    ours.close()
    tracemalloc.start()
    with pytest.raises(error):
        link.receive()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * READ_AT_ONCE, "memory is made for what has come, not for what is announced"
    link.close()


@pytest.mark.parametrize(
    "values", [{}, {"pid": 1, "digest": "x"}, {"pid": "1", "digest": "x", "shared": True}], ids=str
)
def test_a_host_that_answers_senselessly_is_lost(values: dict[str, Any]) -> None:
    ours, theirs = two_links()
    known = RemoteHost(0, Node("0", "127.0.0.1", 1), NoProcess())
    known.link = ours
    theirs.send("open", pid=1, digest="x", shared=True, more=[])
    assert known.expect("open", Patience(LIMIT_S)).values["pid"] == 1, "more than is needed does no harm"
    theirs.send("open", **values)
    with pytest.raises(HostLost):
        known.expect("open", Patience(LIMIT_S))
    for link in (ours, theirs):
        link.close()


@pytest.mark.parametrize("kind", ["step", "dance"])
def test_a_host_leaves_a_server_that_makes_no_sense(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(host, "connect", lambda **_: ours)
    server = Link(theirs, LIMIT_S)
    server.send(kind, [b"a command"], workers=[3])
    host.serve({})
    with pytest.raises(OSError, match="gone"):
        server.receive()
    server.close()


def test_a_host_that_cannot_reach_its_server_says_so() -> None:
    entrance = Entrance("127.0.0.1")
    ticket = entrance.ticket(0)
    entrance.close()
    with pytest.raises(SystemExit, match=r"the server at 127\.0\.0\.1 cannot be reached: Connection refused"):
        host.serve(ticket)


class NoProcess:
    """Of a host that nobody has started."""

    def how_it_ended(self, limit_s: float) -> str | None:
        return None

    def kill(self) -> None:
        pass


def test_a_side_that_takes_nothing_is_given_up() -> None:
    ours, theirs = socket.socketpair()
    link = Link(ours, 0.05)
    with pytest.raises(OSError, match=r"has taken and sent nothing for 0\.05 s"):
        link.send("step", [bytes(1 << 24)])
    link.close()
    theirs.close()


def test_no_machine_is_left() -> None:
    """Each was tried and did not answer: that was a traceback."""
    nodes = [Node("a", "192.0.2.1", 2), Node("b", "192.0.2.2", 0)]
    assert [node.node_id for node in place(2, nodes)] == ["a", "a"]
    with pytest.raises(WorkerError, match="no machine left"):
        place(1, [])
