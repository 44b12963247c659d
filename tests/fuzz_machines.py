"""Letters between server and hosts, and what machines send each other, that fuzzing changes."""

from __future__ import annotations

import json
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzz_changes import Content, changed, changed_bytes
from fuzz_scenes import Changes, Target, pile
from lapjoint import (
    Params,
)
from lapjoint import _bullet_float32 as native
from lapjoint.workers import codec, messages
from lapjoint.workers.runtimes import host as module
from lapjoint.workers.runtimes.digest import source_digest
from lapjoint.workers.runtimes.fleet import Fleet
from lapjoint.workers.runtimes.gather import Gathering
from lapjoint.workers.runtimes.host_links import link_hosts
from lapjoint.workers.runtimes.link import PREFIX, SIZE, Link
from lapjoint.workers.runtimes.placement import Node
from lapjoint.workers.runtimes.remote import RemoteStates
from lapjoint.workers.runtimes.remote_host import HostedWorker, RemoteHost
from lapjoint.workers.runtimes.shared import SharedMemory


class Nowhere:
    """A host's process that nobody knows anything of; and a cluster without machines."""

    def how_it_ended(self, limit_s: float) -> str | None:
        return "its host has left"

    def kill(self) -> None:
        pass

    def leave(self) -> None:
        pass


def letter_bytes(content: Content, number: int) -> bytes:
    """What a link sends: kind, values and parts as they are in the content."""
    parts = [np.ascontiguousarray(part).tobytes() for _, part in sorted(content.arrays.items())]
    description = json.dumps(content.description).encode()
    head = b"".join(SIZE.pack(len(part)) for part in parts) + description
    data = head
    for part in parts:
        data += bytes(-len(data) % 64) + part
    return PREFIX.pack(len(data), len(description), len(parts), number) + data


def as_part(message: Any) -> NDArray[np.uint8]:
    return np.frombuffer(codec.to_bytes(message), np.uint8)


class HostLetters(Target):
    """What hosts send the server, at each place where it waits for a letter."""

    def __init__(self) -> None:

        reply = messages.RemoteReply(
            messages.StepReply(), states=np.zeros((2, 13)), bodies=np.arange(2, dtype=np.int32)
        )
        failure = messages.WorkerFailure(0, "gone", "process 7 was killed")
        opened = {"pid": 1, "digest": source_digest(), "shared": False}
        self.seeds = [
            ("open", Content(["open", opened])),
            ("start", Content(["start", {"pids": [[0, 7], [1, 8]], "errors": []}])),
            (
                "answers",
                Content(["answers", {"workers": [0, 1], "failed": []}], {"a": as_part(reply), "b": as_part(reply)}),
            ),
            (
                "answers",
                Content(["answers", {"workers": [0, 1], "failed": [0]}], {"a": as_part(failure), "b": as_part(reply)}),
            ),
            ("who", Content(["who", {"late": [[0, 1.0]], "waiting": [1], "sending": False}])),
            ("links", Content(["listen", {"tickets": [[1, {"at": ["127.0.0.1", 1], "token": "00"}]]}])),
        ]

    def attempt(self, seed: int, changes: Changes, folder: Path) -> None:

        place, content = self.seeds[seed]
        data = changed_bytes(letter_bytes(changed(content, changes), 1), changes)
        fleet = Fleet(Nowhere(), 1.0)  # type: ignore[arg-type]
        ours, theirs = zip(*(socket.socketpair() for _ in range(2)), strict=True)
        for machine, link in enumerate(ours):
            fleet.hosts.append(RemoteHost(machine, Node(str(machine), "127.0.0.1", 1), Nowhere()))
            fleet.hosts[-1].link = Link(link, 1.0)
        host = fleet.hosts[0]
        fleet.workers += [HostedWorker(0, host), HostedWorker(1, host)]
        try:
            _send_all(theirs[0], data)
            theirs[1].close()
            if place == "open":
                fleet._begin([host], [], 1.0)
            elif place == "start":
                scene = SharedMemory(64)
                fleet.start_workers({host: [0, 1]}, scene, {})
            elif place == "links":
                link_hosts(fleet.hosts, lambda node: node.address, fleet.lose)
            else:
                answers: list[Any] = [b""] * 2
                Gathering(fleet, answers, 0.1, 1).run([host], 0.0 if place == "who" else 0.5)
                scene = pile()
                states = RemoteStates(scene, Params(workers=2), scene.states.copy())
                for index in range(2):
                    states.set_worker(index, False)
                states.pack([messages.StepCommand(), messages.StepCommand()])
                states.unpack([messages.StepCommand()] * 2, answers, np.zeros((12, 13)))
        finally:
            for end in (*ours, *theirs):
                end.close()


