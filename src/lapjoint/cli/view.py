"""`lapjoint view`, and what `lapjoint run --view` shares with it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from ..errors import LapjointError
from ..params import Params
from .export import export_recording
from .shared import PartitionOption, SeedOption, SizeOption, console, open_scene

PORT = 8080
HostOption = Annotated[
    str,
    typer.Option(
        "--host", help="Where to listen. Anything but this machine alone needs the token of the printed address."
    ),
]
PortOption = Annotated[int, typer.Option("--port", min=0, max=65535, help="Where to listen; 0: any free port.")]
FpsOption = Annotated[float, typer.Option("--fps", help="Most frames per second that a browser is sent.")]
NoBrowserOption = Annotated[bool, typer.Option("--no-browser", help="Print the address only, open no browser.")]


def view(
    run_or_scene: Annotated[
        str, typer.Argument(help="A recording (a directory of --record), a scene's name, or a saved scene file.")
    ],
    size: SizeOption = None,
    seed: SeedOption = 0,
    workers: Annotated[int, typer.Option("--workers", help="Of a scene: how many workers share it.")] = 1,
    partition: PartitionOption = "auto",
    host: HostOption = "localhost",
    port: PortOption = PORT,
    fps: FpsOption = 30.0,
    no_browser: NoBrowserOption = False,
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
    from ..recording import Recording
    from ..view.page.access import Access
    from ..view.page.playback import Playback, StillView

    access = Access.of(host)
    path = Path(run_or_scene)
    if path.is_dir():
        if size is not None or workers != 1 or partition != "auto":
            raise LapjointError(f"{path} is a recording: --size, --workers and --partition are for scenes")
        shown: Playback | StillView = Playback(Recording(path), access=access, port=port, fps=fps)
    else:
        scene = open_scene(run_or_scene, size, seed)
        params = Params(workers=workers, partition=partition)
        shown = StillView(scene, params, access=access, port=port)
    with shown, until_interrupted() as interrupted:
        announce(shown.page.address, no_browser)
        shown.serve(interrupted)


def checked_fps(fps: float) -> float:
    if not 1 <= fps <= 120:
        raise LapjointError(f"--fps is {fps:g}, expected 1 to 120")
    return fps


def announce(address: str, no_browser: bool) -> None:
    """Print the address of the view, and open it."""
    console.print(f"view: {address}  (Ctrl-C ends it)", markup=False, soft_wrap=True, highlight=False)
    screenless = sys.platform.startswith("linux") and not {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ)
    if not (no_browser or screenless):
        # Some browsers are started in the foreground.
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


@contextmanager
def until_interrupted() -> Iterator[Callable[[], bool]]:
    """Note Ctrl-C, or an end asked for by the system, instead of raising; yields whether one came."""
    came = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        came.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
