"""The page of `--help`: options in groups, names in full at 80 columns, each with a few lines beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

OTHER = "Options"
"""The group of options that name none; the last."""


def print_command_page(command: Any, ctx: Any, titles: Sequence[str]) -> None:
    """Print the page of `lapjoint COMMAND --help`. Groups of options with these titles come first, in this order."""
    options: dict[str, list[tuple[str, str]]] = {title: [] for title in titles}
    arguments: list[tuple[str, str]] = []
    for param in command.get_params(ctx):
        if param.param_type_name == "argument":
            name = param.metavar or str(param.name).upper()
            arguments.append((name if param.required else f"[{name}]", param.help or ""))
        elif not param.hidden:
            title = getattr(param, "rich_help_panel", None) or OTHER
            options.setdefault(title, []).append((_names(param), _text(param)))
    last = options.pop(OTHER, [])
    _print(command, ctx, {"Arguments": arguments, **options, OTHER: last}, [name for name, _ in arguments])


def print_group_page(group: Any, ctx: Any, commands: Mapping[str, str]) -> None:
    """Print the page of `lapjoint --help`."""
    options = [(_names(param), _text(param)) for param in group.get_params(ctx)]
    _print(group, ctx, {"Commands": list(commands.items()), OTHER: options}, ["COMMAND", "[ARGS]..."])


def _names(option: Any) -> str:
    """An option's names, one below the other, with what its value stands for."""
    if option.metavar is None and not option.is_flag:
        raise ValueError(f"{option.opts[0]} has no metavar for its help")
    value = "" if option.is_flag else f" {option.metavar}"
    short_first = sorted(option.opts, key=len)
    return "\n".join([", ".join(short_first) + value, *option.secondary_opts])


def _text(option: Any) -> str:
    """An option's help, with its default where the text does not have it."""
    text, default = option.help or "", option.default
    if "[default: " in text or default is None or isinstance(default, bool | list | tuple):
        return str(text)
    return f"{text} [default: {default:g}]" if isinstance(default, float) else f"{text} [default: {default}]"


def _print(command: Any, ctx: Any, sections: Mapping[str, Sequence[tuple[str, str]]], arguments: Sequence[str]) -> None:
    texts = [" ".join(paragraph.split()) for paragraph in (command.help or "").split("\n\n")]
    usage = " ".join(["Usage:", ctx.command_path, "[OPTIONS]", *arguments])
    parts: list[RenderableType] = [Text(usage, style="bold"), *(Text(f"\n{text}") for text in texts), Text("")]
    parts += [_panel(title, rows) for title, rows in sections.items() if rows]
    # To the screen, as typer's own page: what is only returned is not shown for a command without arguments.
    Console(highlight=False).print(Group(*parts))


def _panel(title: str, rows: Sequence[tuple[str, str]]) -> Panel:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="cyan")
    table.add_column()
    for names, text in rows:
        table.add_row(Text(names), Text(text))
    return Panel(table, title=title, title_align="left", border_style="dim")
