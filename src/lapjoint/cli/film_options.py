"""Options of the commands that draw recordings."""

from __future__ import annotations

from typing import Annotated

import typer

ColorOption = Annotated[
    str | None,
    typer.Option(
        "--color",
        metavar="MODE",
        help="What colours mean: worker, overlap (of blend), interface (of tight coupling), label, speed or contacts. "
        "Default: worker.",
    ),
]
CameraOption = Annotated[
    str,
    typer.Option(
        "--camera",
        metavar="NAME",
        help="From where: scene, all, front, back, left, right, top, corner, or six numbers: x,y,z of the eye and of "
        "what it looks at.",
    ),
]
ZoomOption = Annotated[float, typer.Option("--zoom", metavar="X", help="Bring the camera that many times as near.")]
FollowOption = Annotated[
    str | None, typer.Option("--follow", metavar="BODY", help="Keep this body, by number or name, in the middle.")
]
WidthOption = Annotated[int, typer.Option("--width", metavar="N", min=16, max=8192, help="Pixels.")]
HeightOption = Annotated[int, typer.Option("--height", metavar="N", min=16, max=8192, help="Pixels.")]
