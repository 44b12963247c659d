"""How an actor comes to a socket of its own to the server, for what the two exchange within a step.

On the server's machine it is a Unix socket without a file, elsewhere a TCP connection to the address that Ray knows the
server's node by. The server listens only while actors connect, and takes those alone that bring the token they were
given through Ray; each is good for one connection.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import time
from typing import Any

TOKEN_SIZE = 32
READ_S = 1.0
"""What a token may take to arrive: who brings one has sent it before the server looks [s]."""
CONNECT_S = 20.0
FAILED = bytes(8)
"""What a worker sends in place of an answer, whether messages travel on the socket or not: no answer begins with it."""


class Entrance:
    """Where actors connect: at `address`, or, without one, from this machine alone."""

    def __init__(self, address: str | None) -> None:
        self._tokens: dict[int, bytes] = {}
        if address is None:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.bind(f"\0lapjoint-{secrets.token_hex(16)}")
            self._socket.listen(socket.SOMAXCONN)
        else:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            self._socket = socket.create_server((address, 0), family=family, backlog=socket.SOMAXCONN)

    def ticket(self, index: int) -> dict[str, Any]:
        """What worker number `index` needs to connect."""
        self._tokens[index] = secrets.token_bytes(TOKEN_SIZE)
        return {"at": self._socket.getsockname(), "token": self._tokens[index]}

    def receive(self, limit_s: float) -> dict[int, socket.socket]:
        """The connections of all that have a ticket, by worker; of fewer, if some do not come in time."""
        found: dict[int, socket.socket] = {}
        end = time.monotonic() + limit_s
        while self._tokens and time.monotonic() < end:
            self._socket.settimeout(max(0.001, end - time.monotonic()))
            try:
                link, _ = self._socket.accept()
            except TimeoutError:
                break
            index = self._owner(link)
            if index is None:
                link.close()
            else:
                del self._tokens[index]
                found[index] = _made_fast(link)
        return found

    def _owner(self, link: socket.socket) -> int | None:
        link.settimeout(READ_S)
        try:
            token = link.recv(TOKEN_SIZE, socket.MSG_WAITALL)
        except OSError:
            return None
        owners = [index for index, known in self._tokens.items() if hmac.compare_digest(known, token)]
        return owners[0] if owners else None

    def close(self) -> None:
        self._socket.close()


def connect(at: Any, token: bytes) -> socket.socket:
    """The worker's side. Raises OSError where the server cannot be reached."""
    if isinstance(at, tuple):
        link = socket.socket(socket.AF_INET6 if len(at) > 2 else socket.AF_INET)
    else:
        link = socket.socket(socket.AF_UNIX)
    try:
        link.settimeout(CONNECT_S)
        link.connect(at)
        link.sendall(token)
        return _made_fast(link)
    except BaseException:
        link.close()
        raise


def _made_fast(link: socket.socket) -> socket.socket:
    """Messages are small and waited for: none is held back until there is more to send."""
    if link.family != socket.AF_UNIX:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    link.settimeout(None)
    return link
