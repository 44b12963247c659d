"""A host and its workers, as the server sees them."""

from __future__ import annotations

import select
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from ...errors import WorkerError
from ...waits import Patience
from ..codec import from_bytes
from ..messages import WorkerFailure
from .letters import ANSWERED, checked
from .link import Letter, Link, wait_for_any
from .placement import Node

ENDED_S = 1.0
"""How long to wait for the word on how a host has ended, whose link is lost [s]."""


class HostProcess(Protocol):
    """The process of a host, wherever it is: who has started it can end it and knows how it ended."""

    def how_it_ended(self, limit_s: float) -> str | None:
        """None: it has not, as far as is known after so many seconds."""
        ...

    def kill(self) -> None: ...


class HostLost(Exception):
    """A host is gone, or has not answered in time."""


class HostedWorker:
    """Worker number `index`."""

    def __init__(self, index: int, host: RemoteHost) -> None:
        self.index, self.host = index, host
        self.pid = 0
        self.failure: WorkerFailure | None = None

    @property
    def node(self) -> Node:
        return self.host.node

    @property
    def is_shared(self) -> bool:
        """Whether the worker writes into the server's memory."""
        return self.host.is_shared

    def fail(self, kind: str, text: str) -> None:
        """This worker is given up."""
        self.failure = self.failure or WorkerFailure(self.index, kind, f"process {self.pid} {text}")

    def note_failure(self, message: Any) -> None:
        """What its host reports."""
        failure = from_bytes(message)
        if not isinstance(failure, WorkerFailure):
            raise ValueError("a failure that is none")
        if failure.kind in ("gone", "hung"):
            failure = replace(failure, text=f"{failure.text}, on {self.node.address}")
        self.failure = failure


class RemoteHost:
    """Machine number `machine`, which is node `node` of a cluster."""

    def __init__(self, machine: int, node: Node, process: HostProcess) -> None:
        self.machine, self.node, self.process = machine, node, process
        self.link: Link | None = None
        self.pid = 0
        self.is_shared = False
        self.is_lost = False
        self.is_linked = False
        """Whether it reaches the other hosts."""
        self.neighbour: RemoteHost | None = None
        """Who keeps copies of its workers' states; see copies.py."""
        self.report: Letter | None = None
        """Who has not answered, when that was asked."""

    @property
    def is_alone(self) -> bool:
        """Whether nobody else has its workers' states."""
        return not self.is_shared and self.neighbour is None and not self.is_lost

    def send(self, kind: str, parts: Sequence[Any] = (), number: int = 0, **values: Any) -> None:
        if self.link is None:
            raise HostLost
        try:
            self.link.send(kind, parts, number, **values)
        except OSError as error:
            raise HostLost from error

    def receive(self) -> Letter:
        """What has come, or is about to."""
        if self.link is None:
            raise HostLost
        try:
            return checked(self.link.receive(), ANSWERED)
        except (OSError, ValueError) as error:
            raise HostLost from error

    def expect(self, kind: str, patience: Patience) -> Letter:
        """The answer of this kind, as long as there is patience."""
        if self.link is None:
            raise HostLost
        poll = select.poll()
        poll.register(self.link.fileno(), select.POLLIN)
        while True:
            if not patience.wait(lambda seconds: wait_for_any(poll, seconds, False)):
                raise HostLost(f"no answer to {kind!r}")
            letter = self.receive()
            if letter.kind == kind:  # others were asked for before, and not waited for
                return letter

    def lose(self) -> str:
        """It is given up, with all its workers. Returns why."""
        self.is_lost = True
        why = self.process.how_it_ended(ENDED_S) or f"its host on {self.node.address} does not answer"
        self.end()
        return why

    def end(self) -> None:
        if self.link is not None:
            self.link.close()
            self.link = None
        with suppress(Exception):
            self.process.kill()

    def start_error(self, text: str) -> WorkerError:
        return WorkerError(f"no worker can be started on {self.node.address}: {text}")
