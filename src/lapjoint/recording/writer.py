"""RecordingWriter: takes a sample after each step, and a thread of its own writes it."""

from __future__ import annotations

import atexit
import errno
import json
import queue
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import LapjointError
from ..forks import belongs_here
from ..interrupts import Uninterrupted
from ..params.coupling_choice import traits
from ..scene import STATE_SIZE, Scene
from ..scene.motions import POSE_SIZE
from ..scene.serialize import scene_at, scene_to_bytes
from ..server.incidents import Incident
from ..server.profile import PHASES
from ..simulation import Simulation
from ..step_tables import KEPT, StepTable
from ..step_tables.breaks import JointBreaks
from ..system.shortage import reason, shortage
from ..waits import wait_within
from .changes import ChangeFinder
from .layout import FORMAT, PROFILE_ARRAYS, VERSION, is_of_workers
from .origin import machine, versions
from .place import NewFolder, check_place, check_space
from .store import FIRST_ENTRY, FrameSample, RecordingStore, StepSample

Table = TypeVar("Table", bound=StepTable)

CHUNK_S, PART_S = 0.25, 10.0
"""Seconds between commits: of full chunks, and of parts of chunks. A commit takes some milliseconds."""
QUEUE_BYTES = 64 << 20
"""States that may wait for the disk, at least two frames; then the step waits."""
DISK_S = 300.0
"""How long the disk may take nothing at all [s]."""

NOTHING = np.empty(0, np.int32)
ONCE = ("activation_count", "deactivation_count", "divided")
"""Of the profile: what is done before steps that workers take by themselves, once for all."""


