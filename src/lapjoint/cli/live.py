"""The view that goes with `lapjoint run --view`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..params import Params
from ..scene import Scene
from ..simulation import Simulation
from ..view.page.access import Access
from ..view.page.balls import BALLS
from ..view.page.live import LiveView
from .live_options import LiveOptions
from .serving import PORT, announce, until_interrupted
from .shared import console


class LiveRun:
    """A run that is watched in a browser."""

    def __init__(self, view: LiveView, no_browser: bool) -> None:
        self.view = view
        self._no_browser = no_browser
        self._is_announced = False

    def gate(self, interrupted: Callable[[], bool]) -> bool:
        """The view's gate. Before the first step it says where the view is: from then on Ctrl-C ends with a summary."""
        if not self._is_announced:
            self._is_announced = True
            announce(self.view.page.address, self._no_browser)
            if self.view.is_waiting:
                console.print("waiting for the first page to open; --no-wait starts at once", markup=False)
        return self.view.gate(interrupted)

    def stay(self) -> None:
        """Show the last state until Ctrl-C, which from the moment this is said ends in order."""
        with until_interrupted() as interrupted:
            console.print("the steps are done; the view stays until Ctrl-C")
            self.view.stay(interrupted)


@contextmanager
def open_live(scene: Scene, params: Params, options: LiveOptions) -> Iterator[LiveRun]:
    """A simulation with a view on it."""
    access = Access.of(options.host or "localhost")
    port = PORT if options.port is None else options.port
    with (
        Simulation(scene, params) as simulation,
        LiveView(
            simulation,
            ball_count=BALLS if options.balls is None else options.balls,
            access=access,
            port=port,
            fps=options.fps or 30.0,
            wait=not options.no_wait,
            can_restart=options.can_restart,
        ) as view,
    ):
        yield LiveRun(view, options.no_browser)
