"""`lapjoint bench`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated

import typer

from ..errors import LapjointError
from ..params import Params
from ..params.coupling_choice import CouplingChoice
from ..params.fields import OUTPUT, SIMULATED
from ..params.params import others
from ..studies.bench import BenchPlan, BenchRow, measure_all, write_csv, write_json
from ..studies.bench.plan import ITERATIONS
from ..studies.peers import PEER_NAMES, ComparedRow, PeerPlan, measure_peers
from .bench_tables import print_tables
from .params_options import Change, Given, with_params
from .peer_tables import print_peers
from .shared import SeedOption, SizeOption, check_writable, console, counted, make_parents, open_scene, say_coupling
from .study_progress import drawing, study_progress

WORKERS, COUPLINGS, ENGINES = [1, 2, 4, 8], [Params.coupling], ["bullet"]


@with_params(
    but=["validate", "on_failure", "hang_limit", "quarantine", "on_surge", "speed_limit"],
    changes={
        "workers": Change(
            help="Counts of workers; 1 is measured in any case.", default=" ".join(map(str, WORKERS)), is_several=True
        ),
        "iterations": Change(
            help="Sequential: sweeps of the solver per step; rows for each.",
            default=f"none: the substep solver; {ITERATIONS} where another is needed",
            is_several=True,
        ),
        "coupling": Change(
            help="How workers' results become one: blend, tight, or both side by side; auto as in a run. See "
            "docs/coupling.md.",
            default=COUPLINGS[0],
            is_several=True,
        ),
        "engine": Change(
            help="Physics engines (see `lapjoint engines`), side by side.", default=ENGINES[0], is_several=True
        ),
    },
)
def bench(
    scenes: Annotated[
        list[str],
        typer.Argument(metavar="SCENE...", help="Scenes' names (see `lapjoint scenes`) or saved scene files."),
    ],
    given: Given,
    steps: Annotated[
        int,
        typer.Option(
            "--steps", metavar="N", help="Measured steps per repetition. [default: 20]", rich_help_panel=SIMULATED.title
        ),
    ] = 20,
    repetitions: Annotated[
        int,
        typer.Option(
            "--repetitions",
            metavar="N",
            help="How often it is repeated; in each repetition every count takes its steps. [default: 3]",
            rich_help_panel=SIMULATED.title,
        ),
    ] = 3,
    warmup: Annotated[
        int,
        typer.Option(
            "--warmup",
            metavar="N",
            help="Steps before anything is measured, with at most 10 iterations. [default: 200]",
            rich_help_panel=SIMULATED.title,
        ),
    ] = 200,
    peers: Annotated[
        list[str] | None,
        typer.Option(
            "--peer",
            metavar="NAME...",
            help=f"Other engines on the same scene: {', '.join(PEER_NAMES)}.",
            rich_help_panel=SIMULATED.title,
        ),
    ] = None,
    size: SizeOption = None,
    seed: SeedOption = 0,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write the rows to this file.", rich_help_panel=OUTPUT.title),
    ] = None,
    csv_file: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", help="Write the rows to this file.", rich_help_panel=OUTPUT.title),
    ] = None,
) -> None:
    """Measure scenes on several counts of workers, side by side.

    Prints ms per step, the speed-up against one worker and, where there are more workers than cores, the projected one.
    With --peer also speed and error of other engines, at several settings each, and of lapjoint's own solvers.

    Example: lapjoint bench bowl building --workers 1 2 4 8 --json bench.json

    Example: lapjoint bench bowl --workers 1 2 4 8 --iterations 1000 50

    Example: lapjoint bench bowl --workers 1 2 --iterations 50 --engine bullet rapier

    Example: lapjoint bench bridge --workers 1 2 4 --coupling blend tight

    Example: lapjoint bench bowl --workers 1 2 --peer mujoco rapier box3d
    """
    workers, iterations = given.take("workers", WORKERS), given.take("iterations", []) or None
    couplings, engines = given.take("coupling", COUPLINGS), given.take("engine", ENGINES)
    settings = _coupled(given, couplings, engines[0])
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
    every = [replace(coupled, engine=engine) for engine in engines for coupled in settings]
    if peers and len(every) > 1:
        several = "engines" if len(engines) > 1 else "couplings"
        raise LapjointError(f"--peer is given with several {several}, expected one {several[:-1]} beside peers")
    for params, one in product(every, built):
        given.solver(params.with_options(iterations=iterations[0]) if iterations else params, one)
    with given.naming_options():
        plans = [BenchPlan(built, workers, params, iterations, steps, repetitions, warmup) for params in every]
        if len({plan.has_substeps for plan in plans}) > 1:  # side by side, with the solver that all of them have
            plans = [replace(plan, iterations=iterations or [ITERATIONS]) for plan in plans]
    beside = PeerPlan(plans[0], peers) if peers else None
    for file in (json_file, csv_file):
        if file is not None:
            make_parents(file)
    if len(plans) == 1:
        say_coupling(given.named(plans[0].coupling_choice))
    rows: list[BenchRow] = []
    compared: list[ComparedRow] = []

    def show() -> None:
        print_tables(rows)
        if beside is not None:
            print_peers(compared, beside.notes())

    try:
        with study_progress() as progress:
            draw = drawing(progress)
            for row in measure_all(plans, draw) if beside is None else measure_peers(beside, draw):
                if isinstance(row, ComparedRow):
                    compared.append(row)
                if isinstance(row, BenchRow) or row.side.is_benched:
                    rows.append(row if isinstance(row, BenchRow) else row.bench)
                if json_file is not None:
                    write_json(compared or rows, json_file)
                if csv_file is not None:
                    write_csv(compared or rows, csv_file)
    except KeyboardInterrupt:
        show()
        done = sum(row.repetitions for row in rows if row.workers == 1)
        total = counted(len(plans) * len(built) * len(plans[0].amounts) * repetitions, "repetition", form="")
        console.print(f"interrupted after {done} of {total}")
        raise typer.Exit(130) from None
    except LapjointError:
        show()
        raise
    show()


def _coupled(given: Given, couplings: Sequence[str], engine: str) -> list[Params]:
    """Params with each coupling. Beside another one, it leaves alone what was typed for that."""
    if len(couplings) == 1:
        given.check_coupling(CouplingChoice(couplings[0], None))
    found = []
    for coupling in couplings:
        unused = {} if coupling == "auto" else others(coupling)
        own = {name: value for name, value in given.values.items() if name not in unused}
        found.append(Given(own, given.options).params(coupling=coupling, engine=engine))
    return found
