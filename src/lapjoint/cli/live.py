"""`lapjoint run --view`: its options, and the view that goes with a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import LapjointError
from ..params import Params
from ..scene import Scene
from .shared import console
from .view import PORT, announce, checked_fps, until_interrupted

if TYPE_CHECKING:
    from ..view.page.live import LiveView

BALLS = 8
HostOption = Annotated[
    str | None, typer.Option("--host", help="With --view: where to listen; beyond this machine a token is needed.")
]
PortOption = Annotated[
    int | None, typer.Option("--port", min=0, max=65535, help=f"With --view: the port, 0 any free one. Default {PORT}.")
]
FpsOption = Annotated[float | None, typer.Option("--fps", help="With --view: most frames per second. Default 30.")]
NoBrowserOption = Annotated[bool, typer.Option("--no-browser", help="With --view: open no browser.")]
NoWaitOption = Annotated[
    bool, typer.Option("--no-wait", help="With --view: start at once, before the first page is open.")
]
BallsOption = Annotated[
    int | None,
    typer.Option(
        "--balls",
        min=0,
        max=64,
        help=f"With --view: balls in reserve to throw, which are no bodies of the scene. Default {BALLS}, and 0 with "
        "--record, --json, --measure or --checkpoint.",
    ),
]


@dataclass
class LiveOptions:
    """Options of `run --view`."""

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
        from ..view.page import require_viser

        require_viser()
        checked_fps(30.0 if self.fps is None else self.fps)
        if leaves_figures and self.balls:
            raise LapjointError(
                f"--balls {self.balls} with --record, --json, --measure or --checkpoint: they would count the balls, "
                "expected --balls 0"
            )
        if leaves_figures:
            self.balls, self.can_restart = 0, False

    @property
    def ball_count(self) -> int:
        return BALLS if self.balls is None else self.balls


@contextmanager
def open_live(scene: Scene, params: Params, options: LiveOptions) -> Iterator[LiveView]:
    """A simulation with a view on it."""
    from ..view.page.access import Access
    from ..view.page.balls import simulation_with_balls
    from ..view.page.live import LiveView

    access = Access.of(options.host or "localhost")
    port = PORT if options.port is None else options.port
    with simulation_with_balls(scene, params, options.ball_count) as simulation:
        count = simulation.scene.body_count - scene.body_count
        with LiveView(
            simulation,
            ball_count=count,
            access=access,
            port=port,
            fps=options.fps or 30.0,
            wait=not options.no_wait,
            can_restart=options.can_restart,
        ) as view:
            announce(view.page.address, options.no_browser)
            if view.is_waiting:
                console.print("waiting for the first page to open; --no-wait starts at once", markup=False)
            yield view


def stay(view: LiveView) -> None:
    """Show the last state until Ctrl-C."""
    with until_interrupted() as interrupted:
        view.stay(interrupted)
