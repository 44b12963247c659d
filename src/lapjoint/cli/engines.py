"""`lapjoint engines`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..engines import Support, engine_names, engine_version, supports
from ..engines.support import ALL_JOINTS, ALL_SHAPES, FEATURES
from ..errors import LapjointError
from .shared import console

WIDTH = 100


def engines() -> None:
    """List every engine: version, precision, and what it can do."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 1, 0))
    for heading in ("engine", "version", "precision", "coupling", "shapes", "joints", "features"):
        table.add_column(heading)
    for name in engine_names():
        try:
            support = supports(name)
        except LapjointError as error:
            table.add_row(escape(name), f"[red]{escape(str(error))}[/]")
            continue
        table.add_row(
            escape(name),
            escape(_version(support)),
            " ".join(support.precisions),
            " ".join(support.couplings),
            _some([one.__name__ for one in support.shapes], [one.__name__ for one in ALL_SHAPES]),
            _some([one.__name__ for one in support.joints], [one.__name__ for one in ALL_JOINTS]),
            _some(support.features, FEATURES),
        )
    out = console if console.is_terminal else Console(width=max(WIDTH, console.width))
    out.print(table)


def _version(support: Support) -> str:
    found = engine_version(support)
    if found is not None:
        return found
    return "not installed" + (f": pip install lapjoint[{support.extra}]" if support.extra else "")


def _some(has: Sequence[str], known: Sequence[str]) -> str:
    """Those it has, or those it lacks if these are fewer."""
    lacks = [one for one in known if one not in has]
    if not lacks:
        return "all"
    return escape(", ".join(has) or "none") if len(has) <= len(lacks) else escape("all but " + ", ".join(lacks))
