"""`lapjoint resume`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..checkpoint import Checkpoint
from ..errors import LapjointError
from ..params.coupling_choice import CouplingChoice
from ..params.fields import OUTPUT, SIMULATED
from .carry_out import carry_out, checked_count
from .outputs import (
    CheckpointEveryOption,
    CheckpointKeepOption,
    JsonOption,
    MeasureOption,
    OneStepEveryOption,
    Outputs,
    PictureOption,
    RecordContactsOption,
    RecordEveryOption,
    RecordOption,
    check_checkpoint_counts,
    checkpoint_writer,
)
from .params_options import Change, Given, with_params
from .shared import console, counted

AS_BEFORE = "as before"


@with_params(
    only=["workers", "runtime", "address"],
    changes={
        "workers": Change(
            help="Another number of workers, or a range of them: the scene is repartitioned.", default=AS_BEFORE
        )
    },
    default=AS_BEFORE,
)
def resume(
    path: Annotated[
        Path, typer.Argument(metavar="DIR", help="A directory of checkpoints, to go on from the newest; or one file.")
    ],
    given: Given,
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps",
            metavar="N",
            help="How many steps more. [default: as many as the run had left]",
            rich_help_panel=SIMULATED.title,
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            metavar="S",
            help="How much simulated time more, in place of --steps.",
            rich_help_panel=SIMULATED.title,
        ),
    ] = None,
    json_file: JsonOption = None,
    picture_file: PictureOption = None,
    record: RecordOption = None,
    record_every: RecordEveryOption = None,
    record_contacts: RecordContactsOption = False,
    measure: MeasureOption = None,
    one_step_every: OneStepEveryOption = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            metavar="DIR",
            help="Write further checkpoints here. [default: beside the first]",
            rich_help_panel=OUTPUT.title,
        ),
    ] = None,
    checkpoint_every: CheckpointEveryOption = None,
    checkpoint_keep: CheckpointKeepOption = None,
) -> None:
    """Go on with a run from its checkpoint. With as many workers, states are bit for bit those of one that never
    stopped.

    Example: lapjoint resume run.checkpoints --workers 4
    """
    checked_count(steps, seconds, 1.0)
    outputs = Outputs(json_file, picture_file, record, record_every, measure, one_step_every, record_contacts)
    check_checkpoint_counts(checkpoint_every, checkpoint_keep)
    start = Checkpoint(path)
    coupling = start.params.coupling
    given.check_coupling(CouplingChoice(coupling, "the run began with it"))
    count = _step_count(start, steps, seconds)
    changed = dict(given.values)
    if "workers" in changed:
        changed.setdefault("max_workers", None)
    with start.resume(**changed) as simulation:
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
    assert start.params.timestep is not None
    count = checked_count(steps, seconds, start.params.timestep)
    if count is not None:
        return count
    if start.end is None or start.end <= start.step_count:
        done = counted(start.step_count, "step", form="")
        raise LapjointError(f"{start.path}: the run has done its {done}; --steps sets how many more")
    return start.end - start.step_count
