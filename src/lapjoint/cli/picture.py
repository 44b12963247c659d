"""`lapjoint picture`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .shared import SceneArgument, SeedOption, SizeOption, console, open_scene


def picture(
    scene: SceneArgument,
    file: Annotated[Path, typer.Argument(help="The picture to write (.png).")],
    size: SizeOption = None,
    seed: SeedOption = 0,
    width: Annotated[int, typer.Option("--width", min=16, max=8192, help="Pixels.")] = 960,
    height: Annotated[int, typer.Option("--height", min=16, max=8192, help="Pixels.")] = 540,
) -> None:
    """Draw a scene as it starts, coloured by label. No screen needed.

    Example: lapjoint picture building building.png --width 1920 --height 1080
    """
    from ..view.picture import checked_path
    from ..view.picture import picture as draw

    checked_path(file)
    draw(open_scene(scene, size, seed), file, size=(width, height))
    console.print(f"wrote {file}", markup=False)
