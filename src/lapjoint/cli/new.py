"""`lapjoint new`."""

from __future__ import annotations

import importlib.util
import keyword
import re
from pathlib import Path
from typing import Annotated

import typer

from .. import scenes as scene_library
from ..errors import LapjointError, did_you_mean
from ..system.files import write_file
from .scene_package import scene_package
from .shared import check_writable, console, make_parents

KINDS = ("scene",)
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def new(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="What it shall have: scene.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name for `lapjoint run`, for example my-scene.")],
    into: Annotated[
        Path, typer.Option("--into", metavar="DIR", help="Where the package's folder is made. [default: here]")
    ] = Path(),
) -> None:
    """Write a small package with a scene of your own, and its test.

    Once it is installed, `lapjoint run NAME` finds it, and so does everything else that takes a scene.

    Example: lapjoint new scene my-scene
    """
    if kind not in KINDS:
        raise LapjointError(f"lapjoint new {kind}: unknown{did_you_mean(kind, KINDS)}, expected {' or '.join(KINDS)}")
    module = _module_name(name)
    folder = into / name
    check_writable("--into", folder / "pyproject.toml")
    if folder.exists():
        raise LapjointError(f"{folder}: is there already, expected a new name")
    make_parents(folder / "pyproject.toml")
    for file, text in scene_package(name, module).items():
        write_file(folder / file, text)
    console.print(
        f"wrote {folder}: {', '.join(sorted(scene_package(name, module)))}\n"
        f"  pip install --editable {folder}\n"
        f"  lapjoint run {name} --workers 2 --picture {name}.png\n"
        f"  pytest {folder}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _module_name(name: str) -> str:
    """The module of a scene, whose name no other module has."""
    if not NAME.fullmatch(name):
        raise LapjointError(f"scene {name!r}: expected a name of a-z, 0-9 and single dashes, for example my-scene")
    if name in scene_library.names():
        raise LapjointError(f"scene {name!r}: there is one of that name already (see `lapjoint scenes`)")
    module = name.replace("-", "_")
    if keyword.iskeyword(module) or importlib.util.find_spec(module) is not None:
        raise LapjointError(f"scene {name!r}: Python has a module {module} already, expected another name")
    return module
