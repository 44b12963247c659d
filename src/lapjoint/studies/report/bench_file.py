"""Rows of `lapjoint bench --json`, read back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import LapjointError
from ...server.profile import PHASES
from ...system.files import read_file
from ...system.foreign import MOST_DESCRIPTION
from ..step_values import phase_key


@dataclass(frozen=True)
class BenchPoint:
    """What a report needs of a row; docs/bench.md explains the keys."""

    file: Path
    scene: str
    workers: int
    iterations: int | None
    substeps: int | None
    """Of the substep solver, which has no iterations."""
    step_ms: float
    speedup: float
    projected_speedup: float
    cores: int
    runtime: str
    phases_ms: dict[str, float]
    facts: dict[str, object]
    """What else the row has on the scene and how it was run."""

    @property
    def amount(self) -> dict[str, int]:
        """The solver's work, by its name: iterations or substeps."""
        return {"substeps": self.substeps or 1} if self.iterations is None else {"iterations": self.iterations}


FACTS = ("body_count", "joint_count", "engine", "precision", "coupling")


def read_bench(path: Path) -> list[BenchPoint]:
    """The rows of a file, in their order; those of peers and of lapjoint's own ladder are left out."""
    text = read_file(path, MOST_DESCRIPTION)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise LapjointError(f"{path}: no JSON, expected a file of `lapjoint bench --json`") from None
    if not (isinstance(content, list) and content and all(isinstance(row, dict) for row in content)):
        raise LapjointError(f"{path}: no rows of a benchmark, expected a file of `lapjoint bench --json`")
    return [
        _point(path, number, row)
        for number, row in enumerate(content)
        if row.get("peer") is None and row.get("setting") is None
    ]


def _point(path: Path, number: int, row: dict[str, Any]) -> BenchPoint:
    try:
        return BenchPoint(
            file=path,
            scene=str(row["scene"]),
            workers=int(row["workers"]),
            iterations=None if row["iterations"] is None else int(row["iterations"]),
            substeps=None if row.get("substeps") is None else int(row["substeps"]),
            step_ms=float(row["step_ms"]),
            speedup=float(row["speedup"]),
            projected_speedup=float(row["projected_speedup"]),
            cores=int(row["cores"]),
            runtime=str(row["runtime"]),
            phases_ms={phase: float(row[phase_key(phase)]) for phase in PHASES if phase_key(phase) in row},
            facts={name: row[name] for name in FACTS if name in row} | dict(row.get("params") or {}),
        )
    except KeyError as error:
        raise LapjointError(
            f"{path}: row {number} has no {error}, expected a file of `lapjoint bench --json`"
        ) from None
    except (TypeError, ValueError) as error:
        raise LapjointError(f"{path}: row {number}: {error}") from None
