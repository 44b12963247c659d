"""The line that moves while a run takes its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..params.coupling_choice import traits
from ..simulation import Simulation
from .shared import console


@contextmanager
def step_progress(simulation: Simulation, count: int | None) -> Iterator[Callable[[int], None]]:
    """A bar, with tight coupling the last step's residual beside it; events are printed above it."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps{task.fields[residual]}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(simulation.scene.name, total=count, residual="")
        printed = 0

        def print_events() -> None:
            nonlocal printed
            for event in simulation.incidents[printed:]:
                progress.console.print(str(event), markup=False, highlight=False, soft_wrap=True)
            printed = len(simulation.incidents)

        def on_step(done: int) -> None:
            print_events()
            progress.update(task, completed=done, residual=residual_text(simulation))

        yield on_step
        print_events()


def residual_text(simulation: Simulation) -> str:
    """What the last step came to; nothing with another coupling."""
    profile = simulation.profile
    if not traits(simulation.params.coupling).exchanges:
        return ""
    return f", residual {profile.residual:.1e} m/s"
