"""Arrays of a recording, read back. What was checked is what is decoded: each file is opened once, here, where it is a
file in the recording's directory."""

from __future__ import annotations

import functools
import math
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from ..errors import LapjointError
from ..system.foreign import MOST_DESCRIPTION, read_foreign
from ..system.shortage import check_room, reason, short_of
from .description import read_description
from .layout import ROOT, chunk_file

_HEAD = struct.Struct("<4B3I")
"""Of what Blosc has compressed: versions, flags, size of a number; then bytes before compression, of a block, and after
compression."""
_CHECKSUM_SIZE = 4


class StoredArray:
    """An array in the recording at `root`. What is wrong with its files is a LapjointError without the root's name."""

    def __init__(self, root: Path, name: str) -> None:
        self._root, self._name = root, name
        try:
            described = read_description(read_foreign(root / name / ROOT, MOST_DESCRIPTION, root))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
            raise LapjointError(f"{name}: {ROOT}: {reason(error)}") from None
        self.shape, self.dtype, self.chunk = described.shape, described.dtype, described.chunk
        self._described = described

    def read(self, start: int, stop: int, first: int = 0, end: int | None = None) -> NDArray[Any]:
        """Rows, all of whose files have to be there; all columns, or these."""
        if stop > self.shape[0]:
            raise LapjointError(f"{self._name} has {self.shape[0]} rows, expected {stop}")
        columns = [] if len(self.shape) == 1 else [range(first, self.shape[1] if end is None else end)]
        for _, file in self._files(range(start, stop), *columns):
            if not os.path.lexists(file):  # before there is an array of as many rows as somebody says
                raise LapjointError(f"{self._name}/{file.name} is missing")
        with short_of(f"{self._name}: {stop - start:,} rows"):
            rows = np.empty((stop - start, *map(len, columns), *self.shape[2:]), self.dtype)
        for corner, file in self._files(range(start, stop), *columns):
            chunk = self._decode(file)
            into, out_of = [], []
            for low, size, wanted in zip(corner, self.chunk, (range(start, stop), *columns), strict=False):
                begin, until = max(low, wanted.start), min(low + size, wanted.stop)
                into.append(slice(begin - wanted.start, until - wanted.start))
                out_of.append(slice(begin - low, until - low))
            rows[tuple(into)] = chunk[tuple(out_of)]
        return rows

    def _files(self, *wanted: range) -> Iterator[tuple[tuple[int, ...], Path]]:
        """The chunks that hold wanted rows, or columns of them: their first row and column, and their files."""
        sizes = self.chunk
        rows, *columns = (
            range(one.start // size, -(-one.stop // size)) for one, size in zip(wanted, sizes, strict=False)
        )
        for number in rows:
            for block in columns[0] if columns else (0,):
                index = (number, block, *[0] * (len(sizes) - 2))[: len(sizes)]
                corner = tuple(k * size for k, size in zip(index, sizes, strict=True))
                yield corner, self._root / self._name / chunk_file(*index)

    def _decode(self, file: Path) -> NDArray[Any]:
        """A chunk. Blosc believes what its head says, and reads and writes beyond: so that is checked."""
        described = self._described
        holds = described.dtype.itemsize * math.prod(self.chunk)
        try:
            content = read_foreign(file, holds + _HEAD.size + _CHECKSUM_SIZE, self._root)
            size = len(content) - _CHECKSUM_SIZE
            if size < _HEAD.size:
                raise ValueError(f"{max(size, 0)} bytes, expected at least {_HEAD.size}")
            *_, held, _, compressed = _HEAD.unpack_from(content)
            if (held, compressed) != (holds, size):
                raise ValueError(f"{held} bytes in {compressed}, expected {holds} in {size}")
            body = memoryview(content)[:size]
            if int(google_crc32c.value(bytes(body))).to_bytes(_CHECKSUM_SIZE, "little") != content[size:]:
                raise ValueError("its checksum is wrong")
            check_room(holds)
            values = np.frombuffer(_blosc().decode(body), described.dtype)
        except FileNotFoundError:
            raise LapjointError(f"{self._name}/{file.name} is missing") from None
        except (OSError, ValueError, RuntimeError, MemoryError) as error:
            raise LapjointError(f"{self._name}/{file.name}: {reason(error)}") from None
        order = described.order or range(len(self.chunk))
        return values.reshape([self.chunk[axis] for axis in order]).transpose(np.argsort(order))


@functools.cache
def _blosc() -> Any:
    from numcodecs.blosc import Blosc

    return Blosc()