class RecordingWriter:
    """Records a simulation into a new directory.

    >>> with RecordingWriter("run.zarr", simulation, every=10) as writer:
    ...     for _ in range(1000):
    ...         simulation.step()
    ...         writer.add(simulation)

    Every `every`-th step becomes a frame; the profile is kept of every step. `measures` names what `add` is given
    besides: one number per step each, or as many as a dict gives. `contacts` keeps the contacts of each frame. `steps`
    is how many are to come, where that is known: the free space is compared with it.
    """

    def __init__(
        self,
        path: str | Path,
        simulation: Simulation,
        *,
        every: int = 1,
        measures: Sequence[str] | Mapping[str, int] = (),
        contacts: bool = False,
        steps: int | None = None,
    ) -> None:
        if not isinstance(every, int | np.integer) or every < 1:
            raise LapjointError(f"every is {every}, expected a whole number of steps, at least 1")
        self.path = Path(path)
        self._every = int(every)
        self._measures = _checked_measures(measures)
        self._contacts = contacts
        self._has_interface = traits(simulation.params.coupling).exchanges
        self._looked_at: tuple[int, int, int] | None = None
        self._kinds: set[type[StepTable]] = set()
        self._look_for_reports(simulation)
        self._row_counts: dict[type, int] = {}  # of what is reported of single steps, up to the last frame
        self._worker_count = simulation.workers.membership.worker_count
        self._added_count, self._began_at = 0, simulation.step_count
        self._closed = self._error_raised = self._is_stuck = False
        self._error: Exception | None = None
        self._changes = ChangeFinder(simulation.scene)
        scene = scene_to_bytes(scene_at(Scene, simulation.scene, simulation.scene.began_with))
        body_count = simulation.scene.body_count
        check_place(self.path)
        check_space(self.path, len(scene), body_count, None if steps is None else steps // self._every)
        self._queue: queue.Queue[StepSample | None] = queue.Queue(_room(body_count))
        self._thread = threading.Thread(target=self._work, name="lapjoint-recording", daemon=True)
        self._start(self._attributes(simulation), scene, simulation.incidents)
        atexit.register(self.close)
        belongs_here(self, f"the recording {self.path}", lambda own: atexit.unregister(own.close))
        if contacts:
            simulation.contacts_wanted.append(self._wants_contacts)

    def _start(self, attributes: dict[str, Any], scene: bytes, incidents: Sequence[Incident]) -> None:
        """Make the files, and start the thread. Where that fails, nothing is left of them."""
        folder = None
        try:
            folder = NewFolder(self.path, FIRST_ENTRY)
            self._store = RecordingStore(folder, attributes, scene, self._measures, incidents)
            self._thread.start()
        except BaseException as error:
            if folder is not None:
                folder.remove()
            if isinstance(error, OSError) or shortage(error):
                raise LapjointError(f"{self.path}: the recording cannot be written: {reason(error)}") from None
            raise

    def _attributes(self, simulation: Simulation) -> dict[str, Any]:
        params = simulation.params
        return {
            "format": FORMAT,
            "version": VERSION,
            "frame_count": 0,
            "profile_count": 0,
            "complete": False,
            "every": self._every,
            "timestep": simulation.timestep,
            "body_count": simulation.scene.began_with[1],
            "worker_count": self._worker_count,
            "contacts": self._contacts,
            "interface": self._has_interface,
            **{kind.name: kind in self._kinds for kind in KEPT},
            "kinematic_count": len(simulation.scene.motions),
            "phases": list(PHASES),
            "profile": list(PROFILE_ARRAYS),
            "measures": list(self._measures),
            "started": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "params": json.loads(json.dumps(params.options(), default=_plain)),
            "resumed_from": simulation.resumed_from,
            "versions": versions(params.engine),
            "machine": machine(),
        }

    # ---- the step's side -------------------------------------------------------------------------------------------

    def add(self, simulation: Simulation, measures: Mapping[str, ArrayLike] | None = None) -> None:
        """Add the last step. It is copied; the call waits only where the disk is far behind."""
        with Uninterrupted():
            self._add(simulation, [measures or {}])

    @property
    def most_steps(self) -> int:
        """How many steps there are up to the next frame."""
        return self._every - self._added_count % self._every

    def _wants_contacts(self, step_count: int) -> bool:
        """Whether this step becomes a frame, if every step is added."""
        return not self._closed and (step_count - self._began_at) % self._every == 0

    def add_steps(self, simulation: Simulation, measures: Sequence[Mapping[str, ArrayLike]]) -> None:
        """Add all steps that the workers have just taken by themselves (Simulation.step_at_once), with the measures of
        each: no more of them than `most_steps`."""
        if len(measures) > self.most_steps:
            raise LapjointError(f"{self.path}: {len(measures)} steps are added, expected {self.most_steps} at most")
        with Uninterrupted():
            self._add(simulation, measures)

    def _add(self, simulation: Simulation, measures: Sequence[Mapping[str, ArrayLike]]) -> None:
        if self._closed:
            raise LapjointError(f"{self.path}: the recording is closed")
        self._raise_error()
        values = [self._checked_values(one) for one in measures]
        self._added_count += len(values)
        frame = None
        if self._added_count % self._every == 0:
            self._look_for_reports(simulation)
            tables = [self._new_rows(simulation.events.reported(kind)) for kind in KEPT if kind in self._kinds]
            broke = next((table.joint for table in tables if isinstance(table, JointBreaks)), NOTHING)
            self._queue.maxsize = _room(simulation.scene.body_count)
            bodies = np.repeat(simulation.workers.overlap, np.diff(simulation.workers.weight_offset))
            frame = FrameSample(
                simulation.step_count,
                simulation.time,
                simulation.states,
                simulation.scene.alive.copy(),
                simulation.workers.membership.bits.copy(),
                (bodies, simulation.workers.weight_worker.copy(), simulation.workers.weight.copy()),
                simulation.workers.interface if self._has_interface else None,
                simulation.profile.contacts if self._contacts else None,
                tables,
                self._changes.find(simulation.scene, broke),
                simulation.kinematic.states[:, :POSE_SIZE] if simulation.scene.motions else None,
            )
        rows = profile_rows(simulation, len(values))
        for number, (row, own) in enumerate(zip(rows, values, strict=True), 1):
            self._put(StepSample((*row, *own), frame if number == len(values) else None))
        if self._is_stuck:
            self._raise_error()

    def _put(self, sample: StepSample | None) -> None:
        """Into the queue, as soon as there is room in it."""

        def is_in(seconds: float) -> bool:
            with suppress(queue.Full):
                self._queue.put(sample, timeout=seconds)
                return True
            return False

        self._wait(is_in)

    def _wait(self, wait: Callable[[float], bool]) -> None:
        """For the thread. If it gets nothing done, that is an error of writing, and nobody waits for it any more."""
        if not self._is_stuck and not wait_within(DISK_S, wait):
            self._is_stuck = True
            self._error = TimeoutError(errno.ETIMEDOUT, f"the disk has taken nothing for {DISK_S:.3g} s")

    def _end_thread(self) -> None:
        """Wait until it has written what is left, as long as that becomes less."""

        def goes_on(seconds: float) -> bool:
            self._thread.join(seconds)
            return not self._thread.is_alive() or self._queue.qsize() < left

        while self._thread.is_alive() and not self._is_stuck:
            left = self._queue.qsize()
            self._wait(goes_on)

    def _look_for_reports(self, simulation: Simulation) -> None:
        """Note which step tables the parameters ask for, and bodies and joints of the scene, those added since the last
        look included: a simulation may add the first one."""
        scene = simulation.scene
        if scene.extent == self._looked_at:
            return
        (_, body, joint), self._looked_at = self._looked_at or (0, 0, 0), scene.extent
        self._kinds |= {kind for kind in KEPT if kind.asked_by(scene, simulation.params, body, joint) is not None}

    def _new_rows(self, every: Table) -> Table:
        """Of a table, the rows since the last frame; in the first one, all."""
        start = self._row_counts.get(type(every), 0)
        self._row_counts[type(every)] = len(every)
        return every.taken(slice(start, None))

    def close(self) -> None:
        """Write what is left and end the thread. Raises the error of writing, unless it was raised before."""
        atexit.unregister(self.close)
        if not self._closed:
            self._closed = True
            self._put(None)
        self._end_thread()
        if not self._error_raised:
            self._raise_error()

    def __enter__(self) -> RecordingWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except LapjointError as own:
            if error is None:
                raise
            error.add_note(str(own))

    def _raise_error(self) -> None:
        if self._error is None:
            return
        self._error_raised = True
        why = reason(self._error) if isinstance(self._error, OSError | MemoryError) else repr(self._error)
        raise LapjointError(
            f"{self.path}: the recording cannot be written: {why}; its first {self._store.frame_count} frames are kept"
        ) from self._error

    def _checked_values(self, measures: Mapping[str, ArrayLike]) -> list[NDArray[np.float64]]:
        for name in measures.keys() ^ self._measures.keys():
            what = "is missing" if name in self._measures else "was not named when the recording began"
            raise LapjointError(f"measure {name!r} {what}; expected: {', '.join(self._measures) or 'none'}")
        values = []
        for name, count in self._measures.items():
            try:
                shape: Any = () if count == 1 else count
                if is_of_workers(name, count, self._worker_count):
                    shape = -1
                values.append(np.array(measures[name], float).reshape(shape))
            except (TypeError, ValueError):
                kind = "one number" if count == 1 else f"{count} numbers"
                raise LapjointError(f"measure {name!r} is {measures[name]!r}, expected {kind}") from None
        return values

    # ---- the thread's side -----------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            self._write()
        except Exception as error:
            self._error = error
            while not self._is_stuck and self._queue.get() is not None:  # go on taking, so that no step waits forever
                pass
            return
        try:
            self._store.commit(complete=True)
        except Exception as error:
            self._error = error

    def _write(self) -> None:
        """Write samples until the queue ends with None."""
        counted_at, waiting = time.monotonic(), False
        while True:
            if self._is_stuck and self._error is not None:
                raise self._error  # the disk goes on after all, and nobody waits for it any more
            full = False
            with suppress(queue.Empty):
                step = self._queue.get(timeout=PART_S)
                if step is None:
                    return
                full, waiting = self._store.add(step), True
            if waiting and time.monotonic() - counted_at >= (CHUNK_S if full else PART_S):
                self._store.commit()
                counted_at, waiting = time.monotonic(), False


def profile_rows(simulation: Simulation, steps: int) -> list[list[Any]]:
    """The profile of the last steps, a row for each. Where workers took several by themselves, times are the mean of
    all, and what was done once for all is in the first."""
    profile, end = simulation.profile, simulation.step_count
    values = {name: getattr(profile, name) for name in PROFILE_ARRAYS if name not in ("step_count", "phases_ms")}
    values |= {"phases_ms": list(profile.phases_ms.values()), "byte_count": values["byte_count"] // steps}
    rows = []
    for number in range(steps):
        values["step_count"] = end - steps + number + 1
        if profile.series is not None and steps > 1:
            values |= {name: getattr(profile.series, name)[number] for name in ("residual", "substeps", "exchanges")}
        rows.append([values[name] for name in PROFILE_ARRAYS])
        values |= dict.fromkeys(ONCE, 0)
    return rows


def _room(body_count: int) -> int:
    """How many frames may wait for the disk."""
    return min(max(QUEUE_BYTES // (8 * STATE_SIZE * body_count + 1), 2), 256)


def _plain(value: object) -> object:
    """Values that JSON does not have: NumPy's numbers as Python's, anything else as text."""
    return value.item() if isinstance(value, np.generic) else str(value)


def _checked_measures(measures: Sequence[str] | Mapping[str, int]) -> dict[str, int]:
    """How many numbers each measure has per step."""
    counts = dict(measures) if isinstance(measures, Mapping) else dict.fromkeys(measures, 1)
    for name, count in counts.items():
        if not (isinstance(name, str) and re.fullmatch(r"[a-z][a-z0-9_]*", name)):
            raise LapjointError(f"measure {name!r}: expected a name of small letters, digits and underscores")
        if name in PROFILE_ARRAYS:
            raise LapjointError(f"measure {name!r}: the profile has that name already")
        if not isinstance(count, int | np.integer) or count < 1:
            raise LapjointError(f"measure {name!r} has {count} numbers per step, expected at least 1")
    return counts
