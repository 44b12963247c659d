"""CheckpointWriter: a checkpoint every so many steps, the newest few kept."""

from __future__ import annotations

import os
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays.state import flatten
from ..errors import LapjointError
from ..forks import belongs_here
from ..recording.origin import machine, versions
from ..recording.place import check_parents
from ..scene.serialize import scene_to_bytes
from ..simulation import Simulation
from ..system.folder_lock import NAME as LOCK_NAME
from ..system.folder_lock import FolderLock
from ..system.shortage import reason
from .layout import checkpoint_files, file_name, step_of, unfinished_files, write_checkpoint


class CheckpointWriter:
    """Writes checkpoints of a simulation into a directory: a new or empty one, or the one that it goes on from.

    >>> writer = CheckpointWriter("run.checkpoints", simulation, every=500)
    >>> simulation.on_step(writer.after_step)

    Nobody else can write into it until the simulation is closed, or its process ends. A run that a failure stops leaves
    one more. Of the checkpoints in the directory the newest `keep` stay. `end` is the step to which the run is to go,
    for whoever resumes it.
    """

    def __init__(
        self, path: str | Path, simulation: Simulation, *, every: int = 0, keep: int = 3, end: int | None = None
    ) -> None:
        for name, value, least in (("every", every, 0), ("keep", keep, 1)):
            if not isinstance(value, int | np.integer) or value < least:
                raise LapjointError(f"checkpoint {name} is {value}, expected a whole number, at least {least}")
        self.path = Path(path)
        self._every, self._keep, self._end = int(every), int(keep), end
        check_checkpoint_place(self.path, simulation)
        self._lock = FolderLock(self.path, "another run writes checkpoints there")
        try:
            check_checkpoint_place(self.path, simulation)  # somebody may have come in between
            for left in unfinished_files(self.path):
                left.unlink()
        except BaseException as error:
            self._lock.release()
            if isinstance(error, OSError):
                raise LapjointError(f"{self.path}: checkpoints cannot be written: {reason(error)}") from None
            raise
        simulation.at_close.append(weakref.finalize(simulation, self._lock.release))
        belongs_here(self, f"the writer of {self.path}", lambda own: own._lock.leave())
        simulation.before_stop.append(self.save)
        self._scene, self._extent = np.empty(0, np.uint8), (-1, -1, -1)
        self.saved_step: int | None = None
        """Of the last checkpoint that was written."""

    def most_steps(self, simulation: Simulation) -> int:
        """How many steps there are up to the next checkpoint."""
        return self._every - simulation.step_count % self._every if self._every else sys.maxsize

    def after_step(self, simulation: Simulation) -> None:
        """Write a checkpoint if one is due."""
        if self._every and simulation.step_count % self._every == 0:
            self.save(simulation)

    def save(self, simulation: Simulation) -> Path:
        """Write a checkpoint now. If that fails, those before it are as they were."""
        path = self.path / file_name(simulation.step_count)
        try:
            arrays, parts = flatten(simulation.state())
            if self._extent != simulation.scene.extent:
                self._scene = np.frombuffer(scene_to_bytes(simulation.scene), np.uint8)
                self._extent = simulation.scene.extent
            self._lock.check()
            write_checkpoint(path, self._describe(simulation, parts), {"scene": self._scene, **arrays})
            self.saved_step = simulation.step_count
            for old in checkpoint_files(self.path)[: -self._keep]:
                old.unlink(missing_ok=True)
        except (OSError, MemoryError) as error:
            raise LapjointError(
                f"{path}: the checkpoint cannot be written: {reason(error)}; {self._what_is_left()}"
            ) from error
        return path

    def _what_is_left(self) -> str:
        """In words, after a checkpoint could not be written."""
        try:
            self._lock.check()
            files = checkpoint_files(self.path)
        except OSError:
            files = []
        if not files:
            self.saved_step = None
            return "there is none"
        return f"the last one is {files[-1]}"

    def _describe(self, simulation: Simulation, parts: dict[str, Any]) -> dict[str, Any]:
        return {
            "parts": parts,
            "step_count": simulation.step_count,
            "began_with": simulation.scene.began_with,
            "params": simulation.params.options(),
            "end": self._end,
            "every": self._every,
            "keep": self._keep,
            "versions": versions(simulation.params.engine),
            "machine": machine(),
        }


def check_checkpoint_place(path: Path, simulation: Simulation | None = None) -> None:
    """Refuse a directory that is taken, before anything starts."""
    check_parents(path)
    if not path.exists():
        return
    if not os.access(path, os.W_OK):
        raise LapjointError(f"{path}: no permission to write there")
    if not path.is_dir():
        raise LapjointError(f"{path}: is a file, expected a directory for checkpoints")
    files = checkpoint_files(path)
    others = [one for one in path.iterdir() if one.name != LOCK_NAME and one not in files]
    if files:
        from_here = simulation.resumed_from if simulation is not None else None
        if from_here is None or Path(str(from_here["checkpoint"])).parent.resolve() != path.resolve():
            raise LapjointError(
                f"{path}: has checkpoints of another run, expected a new or empty directory; `lapjoint resume` goes on "
                "with that run"
            )
        newest = step_of(files[-1]) or 0
        if newest > int(from_here["step_count"]):
            raise LapjointError(
                f"{path}: has a later checkpoint ({files[-1].name}) than the one gone on from; expected another "
                "directory, or that file out of the way"
            )
    elif others and not unfinished_files(path):
        raise LapjointError(f"{path}: is not empty, expected a new or empty directory")
