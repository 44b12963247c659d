"""The buffer of a glTF file: arrays, and the accessors and views by which they are found."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOAT, UNSIGNED = 5126, 5125
VERTICES, INDICES = 34962, 34963
TYPES = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}


class Buffer:
    """Arrays in one piece of memory, each aligned for its type."""

    def __init__(self) -> None:
        self.accessors: list[dict[str, Any]] = []
        self.views: list[dict[str, Any]] = []
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, array: NDArray[Any], target: int | None = None, *, bounds: bool = False) -> int:
        """An array with a view of its own; the number of its accessor. `bounds` has the file say its least and largest
        values, as it must of positions and times."""
        return self.add_rows(array[None], target, bounds=bounds)[0]

    def add_rows(self, table: NDArray[Any], target: int | None = None, *, bounds: bool = False) -> list[int]:
        """Many arrays of one size in one view: the numbers of their accessors."""
        whole = np.ascontiguousarray(table, "<u4" if table.dtype.kind in "iu" else "<f4")
        columns = 1 if whole.ndim == 2 else whole.shape[2]
        view: dict[str, Any] = {"buffer": 0, "byteOffset": self._size, "byteLength": whole.nbytes}
        if target is not None:
            view["target"] = target
        self.views.append(view)
        self._pieces.append(whole.tobytes())  # every element has four bytes: all starts are aligned
        self._size += whole.nbytes
        first = len(self.accessors)
        for row in range(len(whole)):
            accessor: dict[str, Any] = {
                "bufferView": len(self.views) - 1,
                "byteOffset": row * whole.nbytes // len(whole),
                "componentType": UNSIGNED if whole.dtype.kind == "u" else FLOAT,
                "count": whole.shape[1],
                "type": TYPES[columns],
            }
            if bounds:
                flat = whole[row].reshape(-1, columns)
                accessor |= {"min": flat.min(axis=0).tolist(), "max": flat.max(axis=0).tolist()}
            self.accessors.append(accessor)
        return list(range(first, len(self.accessors)))

    @property
    def content(self) -> bytes:
        return b"".join(self._pieces)
