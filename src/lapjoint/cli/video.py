"""`lapjoint video`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..recording import Recording
from ..view.draw.cameras import Shot
from ..view.draw.video import video as film
from .film_options import CameraOption, ColorOption, FollowOption, HeightOption, WidthOption, ZoomOption
from .shared import console, counted


def video(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A recording: a directory of `lapjoint run --record`.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The film to write (.mp4, .gif or .webp).")],
    color: ColorOption = None,
    camera: CameraOption = "scene",
    zoom: ZoomOption = 1.0,
    orbit: Annotated[
        float,
        typer.Option("--orbit", metavar="DEG/S", help="Turn the camera about its target: degrees per second of film."),
    ] = 0.0,
    follow: FollowOption = None,
    width: WidthOption = 960,
    height: HeightOption = 540,
    fps: Annotated[float, typer.Option("--fps", metavar="N", help="Frames per second of film.")] = 30.0,
    speed: Annotated[
        float, typer.Option("--speed", metavar="X", help="Seconds simulated per second of film; less is slow motion.")
    ] = 1.0,
    start: Annotated[
        float | None, typer.Option("--start", metavar="S", help="Begin at this simulated time [s].")
    ] = None,
    end: Annotated[float | None, typer.Option("--end", metavar="S", help="End at this simulated time [s].")] = None,
    caption: Annotated[bool, typer.Option("--caption/--no-caption", help="Time and workers below.")] = True,
    quality: Annotated[int, typer.Option("--quality", metavar="N", help="From 1, the smallest file, to 100.")] = 75,
) -> None:
    """Film a recording. No screen and no graphics card needed.

    Example: lapjoint video run.zarr film.mp4 --color worker --orbit 10 --speed 0.5
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("frames"),
        TimeRemainingColumn(),
    )
    shot = Shot(camera, zoom, orbit, follow)
    recording = Recording(run)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(file.name, total=None)
        done = film(
            recording,
            file,
            size=(width, height),
            fps=fps,
            speed=speed,
            start=start,
            end=end,
            mode=color or "worker",
            shot=shot,
            with_caption=caption,
            quality=quality,
            on_frame=lambda number, count: progress.update(task, completed=number, total=count),
        )
    frames = counted(done.frame_count, "frame", form="")
    console.print(
        f"wrote {done.path}: {frames} of {done.size[0]} x {done.size[1]}, {done.seconds:.1f} s, "
        f"{done.path.stat().st_size / 1e6:.2f} MB",
        markup=False,
        soft_wrap=True,
    )
