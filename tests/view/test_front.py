"""The front of a view: what it refuses, and what strangers can hold."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from lapjoint.view.page import front as front_module
from lapjoint.view.page.access import Access
from lapjoint.view.page.front import MOST_STRANGERS, Front
from view_support import LIMIT_S, wait_until


@contextmanager
def front_of(access: Access) -> Iterator[tuple[Front, socket.socket]]:
    """A front, and the socket where it connects to the server behind it."""
    with socket.create_server(("127.0.0.1", 0)) as inner:
        inner.settimeout(LIMIT_S)
        front = Front(access, 0, inner.getsockname()[1])
        try:
            yield front, inner
        finally:
            front.close()


def connect(front: Front, head: bytes = b"") -> socket.socket:
    link = socket.create_connection(("127.0.0.1", front.port), timeout=LIMIT_S)
    link.sendall(head)
    return link


def answer_to(front: Front, head: bytes) -> bytes:
    """All that is sent back until the connection is closed."""
    answer = b""
    with connect(front, head) as link:
        while part := link.recv(1 << 16):
            answer += part
    return answer


@pytest.fixture
def no_output(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing is printed, nor logged, which without a test is printed."""
    yield
    assert capfd.readouterr() == ("", "")
    assert [record.getMessage() for record in caplog.get_records("call")] == []


@pytest.mark.parametrize("host", ["localhost", "0.0.0.0"])
@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: [\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a]b\r\n\r\n",
        b"GET //[ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://[x HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nOrigin: http://[\r\n\r\n",
        b"GET / HTTP/1.1\r\nnonsense\r\n\r\n",
        b"\x16\x03\x01hello\r\n\r\n",
        b"\r\n\r\n",
    ],
)
@pytest.mark.usefixtures("no_output")
def test_what_cannot_be_read_is_a_bad_request(host: str, head: bytes) -> None:
    with front_of(Access.of(host)) as (front, _):
        assert answer_to(front, head).startswith(b"HTTP/1.1 400 Bad Request\r\n")


def let_in(front: Front, inner: socket.socket, head: bytes) -> tuple[socket.socket, socket.socket]:
    """A connection that the server has answered, and the server's end of it."""
    link = connect(front, head)
    behind, _ = inner.accept()
    behind.settimeout(LIMIT_S)
    while not behind.recv(1 << 16).endswith(b"\r\n\r\n"):
        pass
    behind.sendall(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
    assert link.recv(1 << 16).startswith(b"HTTP/1.1 101")
    return link, behind


@pytest.mark.usefixtures("no_output")
def test_silent_strangers_are_few_and_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_module, "HEAD_S", 2 * LIMIT_S)
    access = Access.of("0.0.0.0")
    head = f"GET /?token={access.token} HTTP/1.1\r\nHost: box\r\nUpgrade: websocket\r\n\r\n".encode()
    more = 40
    with front_of(access) as (front, inner), ExitStack() as stack:
        first = let_in(front, inner, head)
        strangers = [stack.enter_context(connect(front, b"GET / ")) for _ in range(MOST_STRANGERS + more)]

        def closed() -> int:
            watch = select.poll()
            for stranger in strangers:
                watch.register(stranger, select.POLLIN)
            return len(watch.poll(0))

        wait_until(lambda: closed() >= more, "the oldest are closed")
        second = let_in(front, inner, head)
        wait_until(lambda: closed() == more + 1, "one more for the one that came")
        for link, behind in (first, second):
            link.sendall(b"ping")
            assert behind.recv(4) == b"ping"
            behind.sendall(b"pong")
            assert link.recv(4) == b"pong"
            link.close()
            behind.close()
        assert answer_to(front, b"GET / HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 403 Forbidden\r\n")


def test_a_head_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_module, "HEAD_S", 0.1)
    with front_of(Access.of("localhost")) as (front, _):
        assert answer_to(front, b"GET / HTTP/1.1\r\nHost: loc") == b""


@pytest.mark.usefixtures("no_output")
def test_a_front_is_closed_while_connections_are() -> None:
    for _ in range(20):
        with front_of(Access.of("localhost")) as (front, _):
            for link in [connect(front, b"GET / ") for _ in range(20)]:
                link.close()
