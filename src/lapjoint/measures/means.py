"""Means, largest and last values over many steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


class Means:
    """Sums over steps, of numbers and of arrays."""

    def __init__(self) -> None:
        self.count = 0
        self.sums: dict[str, Any] = {}

    def add(self, steps: int = 1, **values: Any) -> None:
        """Add what these are of so many steps."""
        self.count += steps
        for name, value in values.items():
            self.sums[name] = _sum(self.sums.get(name, 0.0), value)

    def mean(self, name: str) -> float:
        return float(self.sums.get(name, 0.0)) / max(self.count, 1)

    def means(self, name: str) -> list[float]:
        return [float(value) for value in np.atleast_1d(self.sums.get(name, 0.0)) / max(self.count, 1)]


class Measured:
    """Mean, largest and last of each measure, over the steps in which it is a number; None where there is none."""

    def __init__(self) -> None:
        self._count: dict[str, int] = {}
        self._sum: dict[str, Any] = {}
        self._max: dict[str, Any] = {}
        self._last: dict[str, Any] = {}

    def add(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            if not np.isfinite(value).all():
                continue
            first = name not in self._count
            self._count[name] = 1 if first else self._count[name] + 1
            self._sum[name] = value if first else _sum(self._sum[name], value)
            self._max[name] = value if first else np.maximum(*_as_long(self._max[name], value))
            self._last[name] = value

    def mean(self, name: str) -> Any:
        return _plain(self._sum[name] / self._count[name]) if name in self._count else None

    def max(self, name: str) -> Any:
        return _plain(self._max.get(name))

    def last(self, name: str) -> Any:
        return _plain(self._last.get(name))


def _as_long(a: Any, b: Any) -> tuple[Any, Any]:
    """Pad the shorter of two arrays with a number for every worker, where the number of workers has changed."""
    if np.ndim(a) == 0 or np.ndim(b) == 0 or len(a) == len(b):
        return a, b
    length = max(len(a), len(b))
    return np.pad(a, (0, length - len(a))), np.pad(b, (0, length - len(b)))


def _sum(a: Any, b: Any) -> Any:
    a, b = _as_long(a, b)
    return a + b


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
