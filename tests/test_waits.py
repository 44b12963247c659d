"""Waits end, and count time in which this program runs; none in the whole package is without a limit."""

from __future__ import annotations

import ast
import threading
from pathlib import Path

import pytest

from lapjoint import LapjointError, waits
from lapjoint.waits import LOOK_S, MOST_S, RunningTime, join, wait_within

PACKAGE = Path(waits.__file__).parent


class Clock:
    """It stands still until it is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 100.0
        monkeypatch.setattr(waits, "monotonic", lambda: self.now_s)


def test_a_pause_counts_for_little(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    running = RunningTime()
    clock.now_s += LOOK_S
    assert running.look() == pytest.approx(LOOK_S)
    clock.now_s += 1000.0
    assert running.look() == running.seconds == pytest.approx(LOOK_S + MOST_S)
    assert running.paused_s == pytest.approx(1000.0 - MOST_S)


def test_whoever_waits_looks_often_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, waited = Clock(monkeypatch), []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        clock.now_s += 1000.0 if len(waited) == 5 else max(seconds, 1e-3)

    assert not wait_within(1.0, wait)
    assert max(waited) == LOOK_S
    assert sum(waited) > 0.7, "the pause has taken no more of it than it may"
    assert wait_within(0.0, lambda seconds: seconds == 0.0), "it is tried once at least"


def test_a_thread_that_does_not_end_is_named() -> None:
    ends = threading.Event()
    thread = threading.Thread(target=ends.wait, args=(60.0,))
    thread.start()
    with pytest.raises(LapjointError, match=r"the writer has not ended within 0\.05 s"):
        join(thread, 0.05, "the writer")
    ends.set()
    join(thread, 60.0, "the writer")


# ---- the whole package -------------------------------------------------------------------------------------------

LIMITED_BY = {
    "wait": 0,
    "join": 0,
    "result": 0,
    "exception": 0,
    "poll": 0,
    "select": 0,
    "wait_for": 1,
    "get": 1,
    "acquire": 1,
    "put": 1,
    "run": 99,
    "communicate": 1,
    "check_call": 99,
    "check_output": 99,
}
"""Calls that wait, and which of their arguments is the limit; it may be named `timeout` too."""
OF = {"run": "subprocess", "check_call": "subprocess", "check_output": "subprocess", "put": "queue", "get": "queue"}
"""Whose calls these are, where the name says too little: words in the name of what is called."""

ENDLESS = {
    "workers/runtimes/fork_server_main.py: self._poll.poll()": "nothing to do until the server sends or hangs up",
    "workers/runtimes/process_worker.py: poll.poll()": "its thread is there to notice that the server hangs up",
    "workers/runtimes/starter.py: self._orders.get()": "its thread has nothing to do until it has an order",
    "workers/runtimes/neighbour.py: self._has_work.acquire()": "nothing to do until it is woken, by close too",
    "recording/writer.py: self._queue.get()": "its thread takes what comes after an error, until close ends the queue",
    "view/page/front.py: self._ended.wait()": "its thread serves until close ends it",
}
"""Calls without a limit, and why nothing waits for them, or why they end."""


def waits_without_a_limit(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        name = node.func.attr
        if name not in LIMITED_BY or isinstance(node.func.value, ast.Constant):
            continue
        owner = ast.unparse(node.func.value)
        if ast.unparse(node) == "select.poll()":  # makes one
            continue
        if any(keyword.arg == "blocking" and ast.unparse(keyword.value) == "False" for keyword in node.keywords):
            continue
        if name in OF and OF[name] not in owner and not (name == "get" and not node.args):
            continue
        if len(node.args) > LIMITED_BY[name] or any(keyword.arg == "timeout" for keyword in node.keywords):
            continue
        found.append(f"{path.relative_to(PACKAGE).as_posix()}: {ast.unparse(node)}")
    return found


@pytest.mark.slow
def test_no_call_waits_without_a_limit() -> None:
    found = {call for path in PACKAGE.rglob("*.py") for call in waits_without_a_limit(path)}
    assert sorted(found - ENDLESS.keys()) == []
    assert sorted(ENDLESS.keys() - found) == [], "of calls that there are no more"
