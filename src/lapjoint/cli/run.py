"""`lapjoint run`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..errors import LapjointError
from ..params import Params
from ..run import RunSummary
from ..run import run as run_simulation
from ..simulation import Simulation
from .shared import (
    AlgorithmsOption,
    BalanceOption,
    CouplingOption,
    DetectOption,
    EngineOption,
    GrowthDepthOption,
    PartitionOption,
    PrecisionOption,
    RuntimeOption,
    SceneArgument,
    SearchDepthOption,
    SeedOption,
    SizeOption,
    TimestepOption,
    WeightsOption,
    check_writable,
    console,
    open_scene,
)


def run(
    scene: SceneArgument,
    steps: Annotated[int | None, typer.Option("--steps", help="How many steps. Default 500.")] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="How much simulated time, in place of --steps.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", help="How many workers share the scene.")] = 1,
    growth_depth: GrowthDepthOption = None,
    search_depth: SearchDepthOption = None,
    partition: PartitionOption = "auto",
    runtime: RuntimeOption = "process",
    coupling: CouplingOption = "blend",
    detect: DetectOption = "workers",
    balance: BalanceOption = "pruned",
    weights: WeightsOption = "depth",
    algorithms: AlgorithmsOption = "native",
    validate: Annotated[bool, typer.Option("--validate", help="Check every invariant in every step.")] = False,
    size: SizeOption = None,
    seed: SeedOption = 0,
    engine: EngineOption = "bullet",
    precision: PrecisionOption = "float32",
    timestep: TimestepOption = None,
    iterations: Annotated[
        int | None, typer.Option("--iterations", help="Solver sweeps per step: more is more accurate and slower.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the summary to this file.")] = None,
    picture_file: Annotated[
        Path | None, typer.Option("--picture", help="Write a picture of the last state (.png).")
    ] = None,
) -> None:
    """Simulate a scene and sum up how fast and how accurate it was.

    Example: lapjoint run bowl --steps 1000 --iterations 100 --picture bowl.png
    """
    if steps is not None and seconds is not None:
        raise LapjointError("--steps and --seconds are both given, expected one of them")
    params = Params(
        workers=workers,
        runtime=runtime,
        coupling=coupling,
        partition=partition,
        growth_depth=growth_depth,
        search_depth=search_depth,
        detect=detect,
        balance=balance,
        weights=weights,
        algorithms=algorithms,
        validate=validate,
        engine=engine,
        precision=precision,
        timestep=timestep,
        iterations=iterations,
    )
    check_writable("--json", json_file)
    check_writable("--picture", picture_file)
    if picture_file is not None:
        from ..view.picture import checked_path

        checked_path(picture_file)
    built = open_scene(scene, size, seed)
    length = params.timestep or built.timestep
    count = 500 if steps is None else steps
    if seconds is not None:
        if not 0 < seconds < float("inf"):
            raise LapjointError(f"--seconds is {seconds}, expected a positive number")
        count = max(1, round(seconds / length))
    if count < 1:
        raise LapjointError(f"--steps is {count}, expected at least 1")
    with Simulation(built, params) as simulation:
        summary = _run_with_progress(simulation, count)
        console.print(_summary_table(summary))
        if json_file is not None:
            json_file.write_text(json.dumps(summary.to_dict(), indent=2) + "\n")
        if picture_file is not None:
            _draw_last_state(simulation, picture_file)
    if summary.steps < count:
        console.print(f"interrupted after {summary.steps} of {count} steps")
        raise typer.Exit(130)


def _draw_last_state(simulation: Simulation, file: Path) -> None:
    """Coloured by worker, overlap bodies mixed by their weights (Figure 1); by label with one worker."""
    from ..view.colors import blend_colors, worker_colors
    from ..view.picture import picture as draw

    workers = simulation.params.workers
    colors = blend_colors(simulation.weights(), worker_colors(workers)) if workers > 1 else None
    draw(simulation.scene, file, simulation.states, colors=colors)
    console.print(f"picture of the last state: {file}", markup=False)


def _run_with_progress(simulation: Simulation, count: int) -> RunSummary:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(simulation.scene.name, total=count)
        return run_simulation(simulation, count, lambda done: progress.update(task, completed=done))


def _summary_table(summary: RunSummary) -> Table:
    table = Table(box=None, show_header=False)
    table.add_column(style="bold")
    table.add_column()
    rows = {
        "scene": f"{summary.scene}: {summary.body_count:,} bodies, {summary.joint_count:,} joints",
        "engine": f"{summary.engine} {summary.precision}, {summary.iterations} iterations",
        "workers": f"{summary.workers}, {summary.runtime}, growth depth {summary.growth_depth}, "
        f"search depth {summary.search_depth}",
        "overlap": f"{summary.overlap_count_mean:,.0f} bodies, {summary.duplicated_share:.1%} duplicated, "
        f"{summary.activation_count_mean:.1f} activations a step",
        "simulated": f"{summary.steps:,} steps of {summary.timestep * 1e3:g} ms",
        "speed": f"{summary.steps_per_second:,.1f} steps/s, {summary.step_ms_mean:.2f} ms/step, "
        f"{summary.real_time_factor:.3g} x real time",
        "contacts": f"{summary.contact_count_mean:,.0f} a step, {summary.contact_point_count_mean:,.0f} points",
        "phases": ", ".join(f"{name} {ms:.2f}" for name, ms in summary.phases_ms.items()) + " ms",
        "joint gap": f"{summary.joint_gap_max * 1e3:.3g} mm at most",
        "penetration": f"{summary.penetration_max * 1e3:.3g} mm at most",
        "state hash": summary.state_hash,
    }
    if summary.joint_count == 0:
        del rows["joint gap"]
    if summary.workers == 1:
        del rows["workers"], rows["overlap"], rows["phases"]
    for name, value in rows.items():
        table.add_row(name, escape(value))
    return table
