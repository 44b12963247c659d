"""`lapjoint scenes`."""

from __future__ import annotations

import warnings

from rich.markup import escape
from rich.table import Table

from .. import scenes as scene_library
from ..errors import LapjointError, PlugInWarning
from .shared import console


def scenes() -> None:
    """List every scene with its counts."""
    table = Table(box=None, header_style="bold")
    for heading, justify in (("scene", "left"), ("bodies", "right"), ("static", "right"), ("joints", "right")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    table.add_column("what it is")
    for name in scene_library.names():
        try:
            scene = scene_library.build(name)
            counts = [f"{count:,}" for count in (scene.body_count, scene.static_count, scene.joint_count)]
            table.add_row(escape(name), *counts, escape(scene_library.summary(name)))
        except LapjointError as error:  # a broken plug-in
            table.add_row(escape(name), "", "", "", f"[red]{escape(str(error))}[/]")
    console.print(table)
    for line in scene_library.unused():
        warnings.warn(line, PlugInWarning, stacklevel=2)
