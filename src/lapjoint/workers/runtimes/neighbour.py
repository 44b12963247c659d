"""Hosts keep copies (copies.py) for each other: what goes from one to its neighbour, and what a neighbour keeps."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ...waits import join
from ..codec import from_bytes
from ..messages import OwnStates
from .entrance import CONNECT_S, Entrance, Ticket, connect
from .link import Link


class Neighbour:
    """The host on another machine that keeps copies for this one. A thread talks to it: this host must be able to hear
    that the neighbour is gone."""

    def __init__(self, ticket: Ticket) -> None:
        self._link = Link(connect(**ticket), CONNECT_S)
        self._told, self._tell = socket.socketpair()
        self._copies: list[Any] = []
        self._has_work = threading.Semaphore(0)
        self._is_closed = False
        self.is_gone = False
        self._thread = threading.Thread(target=self._send_all, daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """Readable when the neighbour has the copies, or is gone."""
        return self._told.fileno()

    def send(self, copies: Sequence[Any]) -> None:
        """They must stay as they are until the neighbour has them."""
        self._copies = list(copies)
        self._has_work.release()

    def confirm(self) -> None:
        """Take note that it has what was sent, or is gone; waits for that."""
        self._told.recv(1)

    def _send_all(self) -> None:
        while True:
            self._has_work.acquire()
            if self._is_closed:
                return
            try:
                self._link.send("keep", self._copies)
                self._link.receive()
            except (OSError, ValueError):
                self.is_gone = True
            self._copies = []
            with suppress(OSError):
                self._tell.send(b"1")

    def close(self) -> None:
        """Whoever waits for it does so no longer."""
        self.is_gone = self._is_closed = True
        self._link.shut_down()
        self._has_work.release()
        join(self._thread, CONNECT_S, "the thread that sends copies to another machine")
        self._link.close()
        self._told.close()
        self._tell.close()


class Keeping:
    """What this host keeps for others: the last two copies of each of their workers."""

    def __init__(self) -> None:
        self._copies: dict[int, list[tuple[int, Any]]] = {}
        self._links: list[Link] = []
        self._lock = threading.Lock()

    def offer(self, address: str) -> Ticket:
        """Let another host connect, at this address, which has it keep copies."""
        entrance = Entrance(address)
        ticket = entrance.ticket(0)
        threading.Thread(target=self._receive, args=(entrance,), daemon=True).start()
        return ticket

    def _receive(self, entrance: Entrance) -> None:
        found = entrance.receive(CONNECT_S)
        entrance.close()
        if not found:
            return
        link = Link(found[0])
        with self._lock:
            self._links.append(link)
        try:
            while True:
                letter = link.receive()
                with self._lock:
                    for part in letter.parts:
                        copy: OwnStates = from_bytes(part)
                        self._copies[copy.worker] = [*self._copies.get(copy.worker, [])[-1:], (copy.number, part)]
                link.send("kept")
        except (OSError, ValueError):
            with self._lock:
                if link in self._links:
                    self._links.remove(link)
            link.close()

    def find(self, worker: int, number: int) -> Any:
        """The copy of a worker's states after the command of this number; None if there is none."""
        with self._lock:
            return dict(self._copies.get(worker, [])).get(number)

    def close(self) -> None:
        with self._lock:
            for link in self._links:
                link.shut_down()
            self._links.clear()
