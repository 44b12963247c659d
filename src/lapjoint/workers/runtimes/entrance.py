"""Connections between processes of several machines: who may connect.

One side listens, at the address that its machine is known by, or on this machine alone, and only while others connect.
It takes those alone that bring the token they were given another way; each is good for one connection.
"""

from __future__ import annotations

import hmac
import secrets
import selectors
import socket
from collections.abc import Iterator, Sequence
from typing import Any

from ...waits import wait_within

TOKEN_SIZE = 32
MOST_SILENT = 256
"""How many connections may wait with their tokens. One more closes the oldest: workers send theirs at once."""
CONNECT_S = 20.0
Ticket = dict[str, Any]
"""What somebody needs to connect: `at`, host and port; `token`, in hexadecimal digits."""


class Entrance:
    """Where others connect: at `address`."""

    def __init__(self, address: str) -> None:
        self._tokens: dict[int, bytes] = {}
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.create_server((address, 0), family=family, backlog=socket.SOMAXCONN)
        self._lobby = _Lobby(self._socket)

    def ticket(self, index: int) -> Ticket:
        """For machine number `index`."""
        self._tokens[index] = secrets.token_bytes(TOKEN_SIZE)
        return {"at": list(self._socket.getsockname()[:2]), "token": self._tokens[index].hex()}

    @property
    def missing(self) -> list[int]:
        """Who has a ticket and has not come."""
        return list(self._tokens)

    def receive(self, limit_s: float) -> dict[int, socket.socket]:
        """The connections of all that have a ticket, by machine; of fewer, if some do not come in time. Who has
        connected then and is about to send its token is received the next time."""
        found: dict[int, socket.socket] = {}

        def have_come(seconds: float) -> bool:
            for link, token in self._lobby.arrivals(seconds):
                index = self._owner(token)
                if index is None:
                    link.close()
                else:
                    del self._tokens[index]
                    found[index] = _made_fast(link)
            return not self._tokens

        if self._tokens and limit_s > 0.0:
            wait_within(limit_s, have_come)
        return found

    def _owner(self, token: bytes) -> int | None:
        owners = [index for index, known in self._tokens.items() if hmac.compare_digest(known, token)]
        return owners[0] if owners else None

    def close(self) -> None:
        self._lobby.close()
        self._socket.close()


class _Lobby:
    """Connections whose tokens have not come yet. None of them waits for another."""

    def __init__(self, door: socket.socket) -> None:
        door.setblocking(False)
        self._door = door
        self._parts: dict[socket.socket, bytes] = {}
        """What has come of each connection's token, oldest first."""
        self._selector = selectors.DefaultSelector()
        self._selector.register(door, selectors.EVENT_READ)

    def arrivals(self, limit_s: float) -> Iterator[tuple[socket.socket, bytes]]:
        """Connections whose tokens have come, and the tokens. Waits so long at most for any news."""
        for key, _ in self._selector.select(limit_s):
            link = self._accept() if key.fileobj is self._door else key.fileobj
            if isinstance(link, socket.socket) and link in self._parts and self._read(link):
                self._selector.unregister(link)
                yield link, self._parts.pop(link)

    def _accept(self) -> socket.socket | None:
        try:
            link, _ = self._door.accept()
        except OSError:  # it has gone again
            return None
        link.setblocking(False)
        if len(self._parts) >= MOST_SILENT:
            self._send_away(next(iter(self._parts)))
        self._parts[link] = b""
        self._selector.register(link, selectors.EVENT_READ)
        return link

    def _read(self, link: socket.socket) -> bool:
        """Whether the token is whole. Nothing beyond it is read: what follows is a message."""
        try:
            part = link.recv(TOKEN_SIZE - len(self._parts[link]))
        except BlockingIOError:
            return False
        except OSError:
            part = b""
        if not part:
            self._send_away(link)
            return False
        self._parts[link] += part
        return len(self._parts[link]) == TOKEN_SIZE

    def _send_away(self, link: socket.socket) -> None:
        self._selector.unregister(link)
        del self._parts[link]
        link.close()

    def close(self) -> None:
        for link in list(self._parts):
            self._send_away(link)
        self._selector.close()


def connect(at: Sequence[Any], token: str) -> socket.socket:
    """The other side. Raises OSError where nobody can be reached."""
    link = socket.socket(socket.AF_INET6 if ":" in at[0] else socket.AF_INET)
    try:
        link.settimeout(CONNECT_S)
        link.connect(tuple(at))
        link.sendall(bytes.fromhex(token))
        return _made_fast(link)
    except BaseException:
        link.close()
        raise


def _made_fast(link: socket.socket) -> socket.socket:
    """Messages are small and waited for: none is held back until there is more to send."""
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    link.settimeout(None)
    return link
