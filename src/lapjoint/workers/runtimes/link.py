"""Connections between processes of several machines: who may connect, and what goes through.

One side listens, at the address that its machine is known by, or on this machine alone, and only while others connect.
It takes those alone that bring the token they were given another way; each is good for one connection.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import select
import selectors
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

TOKEN_SIZE = 32
MOST_SILENT = 256
"""How many connections may wait with their tokens. One more closes the oldest: workers send theirs at once."""
CONNECT_S = 20.0
SPIN_S = 200e-6
"""How long to look for an answer before going to sleep, where a core is free: a little longer than a letter to a worker
on another machine and its answer take. To sleep and to be woken makes them take twice as long (benchmarks/links.py)."""

Ticket = dict[str, Any]
"""What somebody needs to connect: `at`, host and port; `token`, in hexadecimal digits."""


class Entrance:
    """Where others connect: at `address`."""

    def __init__(self, address: str) -> None:
        self._tokens: dict[int, bytes] = {}
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.create_server((address, 0), family=family, backlog=socket.SOMAXCONN)

    def ticket(self, index: int) -> Ticket:
        """For machine number `index`."""
        self._tokens[index] = secrets.token_bytes(TOKEN_SIZE)
        return {"at": list(self._socket.getsockname()[:2]), "token": self._tokens[index].hex()}

    @property
    def missing(self) -> list[int]:
        """Who has a ticket and has not come."""
        return list(self._tokens)

    def receive(self, limit_s: float) -> dict[int, socket.socket]:
        """The connections of all that have a ticket, by machine; of fewer, if some do not come in time."""
        found: dict[int, socket.socket] = {}
        end = time.monotonic() + limit_s
        with _Lobby(self._socket) as lobby:
            while self._tokens and (left_s := end - time.monotonic()) > 0:
                for link, token in lobby.arrivals(left_s):
                    index = self._owner(token)
                    if index is None:
                        link.close()
                    else:
                        del self._tokens[index]
                        found[index] = _made_fast(link)
        return found

    def _owner(self, token: bytes) -> int | None:
        owners = [index for index, known in self._tokens.items() if hmac.compare_digest(known, token)]
        return owners[0] if owners else None

    def close(self) -> None:
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

    def __enter__(self) -> _Lobby:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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


# ---- what goes through -----------------------------------------------------------------------------------------------

PREFIX = struct.Struct("<QQQq")
"""In front of a letter: how long the rest is, and in it the description; how many parts there are; the number."""
SIZE = struct.Struct("<Q")
ALIGNMENT = 64
MOST_DESCRIPTION = 1 << 24
MOST_PARTS = 1 << 16
JOINED = 1 << 16
"""Letters up to this size go as one piece."""
_PADDING = [bytes(-size % ALIGNMENT) for size in range(ALIGNMENT)]


@dataclass
class Letter:
    """What one side of a link sends the other: a kind, a number, some values, and parts of bytes."""

    kind: str
    number: int
    values: dict[str, Any]
    parts: list[memoryview]


class Link:
    """Letters through a socket, which is closed with the link. OSError where the other side is gone, or takes longer
    than `limit_s` to take or to send a letter that has begun; ValueError where it sends none.

    After the prefix come the sizes of the parts, the description in JSON (kind and values), and the parts, each at a
    multiple of 64 bytes after the prefix. A description is mostly that of the letter before: it is made and read anew
    only where it is another.
    """

    def __init__(self, link: socket.socket, limit_s: float | None = None) -> None:
        self._socket = link
        link.settimeout(limit_s)
        self._prefix = bytearray(PREFIX.size)
        self._sent: dict[str, tuple[Any, bytes]] = {}
        self._read_last: tuple[bytes, Any] = (b"", None)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, kind: str, parts: Sequence[Any] = (), number: int = 0, **values: Any) -> None:
        known, description = self._sent.get(kind, (None, b""))
        if known != values:
            description = json.dumps([kind, values]).encode()
            self._sent[kind] = json.loads(description)[1], description
        pieces = [b"", *(SIZE.pack(len(part)) for part in parts), description]
        place = SIZE.size * len(parts) + len(description)
        for part in parts:
            pieces += [_PADDING[place % ALIGNMENT], part]
            place += -place % ALIGNMENT + len(part)
        pieces[0] = PREFIX.pack(place, len(description), len(parts), number)
        if place <= JOINED:
            self._socket.sendall(b"".join(pieces))
        else:
            for piece in pieces:
                self._socket.sendall(piece)

    def receive(self) -> Letter:
        self._read(memoryview(self._prefix))
        size, description_size, part_count, number = PREFIX.unpack(self._prefix)
        place = SIZE.size * part_count + description_size
        if description_size > MOST_DESCRIPTION or part_count > MOST_PARTS or place > size:
            raise ValueError("this is no letter")
        content = memoryview(bytearray(size))
        self._read(content)
        parts = []
        for index in range(part_count):
            place += -place % ALIGNMENT
            (part_size,) = SIZE.unpack_from(content, SIZE.size * index)
            if part_size > size - place:
                raise ValueError("a part of a letter is cut off")
            parts.append(content[place : place + part_size])
            place += part_size
        description = bytes(content[SIZE.size * part_count :][:description_size])
        if description != self._read_last[0]:
            self._read_last = description, json.loads(description)
        kind, values = self._read_last[1]
        return Letter(kind, number, values, parts)

    def _read(self, into: memoryview) -> None:
        while len(into):
            count = self._socket.recv_into(into)
            if count == 0:
                raise ConnectionResetError("the other side is gone")
            into = into[count:]

    def close(self) -> None:
        self._socket.close()


def wait_for_any(poll: select.poll, limit_s: float | None, is_core_free: bool) -> list[int]:
    """Descriptors that are ready, within so many seconds. Where a core is free, looks for a while before sleeping."""
    if is_core_free:
        end = time.perf_counter() + SPIN_S
        while time.perf_counter() < end:
            if ready := poll.poll(0):
                return [fd for fd, _ in ready]
            os.sched_yield()  # whoever needs the core more has it
    limit_ms = None if limit_s is None else max(0, -int(-1e3 * limit_s // 1))
    return [fd for fd, _ in poll.poll(limit_ms)]


def core_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
