"""`lapjoint compare`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..errors import LapjointError
from ..recording import Recording
from ..recording.place import check_place
from ..studies.compare import Comparison, run_single
from ..studies.compare import compare as compare_recordings
from ..studies.report.style import checked_figure_path
from ..system.files import write_file
from .extras import load
from .shared import check_writable, console, counted, make_parents

WIDTH = 100
ROWS = 10
"""Of the table over time; the file has all."""


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A recording.")],
    b: Annotated[Path | None, typer.Argument(metavar="B", help="Another one of the same scene.")] = None,
    single: Annotated[
        bool, typer.Option("--single", help="In place of B: run the scene of A again, on one worker.")
    ] = False,
    record: Annotated[
        Path | None, typer.Option("--record", metavar="DIR", help="With --single: keep that run as a recording here.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all differences to this file.")
    ] = None,
    figure_file: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE", help="Draw the differences over time (.png or .svg).")
    ] = None,
) -> None:
    """Show how far two runs of a scene are apart: positions, rotations, and everything that was measured.

    Frames are matched by their step numbers.

    Example: lapjoint compare run.zarr --single --figure difference.png
    """
    if single and b is not None:
        raise LapjointError(f"{b} and --single are both given, expected one of them")
    if not single and b is None:
        raise LapjointError("only one recording is given, expected a second one or --single")
    if record is not None and not single:
        raise LapjointError("--record is given without --single, expected both")
    check_writable("--json", json_file)
    figure = None
    if figure_file is not None:
        check_writable("--figure", checked_figure_path("--figure", figure_file))
        figure = load("--figure")
    if record is not None:
        check_place(record)
    first = Recording(a)
    with _second(first, b, record) as second:
        comparison = compare_recordings(first, second)
        titles = {body: second.scene.body_title(body) for body in np.unique(comparison.position_body).tolist()}
    _print(comparison, titles)
    if json_file is not None:
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in comparison.to_dict().items()]
        make_parents(json_file)
        write_file(json_file, "{\n" + ",\n".join(lines) + "\n}\n")
    if figure is not None and figure_file is not None:
        make_parents(figure_file)
        figure.draw_comparison(comparison, figure_file)


@contextmanager
def _second(first: Recording, b: Path | None, record: Path | None) -> Iterator[Recording]:
    """The recording to compare with: B, or a run on one worker, which is removed afterwards unless --record keeps
    it."""
    if b is not None:
        yield Recording(b)
    elif record is not None:
        yield _run_with_progress(first, record)
    else:
        with tempfile.TemporaryDirectory(prefix="lapjoint-") as folder:
            yield _run_with_progress(first, Path(folder) / "one worker")


def _run_with_progress(recording: Recording, path: Path) -> Recording:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"{recording.scene.name} on one worker", total=None)
        return run_single(recording, path, lambda done, total: progress.update(task, completed=done, total=total))


# ---- tables ------------------------------------------------------------------------------------------------------


def _print(comparison: Comparison, titles: dict[int, str]) -> None:
    out = console if console.is_terminal else Console(width=max(WIDTH, console.width))
    a, b = Path(comparison.a).name, Path(comparison.b).name
    if {comparison.a_coupling, comparison.b_coupling} != {"blend"}:
        a, b = f"{a} ({comparison.a_coupling})", f"{b} ({comparison.b_coupling})"
    bodies, frames = counted(comparison.body_count, "body", "bodies"), counted(len(comparison.steps), "frame")
    head = f"{comparison.scene}, {bodies}, {frames}. A: {a}, B: {b}"
    out.print(escape(head), highlight=False)
    for note in comparison.notes:
        out.print(f"[yellow]note:[/] {escape(note)}", highlight=False)
    out.print()
    out.print(_time_table(comparison, titles))
    out.print()
    out.print(_value_table(comparison))


def _time_table(comparison: Comparison, titles: dict[int, str]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("step", "time [s]", "RMS [mm]", "largest [mm]", "rotation [rad]"):
        table.add_column(escape(name), justify="right", no_wrap=True)
    table.add_column("farthest apart")
    count = len(comparison.steps)
    for row in np.unique(np.linspace(0, count - 1, min(count, ROWS)).astype(int)).tolist():
        apart = comparison.position_largest[row] != 0
        table.add_row(
            f"{comparison.steps[row]}",
            f"{comparison.time[row]:.3f}",
            _number(1e3 * comparison.position_rms[row]),
            _number(1e3 * comparison.position_largest[row]),
            _number(comparison.rotation_largest[row]),
            escape(titles[int(comparison.position_body[row])]) if apart else "",
        )
    worst = (1e3 * comparison.position_rms, 1e3 * comparison.position_largest, comparison.rotation_largest)
    table.add_row("largest", "", *(_number(float(values.max())) for values in worst), "", style="bold")
    return table


def _value_table(comparison: Comparison) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("of each step")
    for name in ("A: mean", "A: largest", "B: mean", "B: largest"):
        table.add_column(name, justify="right", no_wrap=True)
    for value in comparison.values:
        name = f"{value.name} [{value.unit}]" if value.unit else value.name
        numbers = (value.a_mean, value.a_largest, value.b_mean, value.b_largest)
        table.add_row(escape(name), *("-" if number is None else _number(number) for number in numbers))
    return table


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
