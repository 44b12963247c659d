"""A connection between the server and a host: letters, each way."""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...waits import LOOK_S
from .patient import patiently, send_all

SPIN_S = 200e-6
"""How long to look for an answer before going to sleep, where a core is free: a little longer than a letter to a worker
on another machine and its answer take. To sleep and to be woken makes them take twice as long."""

PREFIX = struct.Struct("<QQQq")
"""In front of a letter: how long the rest is, and in it the description; how many parts there are; the number."""
SIZE = struct.Struct("<Q")
ALIGNMENT = 64
MOST_DESCRIPTION = 1 << 24
MOST_PARTS = 1 << 16
READ_AT_ONCE = 1 << 26
"""Memory for a letter is made as the letter comes, so much at first: its size may be a stranger's word."""
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
    """Letters through a socket, which is closed with the link. OSError where the other side is gone, or neither takes
    nor sends anything for `limit_s` in the middle of a letter; ValueError where it sends none.

    After the prefix come the sizes of the parts, the description in JSON (kind and values), and the parts, each at a
    multiple of 64 bytes after the prefix. A description is mostly that of the letter before: it is made and read anew
    only where it is another.
    """

    def __init__(self, link: socket.socket, limit_s: float | None = None) -> None:
        self._socket, self._limit_s = link, limit_s
        link.settimeout(None if limit_s is None else LOOK_S)
        self._prefix = bytearray(PREFIX.size)
        self._sent: dict[str, tuple[Any, bytes]] = {}
        self._read_last: tuple[bytes | None, Any] = (None, None)

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
            self._send(b"".join(pieces))
        else:
            for piece in pieces:
                self._send(piece)

    def _send(self, piece: Any) -> None:
        if self._limit_s is None:
            self._socket.sendall(piece)
        else:
            send_all(self._socket, piece, self._limit_s)

    def receive(self) -> Letter:
        self._read(memoryview(self._prefix))
        size, description_size, part_count, number = PREFIX.unpack(self._prefix)
        place = SIZE.size * part_count + description_size
        if description_size > MOST_DESCRIPTION or part_count > MOST_PARTS or place > size:
            raise ValueError("this is no letter")
        content = self._read_content(size)
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
            self._read_last = description, _described(description)
        kind, values = self._read_last[1]
        return Letter(kind, number, values, parts)

    def _read_content(self, size: int) -> memoryview:
        content = bytearray(min(size, READ_AT_ONCE))
        self._read(memoryview(content))
        while (there := len(content)) < size:
            content += bytes(min(there, size - there))
            self._read(memoryview(content)[there:])
        return memoryview(content)

    def _read(self, into: memoryview) -> None:
        while len(into):
            if self._limit_s is None:
                count = self._socket.recv_into(into)
            else:
                count = patiently(partial(self._socket.recv_into, into), self._limit_s)
            if count == 0:
                raise ConnectionResetError("the other side is gone")
            into = into[count:]

    def shut_down(self) -> None:
        """Whoever sends or receives, on either side, gets an OSError: in another thread too."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()


def _described(description: bytes) -> tuple[str, dict[str, Any]]:
    """Kind and values. ValueError where it has none."""
    try:
        kind, values = json.loads(description)
    except (TypeError, RecursionError) as error:
        raise ValueError("a letter without kind and values") from error
    if type(kind) is not str or type(values) is not dict:
        raise ValueError("a letter without kind and values")
    return kind, values


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