def _send_all(link: socket.socket, data: bytes) -> None:
    """Send, and hang up; nobody may read it."""
    link.setblocking(False)
    with suppress(OSError):
        link.send(data)
    link.shutdown(socket.SHUT_WR)


class ServerLetters(Target):
    """What the server sends a host: whatever it is, the host leaves in order."""

    def __init__(self) -> None:
        self.seeds = [
            [Content(["open", {"machine": 0, "memory": []}])],
            [Content(["open", {"machine": 0, "memory": []}]), Content(["stop", {"workers": [0]}])],
            [Content(["open", {"machine": 0, "memory": []}]), Content(["disconnect", {"machines": [1]}])],
            [
                Content(["open", {"machine": 0, "memory": []}]),
                Content(["make room", {"machines": [0, 1], "mail_room": 64, "body_room": 6}]),
            ],
            [Content(["open", {"machine": 0, "memory": []}]), Content(["abandon", {}])],
            [Content(["open", {"machine": 0, "memory": []}]), Content(["who", {}])],
            [Content(["open", {"machine": 0, "memory": []}]), Content(["give up", {"workers": [0], "seconds": 1.0}])],
            [
                Content(["open", {"machine": 0, "memory": []}]),
                Content(["step", {"workers": [0]}], {"a": as_part(messages.StepCommand())}),
            ],
            [
                Content(["open", {"machine": 0, "memory": []}]),
                Content(["connect", {"tickets": [[1, "127.0.0.1", {"at": ["127.0.0.1", 1], "token": "00"}]]}]),
            ],
            [Content(["open", {"machine": 0, "memory": []}]), Content(["let in", {"seconds": 0.0}])],
        ]

    def attempt(self, seed: int, changes: Changes, folder: Path) -> None:

        *before, last = self.seeds[seed]
        data = b"".join(letter_bytes(content, 0) for content in before)
        data += changed_bytes(letter_bytes(changed(last, changes), 0), changes)
        ours, theirs = socket.socketpair()
        connect, module.connect = module.connect, lambda **_: ours  # type: ignore[assignment]
        try:
            _send_all(theirs, data)
            module.serve({})
        finally:
            module.connect = connect  # type: ignore[assignment]
            theirs.close()


class MailFrames(Target):
    """What machines send each other within a step, to the thread that puts it into memory."""

    def __init__(self) -> None:
        frames = [(1, 1, 0, 1 << 20, b"x" * 40), (2, 1, 0xFFFF, 1, b""), (3, 1, 0xFFFF, 1, b""), (4, 0, 0, 1, b"")]
        self.seeds = [
            Content(
                [list(frame[:4]) for frame in frames],
                {str(k): np.frombuffer(f[4], np.uint8) for k, f in enumerate(frames)},
            )
        ]

    def attempt(self, seed: int, changes: Changes, folder: Path) -> None:

        content = changed(self.seeds[seed], changes)
        data = b""
        for number, frame in enumerate(content.description if isinstance(content.description, list) else []):
            numbers = [value if type(value) is int else 7 for value in (frame if isinstance(frame, list) else [])]
            kind, sender, to, message = (*numbers, 0, 0, 0, 0)[:4]
            inside = np.ascontiguousarray(content.arrays.get(str(number), np.empty(0, np.uint8))).tobytes()[:4096]
            head = struct.pack("IHHQQ", kind % 2**32, sender % 2**16, to % 2**16, message % 2**64, len(inside))
            data += head + inside
        data = changed_bytes(data, changes)
        memory = np.zeros(native.Mailboxes.byte_count(3, 64), np.uint8)
        links = native.MachineLinks(0, 0)
        links.set_workers(memory, 64, [0, 1, 1])
        ours, theirs = socket.socketpair()
        links.connect(1, ours.detach())
        theirs.settimeout(60.0)
        with suppress(ConnectionError):  # it may hang up before it has all
            theirs.sendall(data)
            theirs.shutdown(socket.SHUT_WR)
            while theirs.recv(1 << 16):  # until it hangs up too
                pass
        theirs.close()
