"""`lapjoint bench`."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from ..errors import LapjointError
from ..params import Params
from ..params.params import ROUNDS
from ..studies.bench import BenchPlan, BenchRow, OnProgress, measure_all, write_csv, write_json
from ..studies.peers import PEER_NAMES, ComparedRow, PeerPlan, measure_peers
from .bench_tables import print_tables
from .coupling import (
    AccelerationOption,
    JointsTogetherOption,
    JointWarmStartOption,
    TightOptions,
    ToleranceOption,
    check_overlap_options,
)
from .peer_tables import print_peers
from .shared import (
    AddressOption,
    AlgorithmsOption,
    BalanceOption,
    DetectOption,
    GrowthDepthOption,
    LingerOption,
    LoadOption,
    PartitionOption,
    PlacementOption,
    PrecisionOption,
    RepartitionOption,
    RuntimeOption,
    SearchDepthOption,
    SeedOption,
    SendOption,
    SizeOption,
    TimestepOption,
    WeightsOption,
    check_writable,
    console,
    open_scene,
)

DRAW_S = 0.2  # the bar is drawn no more often than this, between two steps


def bench(
    scenes: Annotated[
        list[str], typer.Argument(metavar="SCENE", help="Scenes' names (see `lapjoint scenes`) or saved scene files.")
    ],
    workers: Annotated[
        list[int], typer.Option("--workers", metavar="N...", help="Counts of workers; 1 is measured in any case.")
    ] = [1, 2, 4, 8],  # noqa: B006
    iterations: Annotated[
        list[int], typer.Option("--iterations", metavar="N...", help="Solver sweeps per step; rows for each.")
    ] = [1000],  # noqa: B006
    steps: Annotated[int, typer.Option("--steps", help="Measured steps per repetition.")] = 20,
    rounds: Annotated[int, typer.Option("--rounds", help="Repetitions; in each, every count takes its steps.")] = 3,
    warmup: Annotated[
        int, typer.Option("--warmup", help="Steps before anything is measured, with at most 10 iterations.")
    ] = 200,
    size: SizeOption = None,
    seed: SeedOption = 0,
    growth_depth: GrowthDepthOption = None,
    search_depth: SearchDepthOption = None,
    partition: PartitionOption = "auto",
    runtime: RuntimeOption = "process",
    address: AddressOption = None,
    placement: PlacementOption = "spread",
    send: SendOption = "all",
    couplings: Annotated[
        list[str],
        typer.Option(
            "--coupling",
            metavar="NAME...",
            help="How workers' results become one: blend, tight, or both side by side. See docs/coupling.md.",
        ),
    ] = ["blend"],  # noqa: B006
    step_rounds: Annotated[
        int | None,
        typer.Option(
            "--step-rounds",
            help="With --coupling tight: exchanges within a step, at most: what `lapjoint run` calls --rounds. "
            f"Default {ROUNDS}.",
        ),
    ] = None,
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
    engines: Annotated[
        list[str],
        typer.Option("--engine", metavar="NAME...", help="Physics engines (see `lapjoint engines`), side by side."),
    ] = ["bullet"],  # noqa: B006
    precision: PrecisionOption = "float32",
    timestep: TimestepOption = None,
    peers: Annotated[
        list[str] | None,
        typer.Option("--peer", metavar="NAME...", help=f"Other engines on the same scene: {', '.join(PEER_NAMES)}."),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the rows to this file.")] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the rows to this file.")] = None,
) -> None:
    """Measure scenes on several counts of workers, side by side.

    Prints ms per step, the speed-up against one worker and, where there are more workers than cores, the projected one.
    With --peer also speed and error of other engines, at several settings each.

    Example: lapjoint bench bowl building --workers 1 2 4 8 --iterations 1000 50 --json bench.json

    Example: lapjoint bench bowl --workers 1 2 --iterations 50 --engine bullet rapier

    Example: lapjoint bench bridge --workers 1 2 4 --iterations 100 --coupling blend tight --step-rounds 20

    Example: lapjoint bench bowl --workers 1 2 --iterations 50 --peer pybullet mujoco rapier
    """
    params = Params(
        runtime=runtime,
        address=address,
        placement=placement,
        send=send,
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
        engine=engines[0],
        precision=precision,
        timestep=timestep,
    )
    tight = TightOptions(step_rounds, tolerance, joint_warm_start, acceleration, joints_together)
    settings = [_coupled(params, tight, coupling, len(couplings)) for coupling in couplings]
    if "tight" not in couplings:
        tight.check(couplings[0], {"rounds": "--step-rounds"})
    check_writable("--json", json_file)
    check_writable("--csv", csv_file)
    if json_file is not None and csv_file is not None and json_file.resolve() == csv_file.resolve():
        raise LapjointError(f"--json and --csv are both {json_file}, expected two files")
    for scene in scenes:
        if scenes.count(scene) > 1:
            raise LapjointError(f"scene {scene!r} is given more than once")
    built = [open_scene(scene, size, seed) for scene in scenes]
    for option, names in (("engine", engines), ("coupling", couplings)):
        for name in names:
            if names.count(name) > 1:
                raise LapjointError(f"{option} {name!r} is given more than once")
    plans = [
        BenchPlan(built, workers, replace(coupled, engine=engine), iterations, steps, rounds, warmup)
        for engine in engines
        for coupled in settings
    ]
    if peers and len(plans) > 1:
        several = "engines" if len(engines) > 1 else "couplings"
        raise LapjointError(f"--peer is given with several {several}, expected one {several[:-1]} beside peers")
    beside = PeerPlan(plans[0], peers) if peers else None
    rows: list[BenchRow] = []
    compared: list[ComparedRow] = []

    def show() -> None:
        print_tables(rows)
        if beside is not None:
            print_peers(compared, beside.notes())

    try:
        with _progress_bar() as progress:
            tell = _drawing(progress)
            for row in measure_all(plans, tell) if beside is None else measure_peers(beside, tell):
                if isinstance(row, ComparedRow):
                    compared.append(row)
                if isinstance(row, BenchRow) or row.side.peer is None:
                    rows.append(row if isinstance(row, BenchRow) else row.bench)
                if json_file is not None:
                    write_json(compared or rows, json_file)
                if csv_file is not None:
                    write_csv(compared or rows, csv_file)
    except KeyboardInterrupt:
        show()
        done = sum(row.repetitions for row in rows if row.workers == 1)
        console.print(f"interrupted after {done} of {len(plans) * len(built) * len(iterations) * rounds} repetitions")
        raise typer.Exit(130) from None
    except LapjointError:
        show()
        raise
    show()


def _coupled(params: Params, tight: TightOptions, coupling: str, count: int) -> Params:
    """Parameters with a coupling. Beside another one, it leaves alone what is said of that."""
    if coupling == "blend":
        return replace(params, coupling="blend")
    chosen = replace(params, coupling=coupling, **tight.given)
    if count == 1:
        check_overlap_options(chosen)
    return chosen


def _progress_bar() -> Progress:
    """Drawn by hand, between two steps: a thread that draws would take its time from the server's."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
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


def _drawing(progress: Progress) -> OnProgress:
    task = progress.add_task("", total=1.0)
    drawn = float("-inf")

    def draw(doing: str, share: float) -> None:
        nonlocal drawn
        if time.monotonic() - drawn >= DRAW_S:
            progress.update(task, description=doing, completed=share, refresh=True)
            drawn = time.monotonic()

    return draw
