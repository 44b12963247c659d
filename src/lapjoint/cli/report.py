"""`lapjoint report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from ..studies.report import report as write_report
from .shared import console


def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Recordings, and files of `lapjoint bench --json`.")
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The directory to write into; made if it does not exist.")
    ],
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Of the page. Default: the scenes' names.")
    ] = None,
) -> None:
    """Write a page with figures on recorded runs and benchmarks, and each figure as PNG and SVG.

    Speed-up, frame times, errors, contacts and bodies per worker, phases, overlap and activations.

    Example: lapjoint report one.zarr two.zarr four.zarr bench.json --out report
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("figures"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("drawing", total=None)
        page = write_report(runs, out, title, lambda done, total: progress.update(task, completed=done, total=total))
    console.print(f"wrote {page}", markup=False)
