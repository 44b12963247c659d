"""`lapjoint reproduce`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from ..errors import LapjointError
from ..studies.reproduce import Done, Plan, full, quick
from ..studies.reproduce import reproduce as run_and_write
from ..system.files import read_file
from .shared import console
from .study_progress import drawing, study_progress


def reproduce(
    is_quick: Annotated[
        bool,
        typer.Option(
            "--quick/--full",
            help="Minutes, with fewer steps and iterations and a smaller net; or hours, with the paper's everything. "
            "[default: quick]",
        ),
    ] = True,
    scenes: Annotated[
        str | None,
        typer.Option("--scenes", metavar="A,B", help="Only these scenes of the paper's Table 2, with commas."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The directory to write into. [default: out/paper]")
    ] = Path("out/paper"),
) -> None:
    """Run the paper's evaluation and write its Table 2 beside ours, and all its figures.

    Every part is kept when it is complete: after Ctrl-C the same command goes on where it was.

    Example: lapjoint reproduce --quick --scenes bowl,building --out out/paper
    """
    plan = quick() if is_quick else full()
    if scenes is not None:
        plan = plan.only([name.strip() for name in scenes.split(",")])
    complete = 0

    def on_part(done: Done, number: int, count: int) -> None:
        nonlocal complete
        complete = number
        state = "kept" if done.kept else f"{done.seconds:.0f} s"
        progress.console.print(f"{number:>{len(str(count))}} of {count}  {escape(done.part.title)}  [dim]{state}[/]")

    try:
        with study_progress() as progress:
            page = run_and_write(plan, out, drawing(progress), on_part)
    except KeyboardInterrupt:
        console.print(f"interrupted: {complete} of {len(plan.parts)} parts are complete and kept")
        console.print(f"to go on: {_command(plan, scenes, out)}", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(130) from None
    except LapjointError:
        if complete:
            console.print(f"{complete} of {len(plan.parts)} parts are complete and kept")
        raise
    if plan.speedups:
        console.print(_table(json.loads(read_file(out / "results.json"))["table2"]))
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
