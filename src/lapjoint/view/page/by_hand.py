"""A partition made by hand: bodies are given to workers, change by change, and every change can be undone."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import LapjointError
from ...server.partition import write_partition

Ids = NDArray[np.int32]


class Draft:
    """A partition that is being made, at first of the bodies that a scene begins with. Browsers change it in their
    threads, and the page adds bodies in its own."""

    def __init__(self, partition: ArrayLike, worker_count: int) -> None:
        self.partition = np.array(partition, np.int32)
        self.worker_count = worker_count
        self._began_with = len(self.partition)
        self._lock = threading.Lock()
        self._changes: list[tuple[Ids, Ids]] = []
        """Bodies of each change, and the workers they had before it."""

    def give(self, body_ids: ArrayLike, worker: int) -> int:
        """Give bodies to a worker; returns how many of them had another one before."""
        if not 0 <= worker < self.worker_count:
            raise LapjointError(f"worker {worker}: expected 0 to {self.worker_count - 1}")
        partition = self.partition.copy()
        partition[np.asarray(body_ids, np.int32)] = worker
        return self.replace(partition)

    def replace(self, partition: ArrayLike) -> int:
        """Take over a partition, of all bodies or the first ones; returns how many had another worker before."""
        with self._lock:
            wanted = np.asarray(partition, np.int32)[: len(self.partition)]
            ids = np.flatnonzero(self.partition[: len(wanted)] != wanted).astype(np.int32)
            if len(ids):
                self._changes.append((ids, self.partition[ids]))
                self.partition[ids] = wanted[ids]
            return len(ids)

    def undo(self) -> bool:
        """Take back the last change; returns False if there is none."""
        with self._lock:
            if not self._changes:
                return False
            ids, before = self._changes.pop()
            self.partition[ids] = before
            return True

    def add(self, workers: ArrayLike) -> None:
        """More bodies, which have these workers; no change to undo."""
        with self._lock:
            self.partition = np.concatenate([self.partition, np.asarray(workers, np.int32)])

    def restart(self) -> None:
        """Leave out all bodies that were added."""
        with self._lock:
            self.partition = self.partition[: self._began_with]
            kept = [(ids[ids < self._began_with], before[ids < self._began_with]) for ids, before in self._changes]
            self._changes = [change for change in kept if len(change[0])]

    def body_counts(self, alive: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Living bodies of each worker."""
        return np.bincount(self.partition[: len(alive)][alive], minlength=self.worker_count)

    def save(self, folder: Path, name: str) -> Path:
        """Write the file that `run --partition` takes: bodies that were added are not in it. Only plain names: whoever
        holds the controls may sit at another machine."""
        path = folder / checked_name(name)
        if path.is_symlink():
            raise LapjointError(f"{path}: is a link, expected a file")
        write_partition(path, self.partition[: self._began_with])
        return path


def checked_name(name: str) -> str:
    """The name of a partition file without a directory."""
    if not re.fullmatch(r"\w[\w. -]{0,80}\.txt", name):
        raise LapjointError(f"{name!r}: expected the name of a file that ends in .txt, without a directory")
    return name


def is_interface(partition: Ids, edges: Ids) -> NDArray[np.bool_]:
    """Which edges, (n, 2), have ends with different workers."""
    return np.asarray(partition[edges[:, 0]] != partition[edges[:, 1]])


def interface_counts(partition: Ids, joints: Ids, contacts: Ids) -> tuple[int, int]:
    """Interface edges that are joints, and that are contacts."""
    return int(is_interface(partition, joints).sum()), int(is_interface(partition, contacts).sum())
