"""The report's tables: where runs come from, and their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...params import Params
from ..titles import count_of
from .accuracy import ERRORS
from .bench_file import BenchPoint
from .numbers import Series
from .runs import Run, plain, words_of
from .speedup import SpeedupLine

NONE = "-"
SHOWN = (
    "workers",
    "coupling",
    "growth_depth",
    "search_depth",
    "iterations",
    "timestep",
    "precision",
    "engine",
    "runtime",
)
"""Parameters with a column of their own; others are named where they are not at their defaults."""
MAIN_ERRORS = ("joint_gap_max", "penetration_max", "one_step_error", "residual")
"""Those with a column; figures show all."""


@dataclass(frozen=True)
class Table:
    headings: list[str]
    rows: list[list[str]]

    @staticmethod
    def of(records: Sequence[dict[str, str]]) -> Table:
        """A column for every key, in their order; a dash where a record has none."""
        headings = list(dict.fromkeys(key for record in records for key in record))
        return Table(headings, [[record.get(key, NONE) for key in headings] for record in records])

    def without_shared(self, kept: str) -> tuple[list[tuple[str, str]], Table]:
        """What all rows have in common, and the rest as a table. The column `kept` stays."""
        columns = list(zip(*self.rows, strict=True))
        is_shared = [
            name != kept and len(set(column)) == 1 for name, column in zip(self.headings, columns, strict=True)
        ]
        names = list(zip(self.headings, columns, is_shared, strict=True))
        left = [number for number, shared in enumerate(is_shared) if not shared]
        rest = Table([self.headings[n] for n in left], [[row[n] for n in left] for row in self.rows])
        return [(name, column[0]) for name, column, shared in names if shared], rest


# ---- where runs come from ----------------------------------------------------------------------------------------


def run_origins(runs: Sequence[Run]) -> Table:
    """Scene, parameters, machine, versions and date of every recording."""
    return Table.of([_run_origin(run) for run in runs])


def bench_origins(rows: Sequence[BenchPoint]) -> Table:
    """The same of benchmarks, as far as their files have it: a row for all counts of workers."""
    benched: dict[str, list[BenchPoint]] = {}
    for row in rows:
        benched.setdefault(repr((row.file, row.scene, row.amount, row.facts)), []).append(row)
    return Table.of([_bench_origin(group) for group in benched.values()])


def _run_origin(run: Run) -> dict[str, str]:
    recording, params = run.recording, run.params
    defaults = Params().options()
    # The scene decides the length unit; what it decides is no choice of the user.
    other = [name for name in params if name not in (*SHOWN, "length_unit") and params[name] != defaults[name]]
    steps = f"{len(run.steps):,}" + ("" if recording.complete else " (not closed: its end may be missing)")
    return {
        "run": recording.path.name or str(recording.path),
        "scene": run.scene,
        "bodies": _bodies(run),
        "joints": f"{run.joint_count:,}",
        "workers": f"{run.workers:,}",
        "coupling": plain(params["coupling"]),
        "growth depth": plain(params.get("growth_depth", NONE)),
        "search depth": plain(params.get("search_depth", NONE)),
        **_amount(params),
        "timestep": f"{recording.timestep * 1e3:g} ms",
        "precision": plain(params["precision"]),
        "engine": plain(params["engine"]),
        "runtime": plain(params["runtime"]),
        "other parameters": ", ".join(words_of(params, other)) or "defaults",
        "steps": steps,
        "date": recording.started.replace("T", " ")[:16] + " UTC",
        "machine": run.machine,
        "versions": ", ".join(f"{name} {version}" for name, version in recording.versions.items()),
    }


def _bodies(run: Run) -> str:
    """How many there were at the start, and how many have come and gone."""
    events = run.recording.events() if run.recording.has_changes else None
    counts = {} if events is None else {kind: len(events.of(kind)) for kind in ("made", "removed")}
    return ", ".join([f"{run.body_count:,}", *(f"{count:,} {kind}" for kind, count in counts.items() if count)])


def _amount(params: Mapping[str, Any]) -> dict[str, str]:
    """The solver's work, by its name."""
    name = "substeps" if params.get("solver") == "substeps" else "iterations"
    return {name: plain(params[name])}


