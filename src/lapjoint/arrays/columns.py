"""Tables that grow: one NumPy array per column, rows appended one at a time or in bulk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .pages import release, small_pages


class Columns:
    """Named arrays of equal length. Appending doubles the room when it runs out; reading a column is a view.

    Read a column as an attribute (`bodies.position`); write into the view to change values in place.
    """

    def __init__(self, layout: Mapping[str, tuple[tuple[int, ...], Any]]) -> None:
        self._layout = dict(layout)
        self._arrays: dict[str, NDArray[Any]] = {
            name: np.empty((0, *shape), dtype) for name, (shape, dtype) in self._layout.items()
        }
        self._count = 0
        self._released: list[slice] = []

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return iter(self._layout)

    def __getattr__(self, name: str) -> NDArray[Any]:
        try:
            return self.__dict__["_arrays"][name][: self.__dict__["_count"]]  # type: ignore[no-any-return]
        except KeyError:
            raise AttributeError(name) from None

    def append(self, count: int, values: Mapping[str, Any]) -> range:
        """Add `count` rows; every value must broadcast to its column. Returns the new row numbers."""
        start, end = self._count, self._count + count
        if count == 0:
            return range(start, end)
        for name, (shape, dtype) in self._layout.items():
            array = self._arrays[name]
            if len(array) < end:
                grown = np.empty((max(end, 2 * len(array), 16), *shape), dtype)
                if self._released:
                    small_pages(grown)
                grown[:start] = array[:start]
                self._arrays[name] = array = grown
                for rows in self._released if array.ndim > 1 else ():
                    release(array[rows])
            array[start:end] = values[name]
        self._count = end
        return range(start, end)

    def adopt(self, values: Mapping[str, NDArray[Any]]) -> None:
        """Take whole columns, in place of what is there; those of the right type are not copied. KeyError with the
        name of a column that is missing or does not fit."""
        count = len(next(iter(values.values())))
        for name, (shape, dtype) in self._layout.items():
            if values[name].shape != (count, *shape):
                raise KeyError(name)
            self._arrays[name] = np.ascontiguousarray(values[name], dtype)
        self._count = count

    def cut(self, count: int) -> None:
        """Keep the first rows only."""
        self._count = count

    def release(self, first: int, last: int) -> None:
        """Give back the memory of rows that nobody reads any more, of columns that have several numbers in a row."""
        if any(rows.start <= first and last <= rows.stop for rows in self._released):
            return
        if self._released and self._released[-1].stop == first:  # with the page that both have a part of
            first = self._released.pop().start
        self._released.append(slice(first, last))
        for array in self._arrays.values():
            if array.ndim > 1 and array.flags.writeable:
                release(array[first:last])

    def share(self, other: Columns) -> None:
        """Begin with another's rows, in the same memory until one is added here."""
        self._arrays = {name: getattr(other, name) for name in self._layout}
        self._count = len(other)

    def views(self) -> dict[str, NDArray[Any]]:
        """All columns, by name, as they are in memory. They keep it alive, should the table move to another."""
        return {name: getattr(self, name) for name in self._layout}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All columns, by name: copies, but for those that nobody can change."""
        columns = {name: getattr(self, name) for name in self._layout}
        return {name: array.copy() if array.flags.writeable else array for name, array in columns.items()}
