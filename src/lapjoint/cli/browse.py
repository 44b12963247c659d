"""The view of `lapjoint view`: a recording, or a scene as it starts, in a browser."""

from __future__ import annotations

from pathlib import Path

from ..errors import LapjointError
from ..params import Params
from ..recording import Recording
from ..view.page.access import Access
from ..view.page.playback import Playback, StillView
from .serving import announce, until_interrupted
from .shared import open_scene


def browse(
    run_or_scene: str,
    params: Params,
    *,
    size: int | None,
    seed: int,
    host: str,
    port: int,
    fps: float,
    no_browser: bool,
) -> None:
    """Serve the view until Ctrl-C."""
    access = Access.of(host)
    path = Path(run_or_scene)
    shown: Playback | StillView
    if path.is_dir():
        if size is not None or params != Params():
            raise LapjointError(f"{path} is a recording: --size, --workers and --partition are for scenes")
        shown = Playback(Recording(path), access=access, port=port, fps=fps)
    else:
        shown = StillView(open_scene(run_or_scene, size, seed), params, access=access, port=port)
    with shown, until_interrupted() as interrupted:
        announce(shown.page.address, no_browser)
        shown.serve(interrupted)
