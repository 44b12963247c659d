"""Rows of a comparison with peers as a table for a screen of 100 columns, and what it means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..studies.bench.plan import amount_title
from ..studies.peers import ComparedRow, Side
from ..studies.peers.error import MAX_ALLOWANCE, SUM_ALLOWANCE
from ..studies.titles import count_of
from .bench_tables import WIDTH
from .shared import console


def print_peers(rows: Sequence[ComparedRow], notes: Mapping[str, Sequence[str]]) -> None:
    """Speed and error of every side, which settings are equal, and what is unfair. Nothing if there are no rows."""
    if not rows:
        return
    out = console if console.is_terminal else Console(width=max(WIDTH, console.width))
    for (scene, *amount), group in groupby(rows, lambda r: (r.bench.scene, r.bench.iterations, r.bench.substeps)):
        sides = list(group)
        out.print()
        title = f"[bold]{escape(scene)}[/], {amount_title(*amount)} of lapjoint, side by side"
        out.print(f"{title} (ms a step, mm)", highlight=False)
        out.print()
        out.print(_table(sides))
        out.print()
        for line in verdicts(sides):
            out.print(line, highlight=False, markup=False)
    out.print()
    out.print("[bold]What is not fair[/]", highlight=False)
    versions = {row.side.peer: row.side.version for row in rows}
    for peer, lines in notes.items():
        out.print(f"{peer} {versions.get(peer)}: {'; '.join(lines)}.", highlight=False, markup=False)
    out.print(
        "All: as many threads for a peer as the workers that it is compared with, but no more than cores, and one "
        "where it can have no more; the same timestep; peers, and lapjoint's settings on 1 worker, start from the "
        "states of 1 worker without the impulses of its last step; the error is measured by lapjoint from the states, "
        "the same way for all, after each repetition. Reading states (read) is no part of a peer's step; lapjoint's "
        "steps include it. "
        f"Equal to workers: no sum larger than theirs by more than {SUM_ALLOWANCE:.0%} of their penetration and gaps, "
        f"no largest by more than {MAX_ALLOWANCE:.0%} of their largest.",
        style="dim",
        highlight=False,
    )


def _table(rows: Sequence[ComparedRow]) -> Table:
    has_joints = rows[0].bench.joint_count > 0
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("engine", "setting"):
        table.add_column(heading, no_wrap=True)
    measures = ["penetration\nlargest", "\nsum", *["joint gap\nlargest", "\nsum"] * has_joints]
    for heading in ("CPU\ntime", "wall\ntime", *measures, "read"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("equal to\nworkers", no_wrap=True)
    last: tuple[str | None, int] | None = None
    for row in rows:
        side, threads = row.side, row.side.threads or 1
        title = side.peer or "lapjoint"
        if last is not None:
            if side.peer != last[0]:
                table.add_row()
            else:
                title = "" if threads == last[1] else count_of(threads, "thread")
        metres = row.error.values if has_joints else row.error.values[:2]
        table.add_row(
            title,
            escape(side.setting or count_of(side.workers or 0, "worker")),
            *map(_number, (row.cpu_ms, row.step_ms, *(1e3 * length for length in metres), row.read_ms)),
            ", ".join(map(str, row.cheapest_for or ())),
        )
        last = side.peer, threads
    return table


def verdicts(rows: Sequence[ComparedRow]) -> list[str]:
    """For each peer and count of workers: the cheapest setting of equal error, or that there is none."""
    lines = []
    ours = {row.side.workers: row for row in rows if row.side.workers is not None and row.side.is_benched}
    one = ours[1].error
    for count, row in ours.items():
        if not row.error.is_within(one):
            pairs = zip(row.error.values, one.values, strict=True)
            times = max((mine / theirs for mine, theirs in pairs if theirs), default=math.inf)
            what = f"up to {times:.1f} times the error of 1 worker: the speed-up is not at equal error"
            lines.append(f"lapjoint, {count_of(count, 'worker')}: {what}")
    for peer in dict.fromkeys(row.side.peer for row in rows if row.side.peer is not None):
        for count, row in ours.items():
            equal = [other for other in rows if other.side.peer == peer and count in (other.cheapest_for or ())]
            what = "no setting of the ladder has as little error: the times do not compare"
            if equal:
                cpu, wall = equal[0].cpu_ms / max(row.cpu_ms, 1e-9), equal[0].step_ms / max(row.step_ms, 1e-9)
                what = f"{setting_title(equal[0].side)}: {cpu:.2f} of the CPU time, {wall:.2f} of the wall time"
            lines.append(f"{peer} against {count_of(count, 'worker')}: {what}")
    return lines


def setting_title(side: Side) -> str:
    """What sets a peer's side apart from its others."""
    return f"{side.setting}, {side.threads} threads" if (side.threads or 1) > 1 else str(side.setting)


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "-"
    if 0 < value < 0.1:
        return f"{value:.3f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
