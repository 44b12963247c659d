"""What `run` and `resume` write: options, the checks before anything starts, and the writing at the end."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from ..checkpoint import CheckpointWriter
from ..errors import LapjointError
from ..measures.step import checked_names
from ..params.fields import OUTPUT
from ..recording.place import check_place
from ..run import RunSummary
from ..simulation import Simulation
from ..system.files import write_file
from .extras import load
from .shared import check_writable, make_parents

CHECKPOINT_EVERY, CHECKPOINT_KEEP = 1000, 3
PANEL = OUTPUT.title

JsonOption = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write the summary to this file.", rich_help_panel=PANEL),
]
PictureOption = Annotated[
    Path | None,
    typer.Option(
        "--picture", metavar="FILE.png", help="Write a picture of the last state (.png).", rich_help_panel=PANEL
    ),
]
RecordOption = Annotated[
    Path | None,
    typer.Option("--record", metavar="DIR", help="Record the run into this new directory.", rich_help_panel=PANEL),
]
RecordEveryOption = Annotated[
    int | None,
    typer.Option(
        "--record-every",
        metavar="N",
        help="Steps from one recorded frame to the next. [default: 1]",
        rich_help_panel=PANEL,
    ),
]
RecordContactsOption = Annotated[
    bool,
    typer.Option("--record-contacts", help="Keep the contacts of every recorded frame too.", rich_help_panel=PANEL),
]
MeasureOption = Annotated[
    str | None,
    typer.Option(
        "--measure",
        metavar="NAME,...",
        help="Measure more than gaps, penetration and residuals: kinetic_energy and so on, or all; not in the steps' "
        "time. See docs/measures.md.",
        rich_help_panel=PANEL,
    ),
]
OneStepEveryOption = Annotated[
    int | None,
    typer.Option(
        "--one-step-every",
        metavar="N",
        help="Measure the one-step error in every so many-th step: one engine takes the same step. [default: 1]",
        rich_help_panel=PANEL,
    ),
]
CheckpointEveryOption = Annotated[
    int | None,
    typer.Option(
        "--checkpoint-every",
        metavar="N",
        help=f"Steps from one checkpoint to the next. [default: {CHECKPOINT_EVERY}]",
        rich_help_panel=PANEL,
    ),
]
CheckpointKeepOption = Annotated[
    int | None,
    typer.Option(
        "--checkpoint-keep",
        metavar="N",
        help=f"How many of the newest checkpoints stay. [default: {CHECKPOINT_KEEP}]",
        rich_help_panel=PANEL,
    ),
]


@dataclass
class Outputs:
    """What a run writes besides checkpoints. Everything is checked when it is made, before anything starts."""

    json_file: Path | None
    picture_file: Path | None
    record: Path | None
    record_every: int | None
    measure: str | None
    one_step_every: int | None
    record_contacts: bool = False
    _picture: ModuleType | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        names = checked_names(self.measure) if self.measure is not None else ()
        if self.one_step_every is not None:
            names = checked_names((*names, "one_step_error", "one_step_difference"))
        self.measures = names
        self.leaves_figures = self.record is not None or self.json_file is not None or bool(names)
        for option, every in (("--record-every", self.record_every), ("--one-step-every", self.one_step_every)):
            if every is not None and every < 1:
                raise LapjointError(f"{option} is {every}, expected at least 1")
        if self.record is not None:
            check_place(self.record)
        elif self.record_every is not None or self.record_contacts:
            option = "--record-every" if self.record_every is not None else "--record-contacts"
            raise LapjointError(f"{option} is given without --record, expected both")
        check_writable("--json", self.json_file)
        check_writable("--picture", self.picture_file)
        if self.picture_file is not None:
            if self.picture_file.suffix.lower() != ".png":
                raise LapjointError(f"--picture {self.picture_file}: expected a name that ends in .png")
            self._picture = load("--picture")
            self._picture.check()

    def write(self, simulation: Simulation, summary: RunSummary) -> None:
        """Write the files that were asked for, besides the recording."""
        if self.json_file is not None:
            make_parents(self.json_file)
            write_file(self.json_file, json.dumps(summary.to_dict(), indent=2) + "\n")
        if self._picture is not None:
            self._picture.draw_last_state(simulation, self.picture_file)


def check_checkpoint_counts(every: int | None, keep: int | None) -> None:
    """Refuse what is no number of steps, or of checkpoints."""
    for option, value in (("--checkpoint-every", every), ("--checkpoint-keep", keep)):
        if value is not None and value < 1:
            raise LapjointError(f"{option} is {value}, expected at least 1")


def checkpoint_writer(
    directory: Path, simulation: Simulation, every: int | None, keep: int | None, count: int | None
) -> CheckpointWriter:
    """For a run of `count` steps from here, if that is known."""
    return CheckpointWriter(
        directory,
        simulation,
        every=every or CHECKPOINT_EVERY,
        keep=keep or CHECKPOINT_KEEP,
        end=None if count is None else simulation.step_count + count,
    )
