"""The command line: a file for each command."""

from __future__ import annotations

import sys
import warnings

import typer
from rich.console import Console
from rich.markup import escape

from ..errors import LapjointError
from . import (
    bench,
    compare,
    engines,
    picture,
    report,
    reproduce,
    resume,
    run,
    scenes,
    video,
    view,
)
from .many_values import ManyValuesCommand

app = typer.Typer(
    help="One rigid-body scene, simulated by many workers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(scenes.scenes)
app.command()(engines.engines)
app.command(cls=ManyValuesCommand)(run.run)
app.command(cls=ManyValuesCommand)(resume.resume)
app.command(cls=ManyValuesCommand)(bench.bench)
app.command()(picture.picture)
app.command()(video.video)
app.command()(view.view)
app.command()(compare.compare)
app.command()(report.report)
app.command()(reproduce.reproduce)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    Console(stderr=True).print(f"[yellow]warning:[/] {escape(str(message))}", highlight=False, soft_wrap=True)


def main() -> None:
    """Entry point: every LapjointError is one line on stderr and exit code 2."""
    warnings.showwarning = _show_warning
    try:
        app()
    except LapjointError as error:
        Console(stderr=True).print(f"[red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
