"""`lapjoint run`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..checkpoint import CheckpointWriter
from ..checkpoint.writer import check_checkpoint_place
from ..errors import LapjointError
from ..measures.step import checked_names
from ..params import Params
from ..recording.place import check_place
from ..run import run as run_simulation
from ..scene import Scene
from ..simulation import Simulation
from .coupling import (
    AccelerationOption,
    CouplingOption,
    JointsTogetherOption,
    JointWarmStartOption,
    RoundsOption,
    TightOptions,
    ToleranceOption,
    check_overlap_options,
)
from .live import BallsOption, LiveOptions, NoWaitOption, open_live, stay
from .live import FpsOption as LiveFpsOption
from .live import HostOption as LiveHostOption
from .live import NoBrowserOption as LiveNoBrowserOption
from .live import PortOption as LivePortOption
from .progress import step_progress
from .shared import (
    AddressOption,
    AlgorithmsOption,
    BalanceOption,
    CheckpointEveryOption,
    CheckpointKeepOption,
    DetectOption,
    EngineOption,
    GrowthDepthOption,
    JsonOption,
    LingerOption,
    LoadOption,
    MeasureOption,
    OneStepEveryOption,
    PartitionOption,
    PictureOption,
    PlacementOption,
    PrecisionOption,
    RecordContactsOption,
    RecordEveryOption,
    RecordOption,
    RepartitionOption,
    RuntimeOption,
    SceneArgument,
    SearchDepthOption,
    SeedOption,
    SendOption,
    SizeOption,
    SolverOption,
    TimestepOption,
    WeightsOption,
    check_writable,
    console,
    open_scene,
    worker_range,
)
from .summary_table import summary_table

if TYPE_CHECKING:
    from ..view.page.live import LiveView

CHECKPOINT_EVERY, CHECKPOINT_KEEP = 1000, 3


def run(
    scene: SceneArgument,
    steps: Annotated[int | None, typer.Option("--steps", help="How many steps. Default 500.")] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="How much simulated time, in place of --steps.")
    ] = None,
    workers: Annotated[
        str,
        typer.Option(
            "--workers",
            metavar="N or N..M",
            help="How many workers share the scene; 2..16: as many as the load is worth, from 2 to 16.",
        ),
    ] = "1",
    growth_depth: GrowthDepthOption = None,
    search_depth: SearchDepthOption = None,
    partition: PartitionOption = "auto",
    runtime: RuntimeOption = "process",
    address: AddressOption = None,
    placement: PlacementOption = "spread",
    send: SendOption = "all",
    coupling: CouplingOption = "auto",
    rounds: RoundsOption = None,
    tolerance: ToleranceOption = None,
    joint_warm_start: JointWarmStartOption = None,
    acceleration: AccelerationOption = None,
    joints_together: JointsTogetherOption = None,
    detect: DetectOption = "workers",
    balance: BalanceOption = "pruned",
    load: LoadOption = "contacts",
    linger: LingerOption = 20,
    repartition: RepartitionOption = 1.05,
    weights: WeightsOption = "depth",
    algorithms: AlgorithmsOption = "native",
    validate: Annotated[bool, typer.Option("--validate", help="Check every invariant in every step.")] = False,
    size: SizeOption = None,
    seed: SeedOption = 0,
    engine: EngineOption = ["bullet"],  # noqa: B006
    precision: PrecisionOption = "float32",
    solver: SolverOption = ["sequential"],  # noqa: B006
    timestep: TimestepOption = None,
    iterations: Annotated[
        int | None, typer.Option("--iterations", help="Solver sweeps per step: more is more accurate and slower.")
    ] = None,
    on_failure: Annotated[
        str,
        typer.Option(
            "--on-failure", help="When a worker dies, hangs or fails: replace it and repeat its step, or stop."
        ),
    ] = "replace",
    hang_limit: Annotated[
        float, typer.Option("--hang-limit", help="Seconds without an answer from which a worker hangs, at least.")
    ] = 5.0,
    quarantine: Annotated[
        bool, typer.Option("--quarantine", help="Freeze bodies that run away or become NaN, and go on with the rest.")
    ] = False,
    speed_limit: Annotated[
        float | None,
        typer.Option("--speed-limit", help="m/s from which --quarantine freezes. Default: the scene in one step."),
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
            help="Write checkpoints into this new directory; `lapjoint resume DIR` goes on from the newest.",
        ),
    ] = None,
    checkpoint_every: CheckpointEveryOption = None,
    checkpoint_keep: CheckpointKeepOption = None,
    view: Annotated[
        bool, typer.Option("--view", help="Watch and steer the run in a browser; without --steps until Ctrl-C.")
    ] = False,
    host: LiveHostOption = None,
    port: LivePortOption = None,
    fps: LiveFpsOption = None,
    balls: BallsOption = None,
    no_browser: LiveNoBrowserOption = False,
    no_wait: NoWaitOption = False,
) -> None:
    """Simulate a scene and sum up how fast and how accurate it was.

    Example: lapjoint run bowl --steps 1000 --iterations 100 --picture bowl.png

    Example: lapjoint run bridge --workers 4 --coupling tight --rounds 20 --tolerance 1e-4
    """
    if steps is not None and seconds is not None:
        raise LapjointError("--steps and --seconds are both given, expected one of them")
    least, most = worker_range(workers)
    tight = TightOptions(rounds, tolerance, joint_warm_start, acceleration, joints_together)
    params = Params(
        workers=least,
        max_workers=most,
        runtime=runtime,
        address=address,
        placement=placement,
        send=send,
        coupling=coupling,
        partition=partition,
        growth_depth=growth_depth,
        search_depth=search_depth,
        detect=detect,
        balance=balance,
        load=load,
        linger=linger,
        repartition=repartition,
        weights=weights,
        algorithms=algorithms,
        validate=validate,
        engine=",".join(engine),
        precision=precision,
        solver=",".join(solver),
        timestep=timestep,
        iterations=iterations,
        on_failure=on_failure,
        hang_limit=hang_limit,
        quarantine=quarantine,
        speed_limit=speed_limit,
        **tight.given,
    )
    if coupling != "auto":
        tight.check(coupling)
    check_overlap_options(params)
    outputs = Outputs(json_file, picture_file, record, record_every, measure, one_step_every, record_contacts)
    live_options = LiveOptions(host, port, fps, balls, no_browser, no_wait)
    if view:
        live_options.check(leaves_figures=checkpoint is not None or outputs.leaves_figures)
    else:
        live_options.check_unused()
    check_checkpoint_counts(checkpoint_every, checkpoint_keep)
    if checkpoint is not None:
        check_checkpoint_place(checkpoint)
    elif checkpoint_every is not None or checkpoint_keep is not None:
        raise LapjointError("--checkpoint-every or --checkpoint-keep is given without --checkpoint, expected both")
    built = open_scene(scene, size, seed)
    tight.check(params.resolved(built).coupling)
    length = params.timestep or built.timestep
    count = None if view and steps is None else 500 if steps is None else steps
    if seconds is not None:
        if not 0 < seconds < float("inf"):
            raise LapjointError(f"--seconds is {seconds}, expected a positive number")
        count = max(1, round(seconds / length))
    if count is not None and count < 1:
        raise LapjointError(f"--steps is {count}, expected at least 1")
    with _open(built, params, live_options if view else None) as (simulation, live):
        writer = None
        if checkpoint is not None:
            writer = checkpoint_writer(checkpoint, simulation, checkpoint_every, checkpoint_keep, count)
        carry_out(simulation, count, outputs, writer, live)


@contextmanager
def _open(scene: Scene, params: Params, options: LiveOptions | None) -> Iterator[tuple[Simulation, LiveView | None]]:
    """The simulation, and the view on it if there is to be one."""
    if options is None:
        with Simulation(scene, params) as simulation:
            yield simulation, None
    else:
        with open_live(scene, params, options) as live:
            yield live.simulation, live


@dataclass
class Outputs:
    """What a run writes besides checkpoints; options that do not fit are refused before anything starts."""

    json_file: Path | None
    picture_file: Path | None
    record: Path | None
    record_every: int | None
    measure: str | None
    one_step_every: int | None
    record_contacts: bool = False

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
            from ..view.draw.picture import checked_path

            checked_path(self.picture_file)


def check_checkpoint_counts(every: int | None, keep: int | None) -> None:
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


def carry_out(
    simulation: Simulation,
    count: int | None,
    outputs: Outputs,
    checkpoints: CheckpointWriter | None,
    live: LiveView | None = None,
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
    if live is not None:
        summary = live.without_balls(summary)
    console.print(summary_table(summary))
    if outputs.record is not None:
        console.print(f"recording: {outputs.record}", markup=False)
    if outputs.json_file is not None:
        outputs.json_file.write_text(json.dumps(summary.to_dict(), indent=2) + "\n")
    if outputs.picture_file is not None:
        _draw_last_state(simulation, outputs.picture_file)
    if checkpoints is None and summary.stopped is not None:
        checkpoints = _rescue(simulation, None if count is None else count - summary.steps)
    if checkpoints is not None and checkpoints.saved_step is not None:
        console.print(f"checkpoint at step {checkpoints.saved_step}: {checkpoints.path}", markup=False)
    if summary.stopped is not None:
        raise LapjointError(summary.stopped)
    if live is not None and summary.steps == count:
        console.print("the steps are done; the view stays until Ctrl-C")
        stay(live)
    if count is not None and summary.steps < count:
        console.print(f"interrupted after {summary.steps} of {count} steps")
        raise typer.Exit(130)


def _rescue(simulation: Simulation, count: int | None) -> CheckpointWriter:
    """Of a run that a failure stopped and that has no place for checkpoints: one in the current directory."""
    names = (Path(f"{simulation.scene.name}-stopped{suffix}") for suffix in ("", *(f"-{n}" for n in range(2, 1000))))
    writer = checkpoint_writer(next(name for name in names if not name.exists()), simulation, None, None, count)
    writer.save(simulation)
    return writer


def _draw_last_state(simulation: Simulation, file: Path) -> None:
    """Coloured by worker, overlap bodies mixed by their weights (Figure 1), or with tight coupling bodies inside paler
    than those at the interface; by label with one worker."""
    from ..view.draw.coloring import body_colors
    from ..view.draw.picture import picture as draw

    mode = "interface" if simulation.params.coupling == "tight" else "worker"
    colors = None
    if simulation.membership.worker_count > 1:
        colors = body_colors(mode, weights=simulation.weights(), interface=simulation.interface)
    draw(simulation.scene, file, simulation.states, colors=colors)
    console.print(f"picture of the last state: {file}", markup=False)