def _bench_origin(rows: Sequence[BenchPoint]) -> dict[str, str]:
    first, facts = rows[0], rows[0].facts
    own = ("body_count", "joint_count", "precision", "engine", "coupling")
    other = [name for name in facts if name not in (*own, "growth_depth", "search_depth", "timestep")]
    found = {
        "run": first.file.name,
        "scene": first.scene,
        "bodies": plain(facts.get("body_count", NONE)),
        "joints": plain(facts.get("joint_count", NONE)),
        "workers": ", ".join(str(row.workers) for row in sorted(rows, key=lambda row: row.workers)),
        "coupling": plain(facts.get("coupling", "blend")),
        "growth depth": plain(facts.get("growth_depth", "scene's")),
        "search depth": plain(facts.get("search_depth", "scene's")),
        **{name: plain(count) for name, count in first.amount.items()},
        "precision": plain(facts.get("precision", NONE)),
        "engine": plain(facts.get("engine", NONE)),
        "runtime": first.runtime,
        "other parameters": ", ".join(words_of(facts, other)) or "defaults",
        "machine": f"{first.cores} cores",
    }
    if isinstance(length := facts.get("timestep"), float):
        found["timestep"] = f"{length * 1e3:g} ms"
    return found


# ---- what came of them -------------------------------------------------------------------------------------------


def results(runs: Sequence[Run], errors: Sequence[dict[str, Series]]) -> Table:
    """Means over the steps of each run of a scene; the first step, which sets the workers up, has no time."""
    records = []
    for run, found in zip(runs, errors, strict=True):
        record = {"run": run.label}
        if run.timed.any():
            step_ms = float(run.values["step_ms"][run.timed].mean())
            record["ms per step"] = f"{step_ms:.3g}"
            record["x real time"] = f"{1e3 * run.recording.timestep / step_ms:.3g}" if step_ms else NONE
        if any(other.workers > 1 for other in runs) and len(run.steps):
            counts = run.values
            if run.is_tight:
                record["interface bodies"] = f"{np.mean(counts['interface_count']):,.0f}"
                record["constraints between workers"] = f"{np.mean(counts['cut_share']):.1%}"
            else:
                record["overlap bodies"] = f"{np.mean(counts['overlap_count']):,.0f}"
                record["duplicated bodies"] = f"{run.duplicated_share.mean():.1%}"
            record["activations per step"] = f"{np.mean(counts['activation_count']):.3g}"
            if (divided := int(np.sum(counts.get("divided", 0)))) > 0:
                record["repartitioned"] = count_of(divided, "time")
            if (uncovered := int(np.sum(counts.get("uncovered_count", 0)))) > 0:
                record["uncovered constraints"] = f"{uncovered:,}"
        if run.is_tight and len(run.steps):
            exchanges = run.values["exchanges"]
            record["exchanges per step: mean / most"] = f"{exchanges.mean():.3g} / {exchanges.max():,}"
        for name in MAIN_ERRORS:
            if name in found:
                values = found[name].values
                record[f"{ERRORS[name].axis}: mean / largest"] = f"{values.mean():.3g} / {values.max():.3g}"
        records.append(record)
    return Table.of(records)


def speedups(lines: Sequence[SpeedupLine]) -> Table:
    return Table.of(
        [
            {
                "line": line.label,
                "workers": f"{point.workers:,}",
                "ms per step": f"{point.step_ms:.3g}",
                "speed-up, measured": NONE if point.measured is None else f"{point.measured:.2f}",
                "speed-up, projected": NONE if point.projected is None else f"{point.projected:.2f}",
            }
            for line in lines
            for point in line.points
        ]
    )
