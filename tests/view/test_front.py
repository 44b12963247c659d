"""The front of a view: what it refuses, and what strangers can hold."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lapjoint.view.page.access import Access
from lapjoint.view.page.front import Front
from view_support import LIMIT_S


@contextmanager
def front_of(access: Access) -> Iterator[Front]:
    """A front, before a port where nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as inner:
        front = Front(access, 0, inner.getsockname()[1])
        try:
            yield front
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
def test_what_cannot_be_read_is_a_bad_request(capfd: pytest.CaptureFixture[str], host: str, head: bytes) -> None:
    with front_of(Access.of(host)) as front:
        assert answer_to(front, head).startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert capfd.readouterr() == ("", "")
