"""The run itself, as `run` and `resume` have it: steps with progress, the summary, and what is written."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..checkpoint import CheckpointWriter
from ..errors import LapjointError
from ..run import run as run_simulation
from ..simulation import Simulation
from .outputs import Outputs, checkpoint_writer
from .progress import step_progress
from .shared import console, counted
from .summary_table import summary_table

if TYPE_CHECKING:
    from .live import LiveRun


@dataclass(frozen=True)
class Reasons:
    """Why a run has what the command line chose for it, for the summary; None where it was given."""

    coupling_reason: str | None = None
    solver_reason: str | None = None
    workers_reason: str | None = None


def carry_out(
    simulation: Simulation,
    count: int | None,
    outputs: Outputs,
    checkpoints: CheckpointWriter | None,
    live: LiveRun | None = None,
    reasons: Reasons | None = None,
) -> None:
    """Take `count` steps and write what was asked for. Exit code 130 if they were interrupted."""
    with step_progress(simulation, count) as on_step:
        summary = run_simulation(
            simulation,
            count,
            on_step,
            measure=outputs.measures,
            one_step_every=outputs.one_step_every or 1,
            record=outputs.record,
            record_every=outputs.record_every or 1,
            record_contacts=outputs.record_contacts,
            checkpoints=checkpoints,
            gate=None if live is None else live.gate,
        )
    summary = replace(summary, **asdict(reasons or Reasons()))
    console.print(summary_table(summary))
    if outputs.record is not None:
        console.print(f"recording: {outputs.record}", markup=False)
    outputs.write(simulation, summary)
    if checkpoints is None and summary.stopped is not None:
        checkpoints = _rescue(simulation, None if count is None else count - summary.steps)
    if checkpoints is not None and checkpoints.saved_step is not None:
        console.print(f"checkpoint at step {checkpoints.saved_step}: {checkpoints.path}", markup=False)
    if summary.stopped is not None:
        raise LapjointError(summary.stopped)
    if live is not None and summary.steps == count:
        live.stay()
    if count is not None and summary.steps < count:
        console.print(f"interrupted after {summary.steps} of {counted(count, 'step', form='')}")
        raise typer.Exit(130)


def checked_count(steps: int | None, seconds: float | None, timestep: float) -> int | None:
    """How many steps --steps or --seconds stand for; None where neither is given."""
    if steps is not None and seconds is not None:
        raise LapjointError("--steps and --seconds are both given, expected one of them")
    if seconds is not None:
        if not 0 < seconds < float("inf"):
            raise LapjointError(f"--seconds is {seconds}, expected a positive number")
        return max(1, round(seconds / timestep))
    if steps is not None and steps < 1:
        raise LapjointError(f"--steps is {steps}, expected at least 1")
    return steps


def _rescue(simulation: Simulation, count: int | None) -> CheckpointWriter:
    """Of a run that a failure stopped and that has no place for checkpoints: one in the current directory."""
    name = re.sub(r"[^\w.-]+", "-", simulation.scene.name).strip(".-") or "run"  # a scene's name may be a stranger's
    for suffix in ("", *(f"-{n}" for n in range(2, 1000))):
        place = Path(f"{name}-stopped{suffix}")
        if place.exists():
            continue
        try:
            writer = checkpoint_writer(place, simulation, None, None, count)
        except LapjointError:
            if place.exists():  # another run that was stopped was faster
                continue
            raise
        writer.save(simulation)
        return writer
    raise LapjointError(f"{place}: is there already, expected a name that is free for a checkpoint")
