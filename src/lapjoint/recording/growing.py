"""A Zarr array that grows, written by whole files that appear at once or not at all.

Zarr's own writing takes one to two milliseconds of Python per array, which the step would feel. So chunks and
descriptions are written here, as version 3 of the Zarr format has them; they are read by Zarr.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .description import LEVEL, describe_array, seal, with_checksum
from .layout import ROOT, chunk_file


def replace_file(path: str, content: Any) -> None:
    """Write a file beside its place and move it there: a reader, or a process killed now, never sees a part of it."""
    part = path + ".part"
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
    """An array: `append` adds rows, and they are valid once `flush` has returned. `chunk` is a chunk's shape."""

    def __init__(
        self, folder: Path, dtype: str, row_shape: Sequence[int], chunk: Sequence[int], dimensions: Sequence[str]
    ) -> None:
        from numcodecs.blosc import Blosc

        self.row_count = 0
        self._folder = folder
        self._row_shape = tuple(row_shape)
        self._chunk = tuple(chunk)
        # A number changes little from one frame to the next: with frames innermost, states take a third less.
        self._order = (*range(1, len(self._chunk)), 0) if len(self._chunk) > 2 else None
        self._dimensions = list(dimensions)
        self._buffer = np.zeros((self._chunk[0], *self._row_shape), np.dtype(dtype).newbyteorder("<"))
        self._blosc = Blosc("lz4", LEVEL, Blosc.SHUFFLE)
        self._flushed_count = 0
        self._described_count = -1
        folder.mkdir()
        self._describe(0)

    def append(self, rows: ArrayLike) -> None:
        """Copy rows into the current chunk; a chunk that is full is written to its file."""
        given = np.asarray(rows)
        size = self._chunk[0]
        done = 0
        while done < len(given):
            filled = self.row_count % size
            count = min(size - filled, len(given) - done)
            self._buffer[filled : filled + count] = given[done : done + count]
            self.row_count += count
            done += count
            if filled + count == size:
                self._write_chunk(self.row_count // size - 1)

    def widen(self, width: int) -> None:
        """Make rows longer from now on; rows before have zeros there."""
        missing = width - self._row_shape[0]
        if missing <= 0:
            return
        block_count = -(-self._row_shape[0] // self._chunk[1])
        self._row_shape, self._described_count = (width,), -1
        zeros = np.zeros_like(self._buffer, shape=(len(self._buffer), missing))
        kept = np.concatenate([self._buffer, zeros], axis=1)
        self._buffer = np.zeros_like(kept)
        for number in range(self.row_count // self._chunk[0]):
            self._write_chunk(number, block_count)
        self._buffer = kept

    def flush(self, complete: bool = False) -> None:
        """Write what is left of the last chunk, and the new shape. Rows that were there before stay as they were.

        Unless the array is complete, its shape ends with its last chunk, so that it seldom changes.
        """
        size = self._chunk[0]
        if self.row_count != self._flushed_count:
            filled = self.row_count % size
            if filled:
                self._buffer[filled:] = 0
                self._write_chunk(self.row_count // size)
            self._flushed_count = self.row_count
        self._describe(self.row_count if complete else -(-self.row_count // size) * size)

    def _write_chunk(self, number: int, first_block: int = 0) -> None:
        for index, block in list(self._blocks())[first_block:]:
            if self._order is not None:
                block = block.transpose(self._order)
            content = with_checksum(self._blosc.encode(np.ascontiguousarray(block)))
            replace_file(f"{self._folder}/{chunk_file(number, *index)}", content)

    def _blocks(self) -> Iterator[tuple[tuple[int, ...], NDArray[Any]]]:
        """The buffer in pieces along its second axis, filled up to the shape of a chunk."""
        if len(self._chunk) == 1:
            yield (), self._buffer
            return
        width, rest = self._chunk[1], len(self._chunk) - 2
        for place, start in enumerate(range(0, self._row_shape[0], width)):
            block = self._buffer[:, start : start + width]
            missing = width - block.shape[1]
            if missing:
                block = np.concatenate([block, np.zeros_like(block, shape=(len(block), missing, *block.shape[2:]))], 1)
            yield (place, *[0] * rest), block

    def _describe(self, row_count: int) -> None:
        if row_count == self._described_count:
            return
        shape = (row_count, *self._row_shape)
        content = describe_array(shape, self._buffer.dtype, self._chunk, self._order, self._dimensions)
        replace_file(f"{self._folder}/{ROOT}", content)
        self._described_count = row_count
