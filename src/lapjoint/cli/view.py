"""`lapjoint view`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import LapjointError
from .export_page import export_recording
from .extras import load
from .params_options import Change, Given, with_params
from .serving import PORT, checked_fps
from .shared import SeedOption, SizeOption


@with_params(only=["workers", "partition"], changes={"workers": Change(help="Of a scene: how many workers share it.")})
def view(
    run_or_scene: Annotated[
        str,
        typer.Argument(
            metavar="RUN|SCENE", help="A recording (a directory of --record), a scene's name, or a saved scene file."
        ),
    ],
    given: Given,
    size: SizeOption = None,
    seed: SeedOption = 0,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Where to listen. Anything but this machine alone needs the token of the printed address.",
        ),
    ] = "localhost",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Where to listen; 0: any free port.")
    ] = PORT,
    fps: Annotated[
        float, typer.Option("--fps", metavar="N", help="Most frames per second that a browser is sent.")
    ] = 30.0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address only, open no browser.")] = False,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export", metavar="FILE.html", help="Write a recording as one page that plays offline, and end."
        ),
    ] = None,
) -> None:
    """Look at a recording, or at a scene as it starts, in a browser. `lapjoint run SCENE --view` is the live view.

    Example: lapjoint run bowl --workers 4 --record bowl.zarr && lapjoint view bowl.zarr
    """
    checked_fps(fps)
    if export is not None:
        if not Path(run_or_scene).is_dir():
            raise LapjointError(f"--export needs a recording, and {run_or_scene} is none: a directory of --record")
        export_recording(Path(run_or_scene), export)
        return
    if "max_workers" in given.values:
        raise LapjointError("--workers is a range, expected a number: nothing is simulated")
    load("lapjoint view").browse(
        run_or_scene, given.params(), size=size, seed=seed, host=host, port=port, fps=fps, no_browser=no_browser
    )
