"""Recording: a run read back. Nothing is loaded before it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays.checks import is_finite
from ..engines import Contacts
from ..errors import LapjointError, shortened
from ..params import Params
from ..params.params import FIELDS
from ..scene import STATE_SIZE, Scene
from ..scene.motions import POSE_SIZE
from ..scene.serialize import scene_from_bytes
from ..server.events import Events, order_events
from ..server.frame import Frame
from ..step_tables import KEPT, Of, StepTable
from ..step_tables.breaks import JointBreaks
from ..step_tables.hits import Hits
from ..step_tables.sensor_events import SensorEvents
from ..step_tables.touches import Touches
from .attributes import MOST_BODIES, MOST_WORKERS, Attributes
from .decoding import StoredArray
from .layout import (
    BODY_ARRAYS,
    CHUNK_FRAMES,
    CONTACT_OFFSET,
    FRAME_ARRAYS,
    GROWTH_OFFSET,
    INTERFACE_OFFSET,
    KINEMATIC_POSES,
    LIFE_KINDS,
    LIFE_OFFSET,
    OVERLAP_OFFSET,
    ROOT,
    table_arrays,
    table_offset,
)
from .lives import Lives, Rows

if TYPE_CHECKING:
    import pandas

Array = NDArray[np.float64]
Table = TypeVar("Table", bound=StepTable)
_DIMENSIONS = {
    "states": FRAME_ARRAYS["states"][1],
    "first_worker": FRAME_ARRAYS["first_worker"][1],
    "profile/phases_ms": ("phase",),
}
"""What must have as many columns as the attributes say."""


class Recording:
    """A recorded run.

    >>> recording = Recording("run.zarr")
    >>> recording.at_time(1.5).states[:, 2].max()
    >>> recording.profile["overlap_count"].mean()
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        found = Attributes(self.path)
        self.frame_count = found.count("frame_count")
        self.body_count = found.count("body_count", 0, MOST_BODIES)
        """Bodies of all times, those included that were removed."""
        self.worker_count = found.count("worker_count", 1, MOST_WORKERS)
        self.every = found.count("every", 1)
        """Steps from one frame to the next."""
        self.timestep = found.duration("timestep")
        """s"""
        self.complete = found.flag("complete")
        """Whether the recording was closed. If not, it is still being written, or its end is missing."""
        self.started = found.text("started")
        """When the recording began, by the clock, in ISO 8601."""
        self.has_contacts = found.flag("contacts")
        self.has_interface = found.flag("interface")
        """Whether the run was coupled tightly, so that its frames have an interface in place of an overlap."""
        self.kinds = [kind for kind in KEPT if found.flag(kind.name)]
        """Kinds of step tables that the run asked for."""
        self.has_changes = found.flag("changes")
        """Whether bodies or joints were added or removed while it ran."""
        self.kinematic_count = found.count("kinematic_count", 0, MOST_BODIES)
        """Kinematic bodies of the scene, whose poses the frames have."""
        self.incidents = found.events("events")
        """Failures, quarantines and changes of the number of workers."""
        self.versions: dict[str, str] = found.table("versions")
        self.machine = found.machine("machine")
        self.resumed_from: dict[str, str | int] | None = found.optional_table("resumed_from")
        """Checkpoint and step that the run went on from, if it did not start with the scene."""
        self._params = found.table("params")
        self.phases = found.names("phases")
        """What the columns of `profile["phases_ms"]` are."""
        step_count = found.count("profile_count")
        profile, measures = found.names("profile"), found.names("measures")
        self.profile: Mapping[str, NDArray[Any]] = _Columns(self, "profile", profile, step_count)
        """Times and counters by name, a row for every step."""
        self.measures: Mapping[str, NDArray[Any]] = _Columns(self, "measures", measures, step_count)
        """What else was measured in every step, by name."""
        self._opened: dict[str, StoredArray] = {}
        self._chunk: tuple[int, NDArray[np.float32]] = (-1, np.empty(0, np.float32))

    # ---- the run -----------------------------------------------------------------------------------------------------

    @cached_property
    def scene(self) -> Scene:
        """All bodies and joints of all times, those included that were removed."""
        content = self._open("scene")
        start, growth = self.read("scene", 0, content.shape[0]).tobytes(), list(self._growth())
        scene = scene_from_bytes(Scene, start, str(self.path), growth)
        if scene.body_count != self.body_count:
            raise self._damaged(f"{ROOT}: body_count is {self.body_count}, expected the scene's, {scene.body_count}")
        return scene

    def _growth(self) -> Iterator[NDArray[np.uint8]]:
        """What was added to the scene, frame by frame."""
        if self.has_changes:
            edges = self._offsets(GROWTH_OFFSET)
            content = self.read("growth_byte", 0, int(edges[-1]))
            for i in np.flatnonzero(np.diff(edges)).tolist():
                yield content[edges[i] : edges[i + 1]]

    @property
    def params(self) -> Params:
        """Parameters of the run; those that this lapjoint does not know are left out."""
        known = {name: self._params[name] for name in FIELDS if name in self._params}
        try:
            return Params.from_options(**known)
        except LapjointError as error:
            raise self._damaged(f"{ROOT}: params: {error}") from None

    # ---- frames ------------------------------------------------------------------------------------------------------

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        """Steps taken up to each frame."""
        return self.read("step_count", 0, self.frame_count)

    @cached_property
    def times(self) -> Array:
        """Simulated time of each frame [s]."""
        return self.read("time", 0, self.frame_count)

    def frame(self, i: int) -> Frame:
        """Return frame number `i`; negative numbers count from the end."""
        i = self._index(i)
        number = i // CHUNK_FRAMES
        if self._chunk[0] != number:  # the next frame asked for is likely a neighbour
            start = number * CHUNK_FRAMES
            self._chunk = number, self.read("states", start, min(start + CHUNK_FRAMES, self.frame_count))
        states = self._chunk[1][i % CHUNK_FRAMES].astype(np.float64)
        states[~self.alive(i)] = 0.0
        return Frame(int(self.steps[i]), float(self.times[i]), states)

    def at_time(self, time: float) -> Frame:
        """The frame nearest to a simulated time [s]."""
        if not is_finite(time):
            raise LapjointError(f"{self.path}: time is {time}, expected a finite number of seconds")
        if self.frame_count == 0:
            raise LapjointError(f"{self.path}: the recording has no frames")
        return self.frame(int(np.abs(self.times - time).argmin()))

    def track(self, body: int) -> Array:
        """States of one body in all frames, (frame_count, 13)."""
        if not (isinstance(body, int | np.integer) and 0 <= body < self.body_count):
            raise LapjointError(f"{self.path}: no body {body}, expected 0 to {self.body_count - 1}")
        states = np.zeros((self.frame_count, STATE_SIZE))
        first, end = self._body_lives.span(int(body))
        end = min(end, self.frame_count)
        if first < end:
            states[first:end] = self._read_columns("states", first, end, int(body), int(body) + 1)[:, 0]
        return states

    def membership(self, i: int) -> NDArray[np.bool_]:
        """Which workers simulated which bodies, (body_count, worker_count); none those that are not there."""
        i = self._index(i)
        first = self._numbers("first_worker", i, i + 1, self.worker_count)[0]
        body, worker = self._overlap(i)
        table = np.zeros((self.body_count, self.worker_count), bool)
        table[np.arange(self.body_count), first] = True
        table[body, worker] = True
        table[~self.alive(i)] = False
        return table

    def weights(self, i: int) -> Array:
        """Blend weights, (body_count, worker_count); rows sum to one, those of bodies that are not there to zero."""
        i = self._index(i)
        table = self.membership(i).astype(float)
        table[self._overlap(i)] = self.read("overlap_weight", *self.read(OVERLAP_OFFSET, i, i + 2))
        table[~self.alive(i)] = 0.0
        return table

    def _overlap(self, i: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Overlap bodies and their workers, a row for each worker of each body."""
        start, stop = self.read(OVERLAP_OFFSET, i, i + 2)
        body = self._numbers("overlap_body", start, stop, self.body_count)
        return body, self._numbers("overlap_worker", start, stop, self.worker_count)

    def interface(self, i: int) -> NDArray[np.int32]:
        """Interface bodies, ascending: those with constraints between workers. None with blend."""
        i = self._index(i)
        if not self.has_interface:
            return np.empty(0, np.int32)
        start, stop = self.read(INTERFACE_OFFSET, i, i + 2)
        bodies = self._numbers("interface_body", start, stop, self.body_count)
        return np.asarray(bodies[self.alive(i)[bodies]])

    def reported(self, kind: type[Table], i: int = -1) -> Table:
        """All that has been reported of a kind up to a frame, the last one unless given: see
        simulation.events.reported."""
        i = self._index(i)
        if kind not in self.kinds:
            return kind.none()
        stop = int(self.read(table_offset(kind), i + 1, i + 2)[0])
        columns = []
        for name, one in zip(table_arrays(kind), fields(kind), strict=True):
            values, of = self.read(name, 0, stop), one.metadata["of"]
            if of is not None:
                statics = -MOST_BODIES if of is Of.CONTACT else 0
                joints = self.scene.joint_count if of is Of.JOINT else 0
                ends = {Of.STEP: MOST_BODIES, Of.JOINT: joints}
                values = self._numbers(
                    name, 0, stop, of if isinstance(of, int) else ends.get(of, self.body_count), statics
                )
            columns.append(values)
        return kind(*columns)

    def joint_breaks(self, i: int = -1) -> JointBreaks:
        """Joints that have broken up to a frame, the last one unless given: see
        simulation.events.joint_breaks."""
        return self.reported(JointBreaks, i)

    def hits(self, i: int = -1) -> Hits:
        """Contacts that have hit up to a frame, the last one unless given: see
        simulation.events.hits."""
        return self.reported(Hits, i)

    def touches(self, i: int = -1) -> Touches:
        """Touches that began, ended or hit up to a frame, the last one unless given: see Simulation.touches."""
        return self.reported(Touches, i)

    def sensor_events(self, i: int = -1) -> SensorEvents:
        """Bodies that have entered sensors up to a frame, the last one unless given, and left them: see
        Simulation.sensor_events."""
        return self.reported(SensorEvents, i)

    def static_poses(self, i: int) -> Array:
        """Positions and quaternions of all static bodies, (static_count, 7); only those of kinematic ones change."""
        i = self._index(i)
        statics = self.scene.statics
        poses = np.concatenate([statics.position, statics.quaternion], axis=1)
        if self.kinematic_count:
            rows = self.read(KINEMATIC_POSES, i, i + 1)[0]
            if rows.shape != (len(self.scene.motions), POSE_SIZE):
                raise self._damaged(f"{KINEMATIC_POSES} has other rows than the scene's kinematic bodies")
            poses[self.scene.kinematic_ids] = rows
        return poses

    def contacts(self, i: int, worker: int | None = None) -> Contacts:
        """Contacts of the frame's step as it began, all or those of one worker: both bodies are active there."""
        i = self._index(i)
        if not self.has_contacts:
            raise LapjointError(f"{self.path}: recorded without contacts; RecordingWriter(contacts=True) keeps them")
        if worker is not None and not 0 <= worker < self.worker_count:
            raise LapjointError(f"{self.path}: no worker {worker}, expected 0 to {self.worker_count - 1}")
        start, stop = self.read(CONTACT_OFFSET, i, i + 2)
        bodies = self._numbers("contact_bodies", start, stop, self.body_count, -MOST_BODIES)
        if bodies.shape[1:] != (2,):
            raise self._damaged(f"contact_bodies has rows of {bodies.shape[1:]}, expected two bodies")
        point_count, depth = self.read("contact_point_count", start, stop), self.read("contact_depth", start, stop)
        if worker is not None:
            active = self.membership(i)[:, worker]
            there = active[bodies[:, 0]] & ((bodies[:, 1] < 0) | active[bodies[:, 1]])
            bodies, point_count, depth = bodies[there], point_count[there], depth[there]
        return Contacts(bodies, point_count, depth.astype(np.float64))

    def __len__(self) -> int:
        return self.frame_count

    def __iter__(self) -> Iterator[Frame]:
        return (self.frame(i) for i in range(self.frame_count))

    def __repr__(self) -> str:
        return f"Recording({str(self.path)!r}: {self.frame_count} frames of {self.body_count} bodies)"

    # ---- who is there ------------------------------------------------------------------------------------------------

    def alive(self, i: int) -> NDArray[np.bool_]:
        """Which bodies are there in a frame, by number. States of all others are zeros."""
        return self._body_lives.there(self._index(i))

    def joint_alive(self, i: int) -> NDArray[np.bool_]:
        """Which joints hold in a frame, by number: they are there, and have neither broken nor been removed."""
        return self._joint_lives.there(self._index(i))

    @property
    def first_step(self) -> NDArray[np.int32]:
        """How many steps had been taken when each body was added; 0 for those that the scene began with."""
        return self._body_lives.first_step.copy()

    @property
    def last_step(self) -> NDArray[np.int32]:
        """How many steps had been taken when each body was removed; the largest int32 where it was not."""
        return self._body_lives.last_step.copy()

    @property
    def joint_first_step(self) -> NDArray[np.int32]:
        """How many steps had been taken when each joint was added."""
        return self._joint_lives.first_step.copy()

    @property
    def joint_last_step(self) -> NDArray[np.int32]:
        """How many steps had been taken before the one in which each joint broke, or when it was removed."""
        return self._joint_lives.last_step.copy()

    @property
    def began_with(self) -> tuple[int, int]:
        """Bodies and joints that the scene began with."""
        made = len(self._body_lives.made.number), len(self._joint_lives.made.number)
        return self.body_count - made[0], self.scene.joint_count - made[1]

    def living_counts(self, steps: ArrayLike) -> NDArray[np.int64]:
        """How many bodies took part in each of these steps, which count from 1."""
        lives = self._body_lives
        came, went = (np.searchsorted(np.sort(ends), steps) for ends in (lives.first_step, lives.last_step))
        return np.asarray(came - went)

    def events(self, i: int = -1) -> Events:
        """What has happened up to a frame, the last one unless given: see
        simulation.events.all."""
        i = self._index(i)
        breaks, hits = self.joint_breaks(i), self.hits(i)
        made, removed = self._body_lives.made.up_to(i), self._body_lives.removed.up_to(i)
        return order_events(
            made=(made.step, made.number),
            removed=(removed.step, removed.number),
            broke=(breaks.step, breaks.joint),
            hit=(hits.step, np.arange(len(hits), dtype=np.int32)),
        )

    @cached_property
    def _body_lives(self) -> Lives:
        return self._lives("body", self.body_count, Rows.none())

    @cached_property
    def _joint_lives(self) -> Lives:
        broken = Rows.none()
        if JointBreaks in self.kinds and self.frame_count:
            breaks = self.joint_breaks()
            broken = Rows(self._frames_of(self._offsets(table_offset(JointBreaks))), breaks.step, breaks.joint)
        return self._lives("joint", self.scene.joint_count, broken)

    def _lives(self, what: str, count: int, broken: Rows) -> Lives:
        made, removed = (self._life.get(f"{what} {kind}", Rows.none()) for kind in ("made", "removed"))
        gone = Rows(*(np.concatenate(pair) for pair in zip(vars(removed).values(), vars(broken).values(), strict=True)))
        try:
            return Lives(count, made, gone)
        except ValueError as error:
            raise self._damaged(f"life_number: {what}: {error}") from None

    @cached_property
    def _life(self) -> dict[str, Rows]:
        """What came and went, by kind."""
        if not self.has_changes:
            return {}
        edges = self._offsets(LIFE_OFFSET)
        stop = int(edges[-1])
        kind = self._numbers("life_kind", 0, stop, len(LIFE_KINDS))  # so many there are, or it is refused
        frame = self._frames_of(edges)
        step, number = self.read("life_step", 0, stop), self.read("life_number", 0, stop)
        return {
            name: Rows(frame[kind == place], step[kind == place], number[kind == place])
            for place, name in enumerate(LIFE_KINDS)
        }

    def _offsets(self, name: str) -> NDArray[np.int64]:
        """Where the rows of each frame begin, and where the last ones end."""
        edges = self.read(name, 0, self.frame_count + 1)
        if edges[0] != 0 or (np.diff(edges) < 0).any():
            raise self._damaged(f"{name} goes back, expected numbers from 0 up")
        return edges

    def _frames_of(self, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """The frame of each row."""
        return np.repeat(np.arange(self.frame_count), np.diff(edges))

    # ---- tables ------------------------------------------------------------------------------------------------------

    def to_pandas(self) -> pandas.DataFrame:
        """Profile and measures as a table: a row for every step, a column for every number."""
        try:
            import pandas
        except ImportError:
            raise LapjointError("to_pandas needs pandas: pip install pandas") from None
        table: dict[str, NDArray[Any]] = {}
        for columns in (self.profile, self.measures):
            for name, values in columns.items():
                if values.ndim == 1:
                    table[name] = values
                    continue
                for k in range(values.shape[1]):
                    table[f"{name}_{self.phases[k] if name == 'phases_ms' else k}"] = values[:, k]
        return pandas.DataFrame(table).set_index("step_count")

    # ---- arrays ------------------------------------------------------------------------------------------------------

    def read(self, name: str, start: int, stop: int) -> NDArray[Any]:
        """Rows of one array of the recording, as stored."""
        array = self._open(name)
        if name in BODY_ARRAYS and start < stop:
            return self._read_bodies(name, array, start, stop)
        if start >= stop:
            return np.empty((0, *array.shape[1:]), array.dtype)
        return self._read_columns(name, start, stop)

    def _read_bodies(self, name: str, array: StoredArray, start: int, stop: int) -> NDArray[Any]:
        """Rows with a column for every body; zeros where blocks of bodies have no file, because nobody was there."""
        if not self.has_changes and self.body_count:
            return self._read_columns(name, start, stop, 0, self.body_count)
        rows, width = array.chunk[:2]
        values = np.zeros((stop - start, self.body_count, *array.shape[2:]), array.dtype)
        for chunk in range(start - start % rows, stop, rows):
            low, high = max(chunk, start), min(chunk + rows, stop)
            for first, end in self._body_lives.runs(low, high, width):
                values[low - start : high - start, first:end] = self._read_columns(name, low, high, first, end)
        return values

    def _read_columns(self, name: str, start: int, stop: int, first: int = 0, end: int | None = None) -> NDArray[Any]:
        """Rows of an array whose files all have to be there; all columns, or these."""
        try:
            return self._open(name).read(start, stop, first, end)
        except LapjointError as error:
            raise self._damaged(error) from None

    def _numbers(self, name: str, start: int, stop: int, end: int, low: int = 0) -> NDArray[Any]:
        """Rows of an array of numbers of bodies or workers, which are below `end`."""
        values = self.read(name, start, stop)
        wrong = values[(values < low) | (values >= end)]
        if wrong.size:
            raise self._damaged(f"{name} has {wrong[0]}, expected {low} to {end - 1}")
        return values

    def _open(self, name: str) -> StoredArray:
        if name not in self._opened:
            try:
                array = StoredArray(self.path, name)
            except LapjointError as error:
                raise self._damaged(error) from None
            sizes = {"body": self.body_count, "state": STATE_SIZE, "phase": len(self.phases)}
            expected = [sizes[dimension] for dimension in _DIMENSIONS.get(name, ())]
            found = list(array.shape[1:])
            if expected and name in BODY_ARRAYS and not self.complete:  # it may have more than was committed
                found[:1] = [min(size, self.body_count) for size in found[:1]]
            if expected and found != expected:
                raise self._damaged(f"{name} has rows of {list(array.shape[1:])} numbers, expected {expected}")
            self._opened[name] = array
        return self._opened[name]

    def _damaged(self, reason: object) -> LapjointError:
        return LapjointError(f"{self.path}: damaged recording ({shortened(reason)})")

    def _index(self, i: int) -> int:
        count = self.frame_count
        if not (isinstance(i, int | np.integer) and -count <= i < count):
            raise LapjointError(f"{self.path}: no frame {i}, the recording has {count} frames")
        return int(i) % count


class _Columns(Mapping[str, NDArray[Any]]):
    """Arrays with a row for every step, read when asked for."""

    def __init__(self, recording: Recording, group: str, names: list[str], row_count: int) -> None:
        self._recording, self._group, self._row_count = recording, group, row_count
        self._names = names

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise KeyError(name)
        return self._recording.read(f"{self._group}/{name}", 0, self._row_count)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"{self._group} of {self._row_count} steps: {', '.join(self._names)}"
