"""Arrays out of an .npz that anyone may have written: only those asked for, and no more memory than the file can mean.

A zip of some kilobytes can hold gigabytes of zeros. So a member that is not asked for is never inflated, the sizes of
all others are added up before any is, and each must be as large as its own header says.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

SUFFIX = ".npy"
MOST_INFLATED = 100
"""How many times its own size a file may inflate to. Lapjoint's own scenes, deflated, come to 35 at most."""
SMALL = 1 << 26
"""What any file may inflate to [bytes]."""


def read_archive(content: bytes, is_wanted: Callable[[str], bool]) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz whose names are wanted. Raises ValueError or zipfile.BadZipFile where it cannot be read."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {member.filename.removesuffix(SUFFIX): member for member in archive.infolist()}
        wanted = {name: member for name, member in members.items() if is_wanted(name)}
        limit = max(SMALL, MOST_INFLATED * len(content))
        size = sum(member.file_size for member in wanted.values())
        if size > limit:
            raise ValueError(f"it would inflate to {size:,} bytes, expected {limit:,} at most")
        for name, member in wanted.items():
            # Of other ways to compress, zipfile inflates whole blocks, however large they become.
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(f"{name} is compressed in a way that is not read, expected it stored or deflated")
            with archive.open(member) as file:
                expected = _size_by_header(file)
            if member.file_size != expected:
                raise ValueError(f"{name} has {member.file_size:,} bytes, expected {expected:,} by its header")
        return {name: _read(archive, member) for name, member in wanted.items()}


def _size_by_header(file: IO[bytes]) -> int:
    """How large an .npy file is that begins so."""
    read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(npy.read_magic(file))
    if read_header is None:
        raise ValueError("an .npy file of another version than 1.0 and 2.0")
    shape, _, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError("an .npy file of objects")
    return file.tell() + math.prod(shape) * dtype.itemsize


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(member) as file:
        array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
        return np.asarray(array)
