"""A Zarr array that grows, written by whole files that appear at once or not at all.

Zarr's own writing takes one to two milliseconds of Python per array, which the step would feel. So chunks and
descriptions are written here, as version 3 of the Zarr format has them; they are read by Zarr.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..system.shortage import check_room
from .description import LEVEL, describe_array, seal, with_checksum
from .layout import PART, ROOT, chunk_file

ROOM = 4
"""Times a block's size: what Blosc takes at most to compress it. It does not look whether it gets that."""


def replace_file(path: str, content: Any) -> None:
    """Write a file beside its place and move it there: a reader, or a process killed now, never sees a part of it."""
    part = path + PART
    try:
        with open(part, "wb", buffering=0) as file:
            left = memoryview(content)
            while left:
                left = left[file.write(left) :]
        os.replace(part, path)
    except OSError:
        with suppress(OSError):
            os.unlink(part)
        raise


def write_group(folder: Path, attributes: dict[str, Any]) -> None:
    """Describe a directory as a Zarr group."""
    content = {"zarr_format": 3, "node_type": "group", "attributes": seal(attributes) if attributes else {}}
    replace_file(f"{folder}/{ROOT}", json.dumps(content, indent=1).encode())


class GrowingArray:
    """An array in an empty directory: `append` adds rows, and they are valid once `flush` has returned. `chunk` is a
    chunk's shape. Rows that are longer than a chunk is wide are cut into blocks."""

    def __init__(
        self, folder: Path, dtype: str, row_shape: Sequence[int], chunk: Sequence[int], dimensions: Sequence[str]
    ) -> None:
        from numcodecs.blosc import Blosc

        self.row_count = 0
        self._folder = folder
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._row_shape = tuple(row_shape)
        self._chunk = tuple(chunk)
        # A number changes little from one frame to the next: with frames innermost, states take a third less.
        self._order = (*range(1, len(self._chunk)), 0) if len(self._chunk) > 2 else None
        self._dimensions = list(dimensions)
        self._blocks: dict[int, NDArray[Any]] = {}  # of the chunk at hand
        self._blosc = Blosc("lz4", LEVEL, Blosc.SHUFFLE)
        self._flushed_count = 0
        self._described: tuple[int, ...] = ()
        self._describe(0)

    def append(self, rows: ArrayLike, used: Iterable[int] | None = None) -> None:
        """Copy rows into the current chunk; a chunk that is full is written to its file. Rows may be zeros but for the
        blocks `used`: one that no row of a chunk uses has no file."""
        given = np.asarray(rows)
        if given.shape[1:] != self._row_shape:
            raise ValueError(f"{self._folder.name}: rows of {given.shape[1:]} numbers, expected {self._row_shape}")
        places = list(self._places() if used is None else used)
        size = self._chunk[0]
        done = 0
        while done < len(given):
            filled = self.row_count % size
            count = min(size - filled, len(given) - done)
            for place in places:
                part = self._part(given[done : done + count], place)
                if place not in self._blocks:
                    self._blocks[place] = np.zeros(self._chunk, self._dtype)
                self._blocks[place][(slice(filled, filled + count), *(slice(length) for length in part.shape[1:]))] = (
                    part
                )
            self.row_count += count
            done += count
            if filled + count == size:
                self._write_chunk(self.row_count // size - 1)
                self._blocks.clear()

    def blocks_with(self, columns: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The blocks that hold any of these columns."""
        starts = np.arange(0, len(columns), self._chunk[1])
        return np.flatnonzero(np.logical_or.reduceat(columns, starts)) if len(starts) else starts

    def widen(self, width: int, fill: bool = True) -> None:
        """Make rows longer from now on; rows before have zeros there, and files of them unless `fill` is false."""
        if width <= self._row_shape[0]:
            return
        before = len(self._places())
        self._row_shape = (width, *self._row_shape[1:])
        zeros = np.zeros(self._chunk, self._dtype)
        for number in range(self.row_count // self._chunk[0] if fill else 0):
            for place in self._places()[before:]:
                self._write_block(number, place, zeros)

    def flush(self, complete: bool = False) -> None:
        """Write what is left of the last chunk, and the new shape. Rows that were there before stay as they were.

        Unless the array is complete, its shape ends with its last chunk, so that it seldom changes.
        """
        size = self._chunk[0]
        if self.row_count != self._flushed_count:
            self._write_chunk(self.row_count // size)
            self._flushed_count = self.row_count
        self._describe(self.row_count if complete else -(-self.row_count // size) * size)

    def _places(self) -> range:
        """Blocks, by their places along the second axis."""
        return range(1 if len(self._chunk) == 1 else -(-self._row_shape[0] // self._chunk[1]))

    def _part(self, rows: NDArray[Any], place: int) -> NDArray[Any]:
        """What a block has of rows."""
        if len(self._chunk) == 1:
            return rows
        return rows[:, place * self._chunk[1] : (place + 1) * self._chunk[1]]

    def _write_chunk(self, number: int) -> None:
        for place, block in self._blocks.items():
            self._write_block(number, place, block)

    def _write_block(self, number: int, place: int, block: NDArray[Any]) -> None:
        if self._order is not None:
            block = block.transpose(self._order)
        check_room(ROOM * block.nbytes)
        content = with_checksum(self._blosc.encode(np.ascontiguousarray(block)))
        index = (number,) if len(self._chunk) == 1 else (number, place, *[0] * (len(self._chunk) - 2))
        replace_file(f"{self._folder}/{chunk_file(*index)}", content)

    def _describe(self, row_count: int) -> None:
        shape = (row_count, *self._row_shape)
        if shape == self._described:
            return
        content = describe_array(shape, self._dtype, self._chunk, self._order, self._dimensions)
        replace_file(f"{self._folder}/{ROOT}", content)
        self._described = shape
