"""Bench: scenes on several counts of workers, measured side by side, and what more cores would make of it.

>>> from lapjoint import scenes
>>> from lapjoint.studies.bench import bench
>>> for row in bench([scenes.build("bowl")], workers=[1, 2, 4], iterations=[50]):
...     print(row.workers, row.step_ms, row.speedup, row.projected_speedup)
"""

from __future__ import annotations

from collections.abc import Sequence

from ...params import Params
from ...scene import Scene
from .plan import BenchPlan
from .progress import OnProgress
from .repetitions import measure, measure_all
from .rows import BenchRow, write_csv, write_json

__all__ = ["BenchPlan", "BenchRow", "OnProgress", "bench", "measure", "measure_all", "write_csv", "write_json"]


def bench(
    scenes: Sequence[Scene],
    workers: Sequence[int] = (1, 2, 4, 8),
    params: Params | None = None,
    *,
    iterations: Sequence[int] | None = None,
    steps: int = 20,
    repetitions: int = 3,
    warmup: int = 200,
) -> list[BenchRow]:
    """Measure scenes on counts of workers; the arguments are those of a BenchPlan."""
    return list(measure(BenchPlan(scenes, workers, params or Params(), iterations, steps, repetitions, warmup)))
