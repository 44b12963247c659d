"""What the tests of the parallel part share: small graphs, random cases, and a watch over processes."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from hypothesis import strategies as st
from numpy.typing import NDArray

from lapjoint.algorithms import Membership
from lapjoint.workers.runtimes.fork_server import _servers

Ids = NDArray[np.int32]
Pairs = list[tuple[int, int]]

WORKER_COUNTS = (1, 2, 3, 7, 64, 65, 130, 256)  # one word of bits, just more, and the last bit of a word
SHARED_MEMORY = Path("/dev/shm")


def pairs_array(pairs: Iterable[tuple[int, int]]) -> Ids:
    return np.array(list(pairs), np.int32).reshape(-1, 2)


def chain_edges(body_count: int) -> Ids:
    """Body i holds body i + 1."""
    return pairs_array((i, i + 1) for i in range(body_count - 1))


def grid_edges(rows: int, columns: int) -> Ids:
    """Body `row * columns + column` holds the next one in its row and in its column."""
    across = [(r * columns + c, r * columns + c + 1) for r in range(rows) for c in range(columns - 1)]
    down = [(r * columns + c, (r + 1) * columns + c) for r in range(rows - 1) for c in range(columns)]
    return pairs_array(across + down)


def members(worker_count: int, *workers: Sequence[int]) -> Membership:
    """Body 0 is active in `workers[0]`, and so on."""
    membership = Membership([own[0] for own in workers], worker_count)
    for body, own in enumerate(workers):
        membership.activate(own, body)
    return membership


@dataclass(frozen=True)
class Case:
    """A random partition of random bodies, held by random joints."""

    body_count: int
    worker_count: int
    partition: list[int]
    joints: Pairs

    def membership(self) -> Membership:
        return Membership(self.partition, self.worker_count)


@st.composite
def random_pairs(draw: st.DrawFn, body_count: int) -> Pairs:
    """Pairs of different bodies, either way round, some of them more than once."""
    if body_count < 2:
        return []
    pair = st.tuples(st.integers(0, body_count - 1), st.integers(1, body_count - 1))
    count = draw(st.integers(0, 2 * body_count))  # drawn first: lists by themselves stay short
    drawn = draw(st.lists(pair, min_size=count, max_size=count))
    return [(body, (body + step) % body_count) for body, step in drawn]


@st.composite
def random_cases(draw: st.DrawFn, most_bodies: int = 24) -> Case:
    body_count = draw(st.integers(1, most_bodies))
    worker_count = draw(st.sampled_from(WORKER_COUNTS))
    # The highest workers are drawn as often as the lowest: their bits are in the last word.
    worker = st.integers(0, worker_count - 1) | st.integers(max(worker_count - 3, 0), worker_count - 1)
    partition = draw(st.lists(worker, min_size=body_count, max_size=body_count))
    return Case(body_count, worker_count, partition, draw(random_pairs(body_count)))


def same_membership(a: Membership, b: Membership) -> bool:
    return np.array_equal(a.bits, b.bits) and np.array_equal(a.load, b.load)


# ---- processes ---------------------------------------------------------------------------------------------------


def finish(work: Callable[[], Any], seconds: float = 120.0) -> BaseException | None:
    """Do `work` in a thread and return what it raised; a failure if it hangs."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), f"still not done after {seconds} s"
    return raised[0] if raised else None


def running(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Those that have not ended. One that nobody has waited for yet has ended too."""
    left = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                left.append(process)
    return left


def poll(condition: Callable[[], Any], seconds: float) -> Any:
    """The first true value of `condition`, or its last one after that many seconds."""
    end, pause_s = time.monotonic() + seconds, 0.02
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(pause_s)
        pause_s = min(1.5 * pause_s, 0.2)  # to look through all processes takes a core


def children(pid: int | None = None) -> list[psutil.Process]:
    """Processes that process `pid` (this one) has started and that have not ended, but for the fork server. Of those of
    a Ray cluster, our workers only: the others are the cluster's."""
    found = running(psutil.Process(pid or os.getpid()).children(recursive=True))
    return [p for p in found if not _is_of_ray(p) and _name(p) != "lapjoint-fork"]


def fork_servers(pid: int) -> list[psutil.Process]:
    return [process for process in psutil.Process(pid).children() if _name(process) == "lapjoint-fork"]


def _name(process: psutil.Process) -> str:
    with suppress(psutil.NoSuchProcess):
        return str(process.name())
    return ""


def _is_of_ray(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        words = process.cmdline()
        return not any("RayWorker" in word for word in words) and any(
            word.startswith("ray::") or "/lapjoint-ray-" in word or "/site-packages/ray/" in word for word in words
        )
    return True


def worker_processes(pid: int | None = None) -> list[psutil.Process]:
    """Those of them that are workers of the process runtime."""
    return [process for process in children(pid) if re.fullmatch(r"lapjoint-\d+", _name(process))]


def has_workers() -> bool:
    """Whether the fork server of this process has any: one file to read, where the system has it."""
    files = [Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children") for server in _servers.values()]
    return any(file.read_text() for file in files if file.exists()) if Path("/proc/self").exists() else True


def shared_memory_names() -> set[str]:
    """Names that lapjoint, or Python's `SharedMemory`, may have made. Other programs of this machine make others."""
    names = {path.name for path in SHARED_MEMORY.iterdir()} if SHARED_MEMORY.is_dir() else set()
    return {name for name in names if "lapjoint" in name or name.startswith("psm_")}
