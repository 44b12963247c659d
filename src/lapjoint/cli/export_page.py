"""A recording as one page that plays by itself: `lapjoint view --export`, and `lapjoint export` to .html."""

from __future__ import annotations

from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from ..recording import Recording
from ..view.export.export import export
from .shared import console, counted


def export_recording(
    run: Path, file: Path, every: int | None = None, limit_mb: float = 50.0, color: str = "worker"
) -> None:
    """Write the page, with a progress bar, and print what was written."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TextColumn("frames"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(file.name, total=None)
        done = export(
            Recording(run),
            file,
            every=every,
            limit_mb=limit_mb,
            mode=color,
            on_frame=lambda number, count: progress.update(task, completed=number, total=count),
        )
    which = "every frame" if done.every == 1 else f"1 of {done.every} frames"
    frames = counted(done.frame_count, "frame", form="")
    console.print(
        f"wrote {done.path}: {frames} ({which} of the recording), {done.byte_count / 1e6:.2f} MB",
        markup=False,
        soft_wrap=True,
    )
