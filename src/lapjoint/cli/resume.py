"""`lapjoint resume`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..checkpoint import Checkpoint
from ..errors import LapjointError
from .coupling import RoundsOption, TightOptions, ToleranceOption
from .run import Outputs, carry_out, check_checkpoint_counts, checkpoint_writer
from .shared import (
    AddressOption,
    CheckpointEveryOption,
    CheckpointKeepOption,
    JsonOption,
    MeasureOption,
    OneStepEveryOption,
    PictureOption,
    RecordContactsOption,
    RecordEveryOption,
    RecordOption,
    console,
    worker_range,
)


def resume(
    path: Annotated[
        Path, typer.Argument(metavar="DIR", help="A directory of checkpoints, to go on from the newest; or one file.")
    ],
    steps: Annotated[
        int | None, typer.Option("--steps", help="How many steps more. Default: as many as the run had left.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="How much simulated time more, in place of --steps.")
    ] = None,
    workers: Annotated[
        str | None,
        typer.Option("--workers", help="Another number of workers, or a range of them: the scene is divided anew."),
    ] = None,
    runtime: Annotated[
        str | None, typer.Option("--runtime", help="Another place for workers: process, inline or ray.")
    ] = None,
    address: AddressOption = None,
    rounds: RoundsOption = None,
    tolerance: ToleranceOption = None,
    json_file: JsonOption = None,
    picture_file: PictureOption = None,
    record: RecordOption = None,
    record_every: RecordEveryOption = None,
    record_contacts: RecordContactsOption = False,
    measure: MeasureOption = None,
    one_step_every: OneStepEveryOption = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", metavar="DIR", help="Write further checkpoints here. Default: beside the first."),
    ] = None,
    checkpoint_every: CheckpointEveryOption = None,
    checkpoint_keep: CheckpointKeepOption = None,
) -> None:
    """Go on with a run from its checkpoint. With as many workers, states are bit for bit those of one that never
    stopped.

    Example: lapjoint resume run.checkpoints --workers 4
    """
    if steps is not None and seconds is not None:
        raise LapjointError("--steps and --seconds are both given, expected one of them")
    outputs = Outputs(json_file, picture_file, record, record_every, measure, one_step_every, record_contacts)
    check_checkpoint_counts(checkpoint_every, checkpoint_keep)
    start = Checkpoint(path)
    tight = TightOptions(rounds, tolerance)
    tight.check(start.params.coupling)
    count = _step_count(start, steps, seconds)
    places = {"runtime": runtime, "address": address}
    changed: dict[str, Any] = {name: value for name, value in places.items() if value is not None}
    changed |= tight.given
    if workers is not None:
        changed["workers"], changed["max_workers"] = worker_range(workers)
    with start.resume(**changed) as simulation:
        coupling = start.params.coupling
        console.print(f"going on from step {start.step_count}, coupling {coupling}: {start.path}", markup=False)
        writer = checkpoint_writer(
            checkpoint or start.path.parent,
            simulation,
            checkpoint_every or start.every or None,
            checkpoint_keep or start.keep,
            count,
        )
        carry_out(simulation, count, outputs, writer)


def _step_count(start: Checkpoint, steps: int | None, seconds: float | None) -> int:
    if seconds is not None:
        if not 0 < seconds < float("inf"):
            raise LapjointError(f"--seconds is {seconds}, expected a positive number")
        assert start.params.timestep is not None
        return max(1, round(seconds / start.params.timestep))
    if steps is not None:
        if steps < 1:
            raise LapjointError(f"--steps is {steps}, expected at least 1")
        return steps
    if start.end is None or start.end <= start.step_count:
        raise LapjointError(f"{start.path}: the run has done its {start.step_count} steps; --steps says how many more")
    return start.end - start.step_count
