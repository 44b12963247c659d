"""Rows of a comparison with peers as a table for a screen of 100 columns, and what it means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..peers import ComparedRow
from ..peers.error import ALLOWANCE
from .bench_tables import WIDTH
from .shared import console

HEADINGS = (
    "setting",
    "CPU ms\na step",
    "wall ms\na step",
    "penetration\nlargest mm",
    "\nsum mm",
    "joint gap\nlargest mm",
    "\nsum mm",
    "read\nms",
)


def print_peers(rows: Sequence[ComparedRow], notes: Mapping[str, Sequence[str]]) -> None:
    """Speed and error of every side, which settings are equal, and what is unfair. Nothing if there are no rows."""
    if not rows:
        return
    out = console if console.is_terminal else Console(width=max(WIDTH, console.width))
    for (scene, iterations), group in groupby(rows, lambda row: (row.bench.scene, row.bench.iterations)):
        sides = list(group)
        out.print()
        out.print(f"[bold]{escape(scene)}[/], {iterations} iterations of lapjoint, side by side", highlight=False)
        out.print()
        out.print(_table(sides))
        out.print()
        for line in verdicts(sides):
            out.print(line, highlight=False, markup=False)
    out.print()
    out.print("[bold]What is not fair[/]", highlight=False)
    for peer, lines in notes.items():
        out.print(f"{peer}: {'; '.join(lines)}.", highlight=False, markup=False)
    out.print(
        "All: one thread for each peer and each worker; the same timestep; peers start from the states of one worker "
        "without the impulses of its last step; the error is measured by lapjoint from the states, the same way for "
        "all, after each round. Reading states (read) is no part of a peer's step; lapjoint's steps include it. "
        f"Equal error: none of the four larger by more than {ALLOWANCE - 1:.0%}.",
        style="dim",
        highlight=False,
    )


def _table(rows: Sequence[ComparedRow]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("engine", no_wrap=True)
    table.add_column(HEADINGS[0], no_wrap=True)
    for heading in HEADINGS[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("equal to")
    last = ""
    for row in rows:
        side, error = row.side, row.error
        engine = f"{side.peer} {side.version}" if side.peer else "lapjoint"
        setting = side.setting or _workers(side.workers or 0)
        numbers = [
            *(_number(ms) for ms in (row.cpu_ms, row.step_ms)),
            *(_number(1e3 * metres) for metres in error.values),
            _number(row.read_ms),
        ]
        equal = ", ".join(_workers(count) for count in row.cheapest_for or ())
        if last and engine != last:
            table.add_row()
        table.add_row(escape(engine if engine != last else ""), escape(setting), *numbers, equal)
        last = engine
    return table


def verdicts(rows: Sequence[ComparedRow]) -> list[str]:
    """For each peer and count of workers: the cheapest setting of equal error, or that there is none."""
    lines = []
    peers = list(dict.fromkeys(row.side.peer for row in rows if row.side.peer is not None))
    for peer in peers:
        for ours in rows:
            count = ours.side.workers
            if count is None:
                continue
            fitting = [row for row in rows if row.side.peer == peer and count in (row.cheapest_for or ())]
            if fitting:
                setting, ratio = fitting[0].side.setting, fitting[0].cpu_ms / max(ours.cpu_ms, 1e-9)
                wall = fitting[0].step_ms / max(ours.step_ms, 1e-9)
                what = f"equal error at {setting}: {ratio:.2f} of the CPU time, {wall:.2f} of the wall time"
            else:
                what = "no setting of the ladder has as little error: the times do not compare"
            lines.append(f"{peer} against {_workers(count)}: {what}")
    return lines


def _workers(count: int) -> str:
    return f"{count} worker" + "s" * (count > 1)


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "-"
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
