"""`lapjoint export`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from ..errors import LapjointError
from ..recording import Recording
from ..view.draw.output import checked_file
from ..view.export.frames import Frames, frames_of_recording, frames_of_scene
from ..view.export.gltf import write_gltf
from .export_page import export_recording
from .extras import load
from .shared import KeyframeOption, SeedOption, SizeOption, console, counted, open_scene

USD, GLTF, PAGES = (".usda", ".usdc", ".usd"), (".glb", ".gltf"), (".html", ".htm")
Write = Callable[[Frames, Path, Callable[[int, int], None]], None]


def export(
    run_or_scene: Annotated[
        str,
        typer.Argument(
            metavar="RUN|SCENE", help="A recording (a directory of --record), a scene's name, or a scene file."
        ),
    ],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="What to write: .usda, .usdc or .usd (USD); .glb or .gltf (glTF); of a recording .html, a page that "
            "plays offline.",
        ),
    ],
    every: Annotated[
        int | None,
        typer.Option("--every", metavar="N", help="Of a recording: one of so many frames. [default: all]"),
    ] = None,
    size: SizeOption = None,
    seed: SeedOption = 0,
    keyframe: KeyframeOption = None,
) -> None:
    """Write a recording or a scene as USD, as glTF, or as a page.

    Bodies move as they were recorded, in the colours of their workers, and are rigid bodies with shapes, masses,
    materials and joints to programs that simulate. `lapjoint run FILE` reads what was written.

    Example: lapjoint export runs/two bridge.usdc

    Example: lapjoint export bowl bowl.glb --size 500
    """
    checked_file(file, "file", (*USD, *GLTF, *PAGES))
    ending, path = file.suffix.lower(), Path(run_or_scene)
    write: Write | None = None  # of pages
    if ending in USD:
        write = load("lapjoint export to USD").write_usd
    elif ending in GLTF:
        write = write_gltf
    if every is not None and every < 1:
        raise LapjointError(f"--every is {every}, expected at least 1")
    if path.is_dir():
        for option, is_given in (
            ("--size", size is not None),
            ("--seed", seed != 0),
            ("--keyframe", keyframe is not None),
        ):
            if is_given:
                raise LapjointError(f"{option} is given, but {path} is a recording: it is for scenes")
        if write is None:
            export_recording(path, file, every)
            return
        recording = Recording(path)
        _write(lambda on_frame: frames_of_recording(recording, every or 1, on_frame), file, write, every or 1)
        return
    if every is not None or write is None:
        what = "--every is given" if every is not None else f"{file} is a page"
        raise LapjointError(f"{what}, but {run_or_scene} is no recording (a directory of --record)")
    if path.exists() and path.resolve() == file.resolve():
        raise LapjointError(f"{file}: is what is read, expected another name")
    scene = open_scene(run_or_scene, size, seed, keyframe)
    _write(lambda _: frames_of_scene(scene), file, write, None)


def _write(make: Callable[[Callable[[int, int], None]], Frames], file: Path, write: Write, every: int | None) -> None:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("frames", total=None)

        def show(number: int, count: int) -> None:
            progress.update(task, completed=number, total=count)

        frames = make(show)
        progress.update(task, description=file.name, completed=0, total=None)
        write(frames, file, show)
    parts = [counted(frames.scene.body_count, "body", "bodies")]
    if every is not None:
        which = "every frame" if every == 1 else f"1 of {every} frames"
        parts.append(f"{counted(len(frames.times), 'frame', form='')} ({which} of the recording)")
    parts.append(f"{file.stat().st_size / 1e6:.2f} MB")
    console.print(f"wrote {file}: {', '.join(parts)}", markup=False, soft_wrap=True)
