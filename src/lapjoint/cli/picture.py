"""`lapjoint picture`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import LapjointError
from ..recording import Recording
from ..view.draw.cameras import Shot
from ..view.draw.picture import checked_path, frame_picture
from ..view.draw.picture import picture as draw
from ..view.draw.recorded import Recorded
from .film_options import CameraOption, ColorOption, FollowOption, HeightOption, WidthOption, ZoomOption
from .shared import SeedOption, SizeOption, console, open_scene


def picture(
    scene: Annotated[
        str,
        typer.Argument(metavar="SCENE|RUN", help="A scene's name, a saved scene file, or a recording of --record."),
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE.png", help="The picture to write (.png).")],
    frame: Annotated[
        int | None,
        typer.Option(
            "--frame", metavar="N", help="Of a recording: which frame; negative numbers count from the end. Default -1."
        ),
    ] = None,
    time: Annotated[
        float | None, typer.Option("--time", metavar="S", help="Of a recording: the frame nearest to this time [s].")
    ] = None,
    color: ColorOption = None,
    camera: CameraOption = "scene",
    zoom: ZoomOption = 1.0,
    follow: FollowOption = None,
    caption: Annotated[bool, typer.Option("--caption", help="Of a recording: write time and workers below.")] = False,
    size: SizeOption = None,
    seed: SeedOption = 0,
    width: WidthOption = 960,
    height: HeightOption = 540,
) -> None:
    """Draw a scene as it starts, or a frame of a recording.

    A scene is coloured by label, a recording by worker. No screen needed.

    Example: lapjoint picture run.zarr end.png --time 2.5 --color overlap --camera top
    """
    checked_path(file)
    if frame is not None and time is not None:
        raise LapjointError("--frame and --time are both given, expected one of them")
    if Path(scene).is_dir():
        recording = Recording(scene)
        number = -1 if frame is None else frame
        if time is not None:
            number = Recorded(recording, "label").nearest(time)
        shot = Shot(camera, zoom, follow=follow)
        drawn = frame_picture(
            recording,
            file,
            number,
            size=(width, height),
            mode=color or "worker",
            shot=shot,
            with_caption=caption,
        )
    else:
        given = {
            "--frame": frame is not None,
            "--time": time is not None,
            "--color": color not in (None, "label"),
            "--camera": camera != "scene",
            "--zoom": zoom != 1.0,
            "--follow": follow is not None,
            "--caption": caption,
        }
        for option, is_given in given.items():
            if is_given:
                raise LapjointError(f"{option} is given, but {scene} is no recording (a directory of --record)")
        drawn = draw(open_scene(scene, size, seed), file, size=(width, height))
    console.print(f"wrote {drawn}", markup=False)
