"""The arrays of a recording: samples in, files out. One file, written last, holds the counts of valid rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..algorithms.membership import WORD
from ..engines import Contacts
from ..scene import STATE_SIZE
from ..scene.motions import POSE_SIZE
from ..server.incidents import Incident
from ..server.profile import PHASES
from ..step_tables import KEPT, StepTable
from .changes import Changes
from .growing import GrowingArray, write_group
from .layout import (
    BODY_ARRAYS,
    CHUNK_FRAMES,
    CONTACT_ARRAYS,
    CONTACT_OFFSET,
    FRAME_ARRAYS,
    GROWTH_ARRAYS,
    GROWTH_OFFSET,
    INTERFACE_ARRAYS,
    INTERFACE_OFFSET,
    KINEMATIC_POSES,
    LIFE_ARRAYS,
    LIFE_OFFSET,
    LIST_ROWS,
    OVERLAP_ARRAYS,
    OVERLAP_OFFSET,
    PROFILE_ARRAYS,
    block_size,
    is_of_workers,
    table_arrays,
    table_offset,
)
from .place import NewFolder

ROW_CHUNK_BYTES, LIST_CHUNK_BYTES, SCENE_CHUNK_BYTES = 1 << 15, 1 << 18, 1 << 24
"""Sizes of chunks before compression: a row per step or frame, many rows per frame, the scene."""


FIRST_ENTRY = "profile"
"""The entry of a recording's directory that is made first, and shows that it is taken."""


@dataclass(frozen=True)
class FrameSample:
    """What a frame is made of."""

    step_count: int
    time: float
    states: NDArray[np.float64]
    alive: NDArray[np.bool_]
    """Which bodies are there."""
    bits: NDArray[np.uint64]
    overlap: Sequence[NDArray[Any]]
    """Body, worker and weight: a row for each worker of each overlap body."""
    interface: NDArray[np.int32] | None
    """With tight coupling."""
    contacts: Contacts | None
    tables: Sequence[StepTable] = ()
    """What was reported since the last frame, of kinds that the run asks for."""
    changes: Changes | None = None
    """Since the last frame, where there were any."""
    kinematic_poses: NDArray[np.float64] | None = None
    """Where there are kinematic bodies."""


@dataclass(frozen=True)
class StepSample:
    """What a step leaves in a recording."""

    row: tuple[Any, ...]
    """Its profile and measures, in the order of the arrays."""
    frame: FrameSample | None


