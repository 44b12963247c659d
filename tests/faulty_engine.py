"""An engine that fails when it is told to, for tests of failures: Bullet, and a file that says what goes wrong.

Registered as `faulty` by `register`, in this process and in the worker processes that it starts.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapjoint.engines.bullet import BulletEngine
from lapjoint.errors import NotFiniteError

VARIABLE = "LAPJOINT_FAULT_FILE"


class FaultyEngine(BulletEngine):
    """`tell` says what it does wrong, in the step of which body's worker, when and how often."""

    _silently: int | None = None

    def step(self, count: int = 1) -> None:
        super().step(count)
        self._go_wrong("end")

    def step_with_neighbours(self, attempt: int, count: int = 1, choose: bool = True) -> bool:
        self._go_wrong("begin")
        completed = super().step_with_neighbours(attempt, count, choose)
        self._go_wrong("end")
        return completed

    def _go_wrong(self, when: str) -> None:
        fault = take_fault(self.active_ids.tolist(), when)
        if fault is None:
            return
        kind, body = fault["kind"], fault["body"]
        if kind == "nan":
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
    here = [body for body in fault["bodies"] if body in active]
    if not here or fault["times"] == 0 or fault.get("when", "end") != when:
        return None
    replace_text(path, json.dumps(fault | {"times": fault["times"] - 1}))
    return fault | {"body": here[0]}


def tell(kind: str, *bodies: int, times: int = 1, when: str = "end") -> None:
    """The next `times` steps of the worker whose body it is go wrong: at their end, or, where workers take them
    together, at their beginning ("begin"), while the others are within theirs. Of several bodies, the first that the
    worker has."""
    fault = {"kind": kind, "bodies": bodies, "times": times, "when": when}
    replace_text(Path(os.environ[VARIABLE]), json.dumps(fault))


def replace_text(path: Path, text: str) -> None:
    part = path.with_suffix(f".{os.getpid()}")  # several workers may have the body
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
