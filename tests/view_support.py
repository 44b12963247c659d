"""What the tests of views share: a live view in a thread, and waiting for conditions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lapjoint import Params, Scene, Simulation
from lapjoint.view.page.access import Access
from lapjoint.view.page.balls import BALLS
from lapjoint.view.page.live import LiveView

LIMIT_S = 120.0


def wait_until(condition: Callable[[], object], what: str, limit_s: float = LIMIT_S, pause_s: float = 0.02) -> None:
    """Wait long, on a condition."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"waited {limit_s:g} s for: {what}"
        time.sleep(pause_s)


@contextmanager
def live_view(
    scene: Scene,
    params: Params,
    *,
    ball_count: int = BALLS,
    access: Access | None = None,
    folder: Path | None = None,
    wait: bool = False,
) -> Iterator[LiveView]:
    """A view on a simulation that runs in a thread of its own."""
    ended, ready = threading.Event(), threading.Event()
    views: list[LiveView] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with (
                Simulation(scene, params) as simulation,
                LiveView(
                    simulation, ball_count=ball_count, access=access, port=0, fps=12, folder=folder, wait=wait
                ) as view,
            ):
                views.append(view)
                ready.set()
                while view.gate(ended.is_set):
                    simulation.step()
        except BaseException as error:
            errors.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert ready.wait(LIMIT_S)
        if views:
            yield views[0]
    finally:
        ended.set()
        thread.join()
    if errors:
        raise errors[0]
