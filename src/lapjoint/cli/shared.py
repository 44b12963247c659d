"""What commands share: the screen, opening scenes, checking files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .. import scenes as scene_library
from ..errors import LapjointError
from ..files.read import read_scene
from ..params.coupling_choice import CouplingChoice
from ..params.fields import SIMULATED
from ..recording.place import check_parents
from ..scene import Scene
from ..system.shortage import reason

console = Console()

SceneArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCENE", help="A scene's name (see `lapjoint scenes`), or a scene file: saved, MJCF, URDF, USD or glTF."
    ),
]
KeyframeOption = Annotated[
    str | None,
    typer.Option(
        "--keyframe",
        metavar="NAME",
        help="Of an MJCF file: the keyframe that it starts from, by name or number.",
        rich_help_panel=SIMULATED.title,
    ),
]
SizeOption = Annotated[
    int | None,
    typer.Option(
        "--size",
        metavar="N",
        help="About how many bodies; of pyramid and joint-grid, a side. [default: the paper's count]",
        rich_help_panel=SIMULATED.title,
    ),
]
SeedOption = Annotated[
    int,
    typer.Option(
        "--seed", metavar="N", help="For scenes with chance in them. [default: 0]", rich_help_panel=SIMULATED.title
    ),
]


def open_scene(name_or_file: str, size: int | None, seed: int, keyframe: str | None = None) -> Scene:
    """A scene of the library by its name, or that of a file. What could not be read exactly is a warning each."""
    if seed < 0:
        raise LapjointError(f"--seed is {seed}, expected zero or more")
    path = Path(name_or_file)
    if name_or_file not in scene_library.names() and (path.suffix or path.exists()):
        if size is not None:
            raise LapjointError(f"--size is given, but {path} is a file: its size is fixed")
        return read_scene(path, keyframe=keyframe)
    if keyframe is not None:
        raise LapjointError(f"--keyframe is given, but {name_or_file} is no file: it is for MJCF files")
    return scene_library.build(name_or_file, size, seed)


def say_coupling(choice: CouplingChoice) -> None:
    """Which option decided, where auto takes blend because of one."""
    if choice.coupling != "tight" and choice.reason is not None and choice.reason.startswith("--"):
        console.print(f"coupling: {choice.coupling}, because {choice.reason}", markup=False, soft_wrap=True)


def check_writable(option: str, path: Path | None) -> None:
    """Refuse a file that cannot be written before anything starts. Directories above it are made when it is written."""
    if path is None:
        return
    check_parents(path, f"{option} {path}")
    if path.is_dir():
        raise LapjointError(f"{option} {path}: is a directory, expected a file")
    if path.exists() and not os.access(path, os.W_OK):
        raise LapjointError(f"{option} {path}: no permission to write there")


def make_parents(path: Path) -> None:
    """Make the directories above a file that is about to be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LapjointError(f"{path}: cannot be written: {reason(error)}") from None


def counted(count: float, one: str, many: str | None = None, form: str = ",") -> str:
    """A number with its noun: `1 step`, `20 steps`, `1,234 bodies`."""
    text = f"{count:{form}}"
    return f"{text} {one if text == '1' else many or one + 's'}"
