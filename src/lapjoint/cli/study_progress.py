"""The bar of studies that take minutes: `bench` and `reproduce`."""

from __future__ import annotations

import time

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from ..studies.bench import OnProgress
from .shared import console

DRAW_S = 0.2  # the bar is drawn no more often than this, between two steps


def study_progress() -> Progress:
    """Drawn by hand, between two steps: a thread that draws would take its time from the server's."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    return Progress(
        *columns,
        console=console,
        transient=True,
        auto_refresh=False,
        speed_estimate_period=3600,
        disable=not console.is_terminal,
    )


def drawing(progress: Progress) -> OnProgress:
    """The function that a study calls between its steps."""
    task = progress.add_task("", total=1.0)
    drawn = float("-inf")

    def draw(doing: str, share: float) -> None:
        nonlocal drawn
        if time.monotonic() - drawn >= DRAW_S:
            progress.update(task, description=doing, completed=share, refresh=True)
            drawn = time.monotonic()

    return draw
