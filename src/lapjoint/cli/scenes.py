"""`lapjoint scenes`."""

from __future__ import annotations

from rich.table import Table

from .. import scenes as scene_library
from .shared import console


def scenes() -> None:
    """List every scene with its counts."""
    table = Table(box=None, header_style="bold")
    for heading, justify in (("scene", "left"), ("bodies", "right"), ("static", "right"), ("joints", "right")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    table.add_column("what it is")
    for name in scene_library.names():
        scene = scene_library.build(name)
        counts = (scene.body_count, scene.static_count, scene.joint_count)
        table.add_row(name, *(f"{count:,}" for count in counts), scene_library.summary(name))
    console.print(table)
