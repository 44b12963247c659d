"""`lapjoint reproduce`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..errors import LapjointError
from ..studies.bench import OnProgress
from .shared import console

if TYPE_CHECKING:
    from ..studies.reproduce import Done, Plan

DRAW_S = 0.2  # the bar is drawn no more often than this, between two steps


def reproduce(
    is_quick: Annotated[
        bool,
        typer.Option(
            "--quick/--full",
            help="Minutes, with fewer steps and iterations and a smaller net; or hours, with the paper's everything.",
        ),
    ] = True,
    scenes: Annotated[
        str | None,
        typer.Option("--scenes", metavar="A,B", help="Only these scenes of the paper's Table 2, with commas."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="The directory to write into.")] = Path("out/paper"),
) -> None:
    """Run the paper's evaluation and write its Table 2 beside ours, and all its figures.

    Every part is kept when it is complete: after Ctrl-C the same command goes on where it was.

    Example: lapjoint reproduce --quick --scenes bowl,building --out out/paper
    """
    from ..studies.reproduce import full, quick
    from ..studies.reproduce import reproduce as run_and_write

    plan = quick() if is_quick else full()
    if scenes is not None:
        plan = plan.only([name.strip() for name in scenes.split(",")])
    complete = 0

    def on_part(done: Done, number: int, count: int) -> None:
        nonlocal complete
        complete = number
        said = "kept" if done.kept else f"{done.seconds:.0f} s"
        progress.console.print(f"{number:>{len(str(count))}} of {count}  {escape(done.part.title)}  [dim]{said}[/]")

    try:
        with _progress_bar() as progress:
            page = run_and_write(plan, out, _drawing(progress), on_part)
    except KeyboardInterrupt:
        console.print(f"interrupted: {complete} of {len(plan.parts)} parts are complete and kept")
        console.print(f"to go on: {_command(plan, scenes, out)}", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(130) from None
    except LapjointError:
        if complete:
            console.print(f"{complete} of {len(plan.parts)} parts are complete and kept")
        raise
    if plan.speedups:
        console.print(_table(json.loads((out / "results.json").read_text())["table2"]))
    console.print(f"wrote {page}", markup=False, soft_wrap=True)


def _table(rows: list[dict[str, Any]]) -> Table:
    """Table 2 in short: the files have the rest."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("scene")
    for heading in ("paper's\nspeed-up", "ours, same\nworkers", "", "ours, best", ""):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for row in rows:
        same = "-" if row["speedup"] is None else f"{row['speedup']:.2f} ({row['paper_workers']})"
        table.add_row(
            row["scene"],
            f"{row['paper_speedup']:.2f} ({row['paper_workers']})",
            same,
            row["speedup_is"],
            f"{row['best_speedup']:.2f} ({row['best_workers']})",
            row["best_is"],
        )
    return table


def _command(plan: Plan, scenes: str | None, out: Path) -> str:
    only = "" if scenes is None else f" --scenes {scenes.replace(' ', '')}"
    return f"lapjoint reproduce --{plan.fidelity}{only} --out {out}"


def _progress_bar() -> Progress:
    """Drawn by hand, between two steps: a thread that draws would take its time from the server's."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    return Progress(
        *columns,
        console=console,
        transient=True,
        auto_refresh=False,
        speed_estimate_period=3600,
        disable=not console.is_terminal,
    )


def _drawing(progress: Progress) -> OnProgress:
    task = progress.add_task("", total=1.0)
    drawn = float("-inf")

    def draw(doing: str, share: float) -> None:
        nonlocal drawn
        if time.monotonic() - drawn >= DRAW_S:
            progress.update(task, description=doing, completed=share, refresh=True)
            drawn = time.monotonic()

    return draw
