"""`lapjoint run`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..checkpoint.writer import check_checkpoint_place
from ..errors import LapjointError
from ..params import Params
from ..params.fields import OUTPUT, SIMULATED
from ..scene import Scene
from ..simulation import Simulation
from .auto_workers import auto_workers
from .carry_out import Reasons, carry_out, checked_count
from .extras import load
from .live_options import (
    BallsOption,
    FpsOption,
    HostOption,
    LiveOptions,
    NoBrowserOption,
    NoWaitOption,
    PortOption,
    ViewOption,
)
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
from .shared import KeyframeOption, SceneArgument, SeedOption, SizeOption, console, open_scene, say_coupling

if TYPE_CHECKING:
    from .live import LiveRun

STEPS = 500


@with_params(
    changes={
        "workers": Change(
            help="How many workers share the scene. auto: as many as pay on this machine, by trials of the first steps "
            "with 1, 2, 3, ... of them; 2..16: as many as the load is worth while it runs, from 2 to 16.",
            is_auto=True,
        )
    }
)
def run(
    scene: SceneArgument,
    given: Given,
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps", metavar="N", help=f"How many steps. [default: {STEPS}]", rich_help_panel=SIMULATED.title
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            metavar="S",
            help="How much simulated time, in place of --steps.",
            rich_help_panel=SIMULATED.title,
        ),
    ] = None,
    size: SizeOption = None,
    seed: SeedOption = 0,
    keyframe: KeyframeOption = None,
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
            help="Write checkpoints into this new directory; `lapjoint resume DIR` goes on from the newest.",
            rich_help_panel=OUTPUT.title,
        ),
    ] = None,
    checkpoint_every: CheckpointEveryOption = None,
    checkpoint_keep: CheckpointKeepOption = None,
    view: ViewOption = False,
    host: HostOption = None,
    port: PortOption = None,
    fps: FpsOption = None,
    balls: BallsOption = None,
    no_browser: NoBrowserOption = False,
    no_wait: NoWaitOption = False,
) -> None:
    """Simulate a scene and sum up how fast and how accurate it was.

    With --workers auto it prints how many workers it took and why; --workers with that number repeats it to the bit.

    Example: lapjoint run bowl --steps 1000 --iterations 100 --picture bowl.png

    Example: lapjoint run bridge --workers 4 --substeps 8

    Example: lapjoint run robot.xml --keyframe home --view
    """
    params = given.params()
    checked_count(steps, seconds, 1.0)
    outputs = Outputs(json_file, picture_file, record, record_every, measure, one_step_every, record_contacts)
    live_options = LiveOptions(host, port, fps, balls, no_browser, no_wait)
    if view:
        live_options.check(leaves_figures=checkpoint is not None or outputs.leaves_figures)
        load("--view")
    else:
        live_options.check_unused()
    check_checkpoint_counts(checkpoint_every, checkpoint_keep)
    if checkpoint is not None:
        check_checkpoint_place(checkpoint)
    elif checkpoint_every is not None or checkpoint_keep is not None:
        raise LapjointError("--checkpoint-every or --checkpoint-keep is given without --checkpoint, expected both")
    built = open_scene(scene, size, seed, keyframe)
    solver = given.solver(params, built)
    count = checked_count(steps, seconds, params.timestep or built.timestep)
    if count is None and not view:
        count = STEPS
    workers = None if "workers" in given.values else auto_workers(given, params, built, count)
    if workers is not None:
        params = replace(params, workers=workers.workers)
    choice = given.coupling(params, built)
    with _open(built, params, live_options if view else None) as (simulation, live):
        say_coupling(choice)
        if solver.reason is not None and solver.reason.startswith("--"):
            console.print(f"solver: {solver.solver}, because {solver.reason}", markup=False, soft_wrap=True)
        writer = None
        if checkpoint is not None:
            writer = checkpoint_writer(checkpoint, simulation, checkpoint_every, checkpoint_keep, count)
        reasons = Reasons(choice.reason, solver.reason, None if workers is None else workers.reason)
        carry_out(simulation, count, outputs, writer, live, reasons)


@contextmanager
def _open(scene: Scene, params: Params, options: LiveOptions | None) -> Iterator[tuple[Simulation, LiveRun | None]]:
    """The simulation, and the view on it with --view."""
    if options is None:
        with Simulation(scene, params) as simulation:
            yield simulation, None
    else:
        with load("--view").open_live(scene, params, options) as live:
            yield live.view.simulation, live
