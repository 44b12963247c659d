"""Options of `lapjoint run --view`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ..errors import LapjointError
from .serving import PORT, checked_fps

PANEL = "Live view"
ViewOption = Annotated[
    bool,
    typer.Option(
        "--view", help="Watch and steer the run in a browser; without --steps until Ctrl-C.", rich_help_panel=PANEL
    ),
]
HostOption = Annotated[
    str | None,
    typer.Option(
        "--host",
        metavar="ADDRESS",
        help="With --view: where to listen; beyond this machine a token is needed.",
        rich_help_panel=PANEL,
    ),
]
PortOption = Annotated[
    int | None,
    typer.Option(
        "--port",
        metavar="N",
        min=0,
        max=65535,
        help=f"With --view: the port, 0 any free one. [default: {PORT}]",
        rich_help_panel=PANEL,
    ),
]
FpsOption = Annotated[
    float | None,
    typer.Option(
        "--fps", metavar="N", help="With --view: most frames per second. [default: 30]", rich_help_panel=PANEL
    ),
]
NoBrowserOption = Annotated[
    bool, typer.Option("--no-browser", help="With --view: open no browser.", rich_help_panel=PANEL)
]
NoWaitOption = Annotated[
    bool,
    typer.Option("--no-wait", help="With --view: start at once, before the first page is open.", rich_help_panel=PANEL),
]
BallsOption = Annotated[
    int | None,
    typer.Option(
        "--balls",
        metavar="N",
        min=0,
        max=64,
        help="With --view: most balls that were thrown at once; one more removes the first. [default: 8, and 0 with "
        "--record, --json, --measure or --checkpoint]",
        rich_help_panel=PANEL,
    ),
]


@dataclass
class LiveOptions:
    """What `run --view` is given."""

    host: str | None
    port: int | None
    fps: float | None
    balls: int | None
    no_browser: bool
    no_wait: bool = False
    can_restart: bool = True
    """Whether the run leaves no figures behind, which a restart would mix with those before it."""

    def check_unused(self) -> None:
        """Without --view: refuse them all."""
        given = {"--host": self.host, "--port": self.port, "--fps": self.fps, "--balls": self.balls}
        flags = {"--no-browser": self.no_browser or None, "--no-wait": self.no_wait or None}
        for option, value in {**given, **flags}.items():
            if value is not None:
                raise LapjointError(f"{option} is given without --view, expected both")

    def check(self, leaves_figures: bool) -> None:
        """Raise LapjointError for what cannot be, before anything starts. Figures that a run leaves behind are of the
        scene alone, and of one start."""
        checked_fps(30.0 if self.fps is None else self.fps)
        if leaves_figures and self.balls:
            raise LapjointError(
                f"--balls {self.balls} with --record, --json, --measure or --checkpoint: they would count the balls, "
                "expected --balls 0"
            )
        if leaves_figures:
            self.balls, self.can_restart = 0, False
