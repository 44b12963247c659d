"""`lapjoint check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..files.read import read_with_notes
from .shared import KeyframeOption, console, counted


def check(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A scene file: MJCF, URDF, USD, glTF, or a saved scene.")
    ],
    keyframe: KeyframeOption = None,
) -> None:
    """Read a scene file, and tell what became of what it has.

    It prints what was read, what was approximated, and what was left out; what would make the scene wrong is refused.

    Example: lapjoint check robot.xml
    """
    scene, notes = read_with_notes(file, keyframe=keyframe)
    counts = (
        counted(scene.body_count, "body", "bodies"),
        counted(scene.static_count, "static body", "static bodies"),
        counted(scene.joint_count, "joint"),
    )
    console.print(f"[bold]{scene.name}[/]: {', '.join(counts)}", highlight=False)
    for title, lines in (
        ("read", [f"{number:,} {what}" for what, number in notes.read.items()]),
        ("approximated", [f"{note.where}: {note.text}" for note in notes.approximated]),
        ("left out", [f"{note.where}: {note.text}" for note in notes.left_out]),
    ):
        console.print(f"[bold]{title}[/]" + ("" if lines else ": nothing"), highlight=False)
        for line in lines:
            console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
