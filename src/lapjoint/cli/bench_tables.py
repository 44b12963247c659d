"""Rows of a benchmark as tables for a screen of 100 columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..params import Params
from ..params.coupling_choice import traits
from ..server.profile import EXCHANGE_MS
from ..studies.bench import BenchRow
from ..studies.bench.plan import amount_title
from .shared import console

WIDTH = 100


def print_tables(rows: Sequence[BenchRow]) -> None:
    """Speed, then where the time goes. Nothing if there are no rows."""
    if not rows:
        return
    out = console if console.is_terminal else Console(width=max(WIDTH, console.width))
    row = rows[0]
    engines = list(dict.fromkeys(one.engine for one in rows))
    couplings = list(dict.fromkeys(one.coupling for one in rows))
    params = dict.fromkeys(f"{name} {value}" for one in rows for name, value in one.params.items())
    settings = [
        " beside ".join(engines),
        row.precision,
        row.runtime,
        *([f"coupling {' beside '.join(couplings)}"] if any(one.workers > 1 for one in rows) else []),
        *params,
    ]
    out.print(escape(", ".join(settings)), highlight=False)
    out.print()
    out.print(_speed_table(rows))
    out.print()
    out.print("ms a step: wall time of each phase, CPU time of the server and of the slowest worker", highlight=False)
    out.print()
    out.print(_phase_table(rows))
    out.print()
    cores = f"{row.cores} core" + "s" * (row.cores > 1)
    note = (
        f"{cores} at hand; a speed-up measured with more workers than that is left out. [bold]projected[/]: from the "
        "server's CPU time plus the slowest worker's, as if every worker had a core of its own. [bold]balance[/]: the "
        "slowest worker's CPU time over the mean of all workers'."
    )
    if any(traits(name).exchanges for name in couplings):
        note += f" A tight step's exchanges are projected with {1e3 * EXCHANGE_MS:.0f} µs each besides."
    out.print(
        note,
        style="dim",
        highlight=False,
    )


def _speed_table(rows: Sequence[BenchRow]) -> Table:
    is_tight = any(traits(row.coupling).exchanges for row in rows)
    last = ["exchanges\na step", "residual\n\\[m/s]"] if is_tight else ["activations\na step"]
    table = _table(["ms a step", "speed-up", "projected\nspeed-up", "balance", "duplicated\nbodies", *last])
    for group in _groups(rows):
        if table.row_count:
            table.add_row()
        for label, row in zip(_labels(group, rows), group, strict=True):
            fits = row.workers <= row.cores
            table.add_row(
                label,
                f"{row.workers}",
                _ms(row.step_ms) if fits else f"[dim]{_ms(row.step_ms)}[/]",
                f"{row.speedup:.2f}" if fits else "[dim]-[/]",
                f"{row.projected_speedup:.2f}",
                f"{row.balance:.2f}",
                f"{row.duplicated_share:.1%}",
                *(_exchanges(row) if is_tight else [f"{row.activation_count:.1f}"]),
            )
    return table


def _exchanges(row: BenchRow) -> list[str]:
    exchanges = "-" if row.exchanges is None else f"{row.exchanges:.0f}"
    return [exchanges, "-" if row.residual is None else f"{row.residual:.1e}"]


def _phase_table(rows: Sequence[BenchRow]) -> Table:
    phases = list(rows[0].phases_ms)
    table = _table([*phases, "server\nCPU", "worker\nCPU"])
    for group in _groups(rows):
        if table.row_count:
            table.add_row()
        for label, row in zip(_labels(group, rows), group, strict=True):
            times = [*(row.phases_ms.get(phase, 0.0) for phase in phases), row.server_ms, row.worker_cpu_ms_largest]
            table.add_row(label, f"{row.workers}", *map(_ms, times))
    return table


def _table(headings: Sequence[str]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("scene")
    for heading in ("workers", *headings):
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _groups(rows: Sequence[BenchRow]) -> list[list[BenchRow]]:
    """Rows of one scene, one number of iterations or substeps, one engine and one coupling."""
    keys = ("scene", "iterations", "engine", "coupling")
    return [list(group) for _, group in groupby(rows, lambda row: [getattr(row, key) for key in keys])]


def _labels(group: Sequence[BenchRow], rows: Sequence[BenchRow]) -> list[str]:
    """The scene beside a group's first row, its iterations or substeps beside the second, then its coupling, where rows
    have several, and another engine."""
    labels = [escape(group[0].scene), amount_title(group[0].iterations, group[0].substeps)]
    if len({row.coupling for row in rows}) > 1:
        labels.append(group[0].coupling)
    if group[0].engine != Params.engine:
        labels.append(escape(group[0].engine))
    if len(group) < len(labels):
        return [*labels[: len(group) - 1], "\n".join(labels[len(group) - 1 :])]
    return [*labels, *[""] * (len(group) - len(labels))]


def _ms(ms: float) -> str:
    return f"{ms:.2f}" if ms < 100 else f"{ms:.1f}"
