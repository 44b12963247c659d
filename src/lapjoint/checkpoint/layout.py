"""The file of a checkpoint: a head with a checksum, then named arrays and a description (packing.py).

A file comes into being under another name and is renamed once it is whole and on the disk. So a file of the right name
is whole, unless somebody tore it later; and then its size or its checksum shows it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.packing import pack_arrays, unpack_arrays
from ..errors import LapjointError, shortened
from ..system.foreign import machine_memory, open_foreign
from ..system.shortage import reason

FORMAT = "lapjoint checkpoint"
VERSION = 1
HEAD_SIZE = 128
SUFFIX, PART = ".checkpoint", ".part"

_HEAD = re.compile(rb"lapjoint checkpoint (\d+) sha256 ([0-9a-f]{64}) size (\d+) *\n")


def file_name(step_count: int) -> str:
    return f"step-{step_count:09d}{SUFFIX}"


def step_of(path: Path) -> int | None:
    """The step in a file's name; None for another file."""
    found = re.fullmatch(rf"step-(\d+){re.escape(SUFFIX)}", path.name)
    return int(found[1]) if found else None


def checkpoint_files(directory: Path) -> list[Path]:
    """The checkpoints in a directory, by their steps."""
    found = [(step, path) for path in directory.iterdir() if (step := step_of(path)) is not None]
    return [path for _, path in sorted(found)]


def unfinished_files(directory: Path) -> list[Path]:
    """What writers have left that were killed."""
    return [path for path in directory.iterdir() if path.name.endswith(SUFFIX + PART)]


def write_checkpoint(path: Path, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a checkpoint under its name at once or not at all. OSError where it cannot be written."""
    part = path.with_name(path.name + PART)
    part.unlink(missing_ok=True)  # of an attempt that was killed; whatever it is, nothing is written through it
    try:
        with open(part, "xb") as file:
            file.write(bytes(HEAD_SIZE))
            digest, size = hashlib.sha256(), 0
            for data in pack_arrays(arrays, description):
                digest.update(data)
                file.write(data)
                size += len(data)
            head = f"{FORMAT} {VERSION} sha256 {digest.hexdigest()} size {size}".encode()
            file.seek(0)
            file.write(head.ljust(HEAD_SIZE - 1) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)  # the new name too
    finally:
        os.close(directory)


def read_checkpoint(path: Path, within: Path | None = None) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and description of a whole checkpoint; a LapjointError for anything else. `within` is the folder
    it was found in."""
    try:
        with open_foreign(path, within) as file:
            wanted, size = _read_head(path, file)
            data = np.empty(size, np.uint8)
            if file.readinto(data.data) != size:
                raise LapjointError(f"{path}: damaged checkpoint (it is cut off)")
    except (OSError, MemoryError) as error:
        raise LapjointError(f"{path}: {reason(error)}") from None
    if hashlib.sha256(data.data).hexdigest() != wanted:
        raise LapjointError(f"{path}: damaged checkpoint (its checksum is wrong)")
    try:
        arrays, description = unpack_arrays(data)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise LapjointError(f"{path}: damaged checkpoint ({shortened(error)})") from None
    return arrays, description


def _read_head(path: Path, file: BufferedReader) -> tuple[str, int]:
    """Checksum of what follows, and its size, which is that of the file."""
    head = file.read(HEAD_SIZE)
    if not head.startswith(FORMAT.encode() + b" "):
        raise LapjointError(f"{path}: not a lapjoint checkpoint")
    found = _HEAD.fullmatch(head)
    if found is None:
        raise LapjointError(f"{path}: damaged checkpoint (its first {HEAD_SIZE} bytes are not a head)")
    version, size = int(found[1]), int(found[3])
    if version != VERSION:
        raise LapjointError(f"{path}: checkpoint version {version}, this lapjoint reads {VERSION}")
    there = os.fstat(file.fileno()).st_size - HEAD_SIZE
    if there != size:
        raise LapjointError(f"{path}: damaged checkpoint ({there} bytes after its head, expected {size})")
    if size > machine_memory():
        raise LapjointError(f"{path}: is {size:,} bytes large, expected no more than this machine has memory")
    return found[2].decode(), size