class RecordingStore:
    """A new recording. `measures` has how many numbers each measure has."""

    def __init__(
        self,
        folder: NewFolder,
        attributes: Mapping[str, Any],
        scene: bytes,
        measures: Mapping[str, int],
        incidents: Sequence[Incident] = (),
    ) -> None:
        self.path = folder.path
        self._folder = folder
        self.frame_count = 0
        """Frames that are committed."""
        self.incidents = incidents
        """Those so far; more may be appended."""
        self._attributes = dict(attributes)
        self._worker_count = int(attributes["worker_count"])
        self._arrays: dict[str, GrowingArray] = {}
        self._frame_total = 0
        self._body_count = int(attributes["body_count"])
        self._last_bits, self._last_workers = np.empty(0, np.uint64), np.empty(0, np.int64)
        # What is small waits in lists until it is committed: to append each number to its array would take longer.
        self._step_rows: list[tuple[Any, ...]] = []
        self._step_names: list[str] = []
        self._frame_rows: list[tuple[Any, ...]] = []
        self._frame_names = ["step_count", "time"]
        self._lists: dict[str, list[NDArray[Any]]] = {}
        self._list_sizes: dict[str, int] = {}
        for group in (FIRST_ENTRY, folder.make("measures").name):
            write_group(self.path / group, {})
        content = GrowingArray(folder.make("scene"), "uint8", (), [min(len(scene), SCENE_CHUNK_BYTES)], ["byte"])
        content.append(np.frombuffer(scene, np.uint8))
        content.flush(complete=True)
        self._make_arrays(measures)
        self.commit()

    def _make_arrays(self, measures: Mapping[str, int]) -> None:
        bodies, workers = self._attributes["body_count"], self._attributes["worker_count"]
        sizes = {"body": bodies, "state": STATE_SIZE, "worker": workers, "phase": len(PHASES)}
        for name, (dtype, dimensions) in FRAME_ARRAYS.items():
            self._make(name, dtype, "frame", {dimension: sizes[dimension] for dimension in dimensions})
        if self._attributes["kinematic_count"]:
            rest = {"kinematic": int(self._attributes["kinematic_count"]), "pose": POSE_SIZE}
            self._make(KINEMATIC_POSES, "float64", "frame", rest)
        for name, (dtype, dimension) in PROFILE_ARRAYS.items():
            self._make(f"profile/{name}", dtype, "step", {dimension: sizes[dimension]} if dimension else {})
        for name, count in measures.items():
            several = count > 1 or is_of_workers(name, count, workers)
            self._make(f"measures/{name}", "float64", "step", {f"{name}_number": count} if several else {})
        offsets = {OVERLAP_OFFSET: OVERLAP_ARRAYS}
        if self._attributes["interface"]:
            offsets[INTERFACE_OFFSET] = INTERFACE_ARRAYS
        if self._attributes["contacts"]:
            offsets[CONTACT_OFFSET] = CONTACT_ARRAYS
        offsets |= {table_offset(kind): table_arrays(kind) for kind in KEPT if self._attributes[kind.name]}
        for offset, arrays in offsets.items():
            self._make_lists(offset, arrays)
        self._step_names = [name for name in self._arrays if "/" in name]
        self._worker_names = {f"profile/{name}" for name, (_, along) in PROFILE_ARRAYS.items() if along == "worker"}
        self._worker_names |= {f"measures/{name}" for name in measures if is_of_workers(name, measures[name], workers)}

    def _make_lists(self, offset: str, arrays: Mapping[str, str]) -> None:
        """Make arrays of lists; frames of before have nothing in them."""
        self._append_rows()
        self._make(offset, "int64", "frame_edge", {})
        self._arrays[offset].append(np.zeros(1 + self._frame_total, np.int64))
        self._list_sizes[offset] = 0
        self._frame_names.append(offset)
        for name, dtype in arrays.items():
            self._make(name, dtype, name.partition("_")[0], LIST_ROWS.get(name, {}), LIST_CHUNK_BYTES)
            self._lists[name] = []

    def _make(
        self, name: str, dtype: str, first: str, rest: Mapping[str, int], chunk_bytes: int = ROW_CHUNK_BYTES
    ) -> None:
        row = list(rest.values())
        row_bytes = np.dtype(dtype).itemsize * int(np.prod(row))
        chunk = [max(1, chunk_bytes // max(1, row_bytes)), *row]
        if "body" in rest:
            chunk[:2] = CHUNK_FRAMES, block_size(rest["body"])
        self._arrays[name] = GrowingArray(self._folder.make(name), dtype, row, chunk, [first, *rest])

    def add(self, step: StepSample) -> bool:
        """Add a step; returns whether a chunk of frames is full now."""
        self._step_rows.append(step.row)
        if step.frame is None:
            return False
        frame = step.frame
        self._body_count = len(frame.alive)
        for name in BODY_ARRAYS:
            self._arrays[name].widen(self._body_count, fill=False)
        used = self._arrays["states"].blocks_with(frame.alive)
        with np.errstate(over="ignore"):  # beyond float32 is infinite
            self._arrays["states"].append(frame.states[None], used)
        if not np.array_equal(frame.bits, self._last_bits):
            self._last_bits, self._last_workers = frame.bits, first_workers(frame.bits)
        self._arrays["first_worker"].append(self._last_workers[None], used)
        if frame.kinematic_poses is not None:
            self._arrays[KINEMATIC_POSES].append(frame.kinematic_poses[None])
        self._add_list(OVERLAP_OFFSET, OVERLAP_ARRAYS, frame.overlap)
        if frame.interface is not None:
            self._add_list(INTERFACE_OFFSET, INTERFACE_ARRAYS, (frame.interface,))
        if frame.contacts is not None:
            columns = (frame.contacts.bodies, frame.contacts.point_count, frame.contacts.depth)
            self._add_list(CONTACT_OFFSET, CONTACT_ARRAYS, columns)
        for table in frame.tables:
            self._add_list(table_offset(type(table)), table_arrays(type(table)), tuple(vars(table).values()))
        if frame.changes is not None:
            rows, growth = frame.changes, frame.changes.growth
            self._add_list(LIFE_OFFSET, LIFE_ARRAYS, (rows.step, rows.kind, rows.number))
            self._add_list(GROWTH_OFFSET, GROWTH_ARRAYS, (growth,))
        self._frame_rows.append((frame.step_count, frame.time, *self._list_sizes.values()))
        self._frame_total += 1
        return self._frame_total % CHUNK_FRAMES == 0

    def _add_list(self, offset: str, arrays: Mapping[str, str], columns: Sequence[NDArray[Any]]) -> None:
        if offset not in self._list_sizes:
            self._make_lists(offset, arrays)
        self._list_sizes[offset] += len(columns[0])
        for name, column in zip(arrays, columns, strict=True):
            self._lists[name].append(column)

    def commit(self, complete: bool = False) -> None:
        """Commit everything added so far; `complete` if nothing comes any more.

        First every array, last the one file with the counts of valid rows: whatever happens in between, the
        recording is what it was before.
        """
        self._append_rows()
        for name, parts in self._lists.items():
            if parts:
                self._arrays[name].append(np.concatenate(parts))
                parts.clear()
        for array in self._arrays.values():
            array.flush(complete)
        counts = {"frame_count": self._frame_total, "profile_count": self._arrays[self._step_names[0]].row_count}
        counts |= {"worker_count": self._worker_count, "body_count": self._body_count}
        tables = {kind.name: table_offset(kind) in self._list_sizes for kind in KEPT}
        self._attributes |= counts | tables | {"complete": complete, "changes": LIFE_OFFSET in self._list_sizes}
        self._attributes["events"] = [incident.to_dict() for incident in tuple(self.incidents)]
        write_group(self.path, self._attributes)
        self.frame_count = self._frame_total

    def _append_rows(self) -> None:
        """Append what waits of each step and frame to its arrays."""
        for names, rows in ((self._step_names, self._step_rows), (self._frame_names, self._frame_rows)):
            if rows:
                for name, column in zip(names, zip(*rows, strict=True), strict=True):
                    self._arrays[name].append(self._table(name, column))
                rows.clear()

    def _table(self, name: str, column: Sequence[Any]) -> NDArray[Any]:
        """Return values of several steps as rows. Where there is a number for every worker, rows are as long as there
        were workers at most: a worker that is not there has zeros."""
        if name not in self._worker_names:
            return np.array(column)
        self._worker_count = max(self._worker_count, *map(len, column))
        self._arrays[name].widen(self._worker_count)
        table = np.zeros((len(column), self._worker_count), np.asarray(column[0]).dtype)
        for row, values in zip(table, column, strict=True):
            row[: len(values)] = values
        return table


def first_workers(bits: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The lowest worker of each body; 0 for one that has none."""
    word = np.argmax(bits != 0, axis=1) if bits.shape[1] > 1 else np.zeros(len(bits), np.int64)
    chosen = bits[np.arange(len(bits)), word]
    lowest = chosen & (~chosen + np.uint64(1))
    below = np.where(chosen == 0, lowest, lowest - np.uint64(1))  # ones below the lowest bit
    return np.asarray(word * WORD + np.bitwise_count(below), np.int64)
