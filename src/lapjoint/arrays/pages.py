"""Memory that is given back: of rows at the beginning or in the middle of an array, which nobody needs any more."""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import cache
from typing import Any

from numpy.typing import NDArray

DONT_NEED, REMOVE, NO_HUGE_PAGE = 4, 9, 15  # linux/mman.h


def release(rows: NDArray[Any], shared: bool = False) -> None:
    """Give back the memory of these rows, a part of an array in one piece, as far as it is whole pages; they are zeros
    then, or what they were. With memory that processes share, for all of them."""
    _advise(rows, REMOVE if shared else DONT_NEED)


def small_pages(rows: NDArray[Any]) -> None:
    """Use small pages for an array of which rows are going to be released: Linux would put huge ones in the place of
    many small ones, empty ones too."""
    _advise(rows, NO_HUGE_PAGE)


def _advise(rows: NDArray[Any], advice: int) -> None:
    start, end = rows.ctypes.data, rows.ctypes.data + rows.nbytes
    start, end = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE, end // mmap.PAGESIZE * mmap.PAGESIZE
    if end > start and sys.platform == "linux" and rows.flags.c_contiguous:
        _libc().madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), advice)


def trim() -> None:
    """Give back memory that was freed and lies between what is still used."""
    if sys.platform == "linux" and hasattr(_libc(), "malloc_trim"):
        _libc().malloc_trim(0)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
