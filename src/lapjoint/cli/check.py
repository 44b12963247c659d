"""`lapjoint check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..files.read import read_with_notes
from .shared import KeyframeOption, console

FIRST = ("bodies", "static bodies", "kinematic bodies", "colliders", "joints", "drives")


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
    console.print(f"{scene.name}: {file}", markup=False, highlight=False, soft_wrap=True)
    order = [*(what for what in FIRST if what in notes.read), *(what for what in notes.read if what not in FIRST)]
    for title, lines in (
        ("read", [f"{what}: {notes.read[what]:,}" for what in order]),
        ("approximated", [f"{note.where}: {note.text}" for note in notes.approximated]),
        ("left out", [f"{note.where}: {note.text}" for note in notes.left_out]),
    ):
        console.print(f"[bold]{title}[/]" + ("" if lines else ": nothing"), highlight=False)
        for line in lines:
            console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
