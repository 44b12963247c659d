"""The command line: `lapjoint scenes`, `lapjoint run`, `lapjoint picture`."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from . import scenes as scene_library
from .errors import LapjointError
from .params import Params
from .run import RunSummary
from .run import run as run_simulation
from .scene import Scene
from .simulation import Simulation

app = typer.Typer(
    help="One rigid-body scene, simulated by many workers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
console = Console()
SceneArgument = Annotated[str, typer.Argument(help="A scene's name (see `lapjoint scenes`) or a saved scene file.")]
SizeOption = Annotated[
    int | None, typer.Option("--size", help="About how many bodies; the paper's count if not given.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="For scenes with chance in them.")]


@app.command()
def scenes() -> None:
    """List every scene with its counts."""
    table = Table(box=None, header_style="bold")
    for heading, justify in (("scene", "left"), ("bodies", "right"), ("static", "right"), ("joints", "right")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    table.add_column("what it is")
    for name in scene_library.names():
        scene = scene_library.build(name)
        counts = (scene.body_count, scene.static_count, scene.joint_count)
        table.add_row(name, *(f"{count:,}" for count in counts), scene_library.summary(name))
    console.print(table)


@app.command()
def run(
    scene: SceneArgument,
    steps: Annotated[int | None, typer.Option("--steps", help="How many steps. Default 500.")] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="How much simulated time, in place of --steps.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", help="How many workers share the scene.")] = 1,
    growth_depth: Annotated[
        int | None,
        typer.Option(
            "--growth-depth", help="How far overlap grows: more is more accurate and slower. Default: the scene's."
        ),
    ] = None,
    search_depth: Annotated[
        int | None,
        typer.Option("--search-depth", help="How far weights search for a worker's own bodies. Default: the scene's."),
    ] = None,
    partition: Annotated[
        str, typer.Option("--partition", help="First division: auto, labels, metis, boxes, equal, or a file.")
    ] = "auto",
    runtime: Annotated[
        str, typer.Option("--runtime", help="Where workers live: process, or inline (in this one).")
    ] = "process",
    coupling: Annotated[str, typer.Option("--coupling", help="How results become one: blend.")] = "blend",
    detect: Annotated[
        str, typer.Option("--detect", help="Who finds contacts: workers, or server (the paper's way, slower).")
    ] = "workers",
    balance: Annotated[
        str, typer.Option("--balance", help="How bodies leave workers: pruned, guarded, or printed (the paper's text).")
    ] = "pruned",
    weights: Annotated[
        str, typer.Option("--weights", help="Weights of workers: depth, computed (Algorithm 5), or equal.")
    ] = "depth",
    algorithms: Annotated[
        str, typer.Option("--algorithms", help="native, or reference: the readable Python.")
    ] = "native",
    validate: Annotated[bool, typer.Option("--validate", help="Check every invariant in every step.")] = False,
    size: SizeOption = None,
    seed: SeedOption = 0,
    engine: Annotated[str, typer.Option("--engine", help="The physics engine.")] = "bullet",
    precision: Annotated[
        str, typer.Option("--precision", help="float32, or float64: slower, smaller gaps.")
    ] = "float32",
    timestep: Annotated[
        float | None, typer.Option("--timestep", help="Seconds per step; the scene's if not given.")
    ] = None,
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
    _check_writable("--json", json_file)
    _check_writable("--picture", picture_file)
    if picture_file is not None:
        from .view.picture import checked_path

        checked_path(picture_file)
    built = _open_scene(scene, size, seed)
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


@app.command()
def picture(
    scene: SceneArgument,
    file: Annotated[Path, typer.Argument(help="The picture to write (.png).")],
    size: SizeOption = None,
    seed: SeedOption = 0,
    width: Annotated[int, typer.Option("--width", min=16, max=8192, help="Pixels.")] = 960,
    height: Annotated[int, typer.Option("--height", min=16, max=8192, help="Pixels.")] = 540,
) -> None:
    """Draw a scene as it starts, coloured by label. No screen needed.

    Example: lapjoint picture building building.png --width 1920 --height 1080
    """
    from .view.picture import checked_path
    from .view.picture import picture as draw

    checked_path(file)
    draw(_open_scene(scene, size, seed), file, size=(width, height))
    console.print(f"wrote {file}", markup=False)


def _draw_last_state(simulation: Simulation, file: Path) -> None:
    """Coloured by worker, overlap bodies mixed by their weights (Figure 1); by label with one worker."""
    from .view.colors import blend_colors, worker_colors
    from .view.picture import picture as draw

    workers = simulation.params.workers
    colors = blend_colors(simulation.weights(), worker_colors(workers)) if workers > 1 else None
    draw(simulation.scene, file, simulation.states, colors=colors)
    console.print(f"picture of the last state: {file}", markup=False)


def _open_scene(name_or_file: str, size: int | None, seed: int) -> Scene:
    if seed < 0:
        raise LapjointError(f"--seed is {seed}, expected zero or more")
    path = Path(name_or_file)
    if name_or_file not in scene_library.names() and (path.suffix or path.exists()):
        if size is not None:
            raise LapjointError(f"--size is given, but {path} is a file: its size is fixed")
        return Scene.load(path)
    return scene_library.build(name_or_file, size, seed)


def _check_writable(option: str, path: Path | None) -> None:
    """Refuse a file that cannot be written before anything starts."""
    if path is None:
        return
    if not path.parent.is_dir():
        raise LapjointError(f"{option} {path}: the directory {path.parent} does not exist")
    if path.is_dir():
        raise LapjointError(f"{option} {path}: is a directory, expected a file")


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


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    Console(stderr=True).print(f"[yellow]warning:[/] {escape(str(message))}", highlight=False, soft_wrap=True)


def main() -> None:
    """Entry point: every LapjointError is one line on stderr and exit code 2."""
    warnings.showwarning = _show_warning
    try:
        app()
    except LapjointError as error:
        Console(stderr=True).print(f"[red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
