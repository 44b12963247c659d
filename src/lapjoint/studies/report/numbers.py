"""The numbers behind the figures. Nothing here draws, and nothing needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...server.profile import EXCHANGE_MS

Array = NDArray[np.float64]

WINDOW = 5
"""Steps of the rolling mean: the paper's."""
MOST_POINTS = 2000
"""Of a line in a figure; more cannot be seen and make the page heavy."""


@dataclass(frozen=True)
class Series:
    """A number over time."""

    time: Array
    """s"""
    values: Array


@dataclass(frozen=True)
class Quartiles:
    """How a number was distributed."""

    low: float
    """A quarter is below it."""
    median: float
    high: float


def rolling_mean(values: ArrayLike, window: int = WINDOW) -> Array:
    """The mean of each value and up to window - 1 before it: as long as what is given, and never from the future."""
    numbers = np.asarray(values, float)
    total = np.concatenate([[0.0], np.cumsum(numbers)])
    end = np.arange(1, len(numbers) + 1)
    start = np.maximum(end - window, 0)
    return np.asarray((total[end] - total[start]) / (end - start))


def thin(x: ArrayLike, y: ArrayLike, most: int = MOST_POINTS) -> tuple[Array, Array]:
    """A line of at most so many points: the lowest and the highest of each stretch stay, so that no peak is lost."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    if len(x) <= most:
        return x, y
    kept = []
    for stretch in np.array_split(np.arange(len(x)), max(most // 2, 1)):
        kept += sorted({int(stretch[y[stretch].argmin()]), int(stretch[y[stretch].argmax()])})
    return x[kept], y[kept]


def quartiles(values: ArrayLike) -> Quartiles:
    low, median, high = np.percentile(np.asarray(values, float), [25, 50, 75])
    return Quartiles(float(low), float(median), float(high))


def top_of_axis(lines: list[Array], most: float = 2.0) -> float | None:
    """Where an axis should end so that a few peaks do not flatten the rest; None: it may show everything."""
    values = np.concatenate([line[np.isfinite(line)] for line in lines] or [np.empty(0)])
    if len(values) == 0:
        return None
    usual = float(np.percentile(values, 99))
    return 1.25 * usual if usual > 0 and values.max() > most * usual else None


def duplicated_share(worker_body_count: ArrayLike, body_count: ArrayLike) -> Array:
    """Active bodies of all workers over the bodies of the scene, minus one; of each step."""
    active = np.asarray(worker_body_count, float).sum(axis=1)
    return np.asarray(active / np.maximum(body_count, 1) - 1)


def projected_ms(values: Mapping[str, NDArray[Any]]) -> Array | None:
    """What each step would take if every worker had a core of its own [ms]: the server's part, then the slowest
    worker's CPU time. What workers prepare while the server works counts only where it takes longer than that. Each
    exchange of tight coupling takes EXCHANGE_MS besides.
    """
    cpu = values.get("worker_cpu_ms")
    if cpu is None or cpu.ndim != 2 or cpu.shape[1] == 0:
        return None
    if "server_ms" in values:
        server = np.asarray(values["server_ms"], float)
        prepare = np.asarray(values.get("worker_prepare_ms", np.zeros_like(cpu)), float)
        late = np.maximum(prepare - server[:, None], 0.0)
        exchanges = np.where((cpu > 0).sum(axis=1) > 1, values.get("exchanges", 0), 0)
        return np.asarray(server + (cpu - prepare + late).max(axis=1) + EXCHANGE_MS * exchanges)
    return None
