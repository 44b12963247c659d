"""The command line: a module for each command, imported when the command is called.

`lapjoint --help` and a mistyped command need none of these modules, nor the packages that they need: COMMANDS has their
first lines. A command's module imports at its top what all its options need; what one option alone needs is in the
table of extras.py.
"""

from __future__ import annotations

import sys
import warnings
from collections import UserDict
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperGroup

from .. import __version__
from ..errors import LapjointError
from ..system.shortage import MAY_BE_SHORT, check_limits, refusal
from .help_page import print_group_page
from .termination import ended_in_order_by_sigterm

COMMANDS = {
    "scenes": "List every scene with its counts.",
    "new": "Write a small package with a scene of your own, and its test.",
    "check": "Read a scene file, and tell what became of what it has.",
    "engines": "List every engine: version, precision, and what it can do.",
    "run": "Simulate a scene and sum up how fast and how accurate it was.",
    "resume": "Go on with a run from its checkpoint.",
    "bench": "Measure scenes on several counts of workers, side by side.",
    "picture": "Draw a scene as it starts, or a frame of a recording.",
    "video": "Film a recording.",
    "view": "Look at a recording, or at a scene as it starts, in a browser.",
    "export": "Write a recording or a scene as USD, as glTF, or as a page.",
    "compare": "Show how far two runs of a scene are apart.",
    "report": "Write a page with figures on recorded runs and benchmarks.",
    "reproduce": "Run the paper's evaluation and write its Table 2 beside ours.",
}
"""Every command, and the first line of its help. A command's function has its name, in the module of that name."""
SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


class LazyCommands(UserDict[str, Any]):
    """Every command by its name, imported when it is looked up."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(COMMANDS))

    def __getitem__(self, name: str) -> Any:
        if super().__getitem__(name) is None:
            self[name] = load_command(name)
        return super().__getitem__(name)


class LazyGroup(TyperGroup):
    """A group that knows its commands' names, and imports one when it is called."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = LazyCommands()

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        print_group_page(self, ctx, COMMANDS)


def load_command(name: str) -> Any:
    """The command of this name, its module imported."""
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, context_settings=SETTINGS)
    command_class = import_module(".command", __name__).Command
    alone.command(name, cls=command_class)(getattr(import_module(f".{name}", __name__), name))
    return typer.main.get_command(alone)


app = typer.Typer(
    cls=LazyGroup,
    help="One rigid-body scene, simulated by many workers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"lapjoint {__version__}")
        raise typer.Exit


@app.callback()
def lapjoint(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """One rigid-body scene, simulated by many workers."""


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    Console(stderr=True).print(
        f"[yellow]warning:[/] {escape(str(message))}", highlight=False, soft_wrap=True, emoji=False
    )


def _print_error(text: str) -> None:
    try:
        Console(stderr=True).print(f"[red]error:[/] {escape(text)}", highlight=False, soft_wrap=True, emoji=False)
    except MAY_BE_SHORT:  # it imports modules, and needs memory
        print(f"error: {text}", file=sys.stderr)


def main() -> None:
    """Entry point: every LapjointError, and whatever the system refuses, is one line on stderr and exit code 2."""
    warnings.showwarning = _show_warning
    with ended_in_order_by_sigterm():
        try:
            check_limits()
            app()
        except LapjointError as error:
            _print_error(str(error))
            sys.exit(2)
        except KeyboardInterrupt:
            sys.exit(130)
        except Exception as error:
            line = refusal(error)
            if line is None:
                raise
            _print_error(line)
            sys.exit(2)
