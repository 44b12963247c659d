"""An engine that fails when it is told to, for tests of failures: Bullet, and a file that says what goes wrong.

Registered as `faulty` by `register`, in this process and in the worker processes that it starts.
"""

from __future__ import annotations

import json
import os
import signal
import socket as sockets
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapjoint.engines.bullet import BulletEngine
from lapjoint.engines.exchange import Signal
from lapjoint.errors import NotFiniteError

VARIABLE = "LAPJOINT_FAULT_FILE"
THIRD = 3
"""The round in which a fault within the rounds happens."""


class FaultyEngine(BulletEngine):
    """`tell` says what it does wrong, in which body's step, when and how often. The server's does nothing wrong."""

    _silently: int | None = None
    _is_of_server = False
    _round = 0
    _to_tell: int | None = None

    def step(self, count: int = 1) -> None:
        super().step(count)
        self._go_wrong("end")

    def set_owners(self, owner: Any) -> None:
        super().set_owners(owner)
        self._is_of_server = True

    def begin_step(self, interface: Any, jointed: Any = ()) -> None:
        super().begin_step(interface, jointed)
        self._round = 0
        self._go_wrong("begin")

    def serve(self, down: Any, up: Any) -> int:
        asked = super().serve(down, up)
        if asked == Signal.ROUND:
            self._round += 1
            if self._round == THIRD:
                self._go_wrong("round", up)
        return asked

    def serve_by_socket(self, socket: int, down: Any, up: Any, carries: bool) -> bool:
        with sockets.socket(fileno=os.dup(socket)) as link:
            while link.recv(1):
                asked = self.serve(down, up)
                if asked != Signal.ROUND:
                    return asked == Signal.FINISH
                link.send(b"r")
        raise ConnectionResetError

    def finish_step(self, moves: bool = True) -> None:
        super().finish_step(moves)
        if self._to_tell is not None:
            raise NotFiniteError(f"body {self._to_tell}: not finite after the step", [self._to_tell])
        self._go_wrong("end")

    def _go_wrong(self, when: str, up: Any = None) -> None:
        fault = None if self._is_of_server else take_fault(self.active_ids.tolist(), when)
        if fault is None:
            return
        kind, body = fault["kind"], fault["body"]
        if kind == "nan" and up is not None:
            up[1:] = np.nan  # the first number says how many there are
            self._to_tell = body
        elif kind == "nan":
            raise NotFiniteError(f"body {body}: not finite after the step", [body])
        if kind == "silent nan":
            self._silently = body
        if kind == "error":
            raise ZeroDivisionError(f"body {body} divides by zero")
        if kind == "exit":
            os._exit(7)
        if kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if kind == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if kind == "hang":
            time.sleep(1000)

    def get_states(self, body_ids: Any = None, out: Any = None, rows: Any = None) -> Any:
        states = super().get_states(body_ids, out, rows)
        if self._silently is not None and body_ids is not None:
            there = np.flatnonzero(np.asarray(body_ids) == self._silently)
            states[there if rows is None else np.asarray(rows)[there]] = np.nan
        return states


def take_fault(active: list[int], when: str) -> dict[str, Any] | None:
    path = Path(os.environ[VARIABLE])
    if not path.exists():
        return None
    fault: dict[str, Any] = json.loads(path.read_text())
    if fault["body"] not in active or fault["times"] == 0 or fault.get("when", "end") != when:
        return None
    replace_text(path, json.dumps(fault | {"times": fault["times"] - 1}))
    return fault


def tell(kind: str, body: int, times: int = 1, when: str = "end") -> None:
    """The next `times` steps of a worker that has the body go wrong; those in rounds at their end, at their beginning
    ("begin") or within ("round")."""
    fault = {"kind": kind, "body": body, "times": times, "when": when}
    replace_text(Path(os.environ[VARIABLE]), json.dumps(fault))


def replace_text(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    part.write_text(text)
    part.replace(path)


def register(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Make `engine="faulty"` known."""
    about = folder / "faulty-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[lapjoint.engines]\nfaulty = faulty_engine:FaultyEngine\n")
    patch.syspath_prepend(str(folder))
    patch.syspath_prepend(str(Path(__file__).parent))
    patch.setenv(VARIABLE, str(folder / "fault.json"))
