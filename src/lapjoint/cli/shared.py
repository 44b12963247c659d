"""What commands share: options, opening scenes, checking files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .. import scenes as scene_library
from ..errors import LapjointError
from ..scene import Scene

console = Console()

SceneArgument = Annotated[str, typer.Argument(help="A scene's name (see `lapjoint scenes`) or a saved scene file.")]
SizeOption = Annotated[
    int | None, typer.Option("--size", help="About how many bodies; the paper's count if not given.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="For scenes with chance in them.")]

# ---- fields of Params; each command lists those it has and hands them on ------------------------------------------

GrowthDepthOption = Annotated[
    int | None,
    typer.Option(
        "--growth-depth", help="How far overlap grows: more is more accurate and slower. Default: the scene's."
    ),
]
SearchDepthOption = Annotated[
    int | None,
    typer.Option("--search-depth", help="How far weights search for a worker's own bodies. Default: the scene's."),
]
PartitionOption = Annotated[
    str, typer.Option("--partition", help="First division: auto, labels, metis, boxes, equal, or a file.")
]
RuntimeOption = Annotated[
    str, typer.Option("--runtime", help="Where workers live: process, inline (in this one), or ray (on many machines).")
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        help="A Ray cluster that this machine is part of, or auto. Default: one on this machine alone, for this run.",
    ),
]
PlacementOption = Annotated[
    str, typer.Option("--placement", help="Ray's workers: spread over the machines, or pack: this machine first.")
]
SendOption = Annotated[
    str,
    typer.Option(
        "--send",
        help="States that come from other machines with every step: all, or border: fewer bytes, but a worker that is "
        "lost cannot be replaced.",
    ),
]
DetectOption = Annotated[
    str, typer.Option("--detect", help="Who finds contacts: workers, or server (the paper's way, slower).")
]
BalanceOption = Annotated[
    str, typer.Option("--balance", help="How bodies leave workers: pruned, guarded, or printed (the paper's text).")
]
LoadOption = Annotated[
    str,
    typer.Option(
        "--load",
        help="What balancing evens out: contacts, bodies (the paper), or time: measured, for machines of unequal "
        "speed; the one choice whose results differ from run to run.",
    ),
]
LingerOption = Annotated[
    int,
    typer.Option(
        "--linger", help="Steps a body waits that came back to a worker, before it leaves again; 0 is the paper's."
    ),
]
RepartitionOption = Annotated[
    float,
    typer.Option(
        "--repartition", help="Largest load over mean from which the scene is divided anew; 0: never, as in the paper."
    ),
]
WeightsOption = Annotated[
    str, typer.Option("--weights", help="Weights of workers: depth, computed (Algorithm 5), or equal.")
]
AlgorithmsOption = Annotated[str, typer.Option("--algorithms", help="native, or reference: the readable Python.")]
EngineOption = Annotated[
    list[str],
    typer.Option(
        "--engine",
        metavar="NAME...",
        help="The physics engine (see `lapjoint engines`), with a precision as in bullet:float64, or one for each "
        "worker as in 0=bullet 1=rapier.",
    ),
]
PrecisionOption = Annotated[str, typer.Option("--precision", help="float32, or float64: slower, smaller gaps.")]
SolverOption = Annotated[
    list[str],
    typer.Option(
        "--solver",
        metavar="NAME...",
        help="sequential impulses, or a direct solver: dantzig or lemke; one for each worker as in sequential "
        "1=dantzig, or for workers of a label as in sequential label:1=dantzig. See docs/solvers.md.",
    ),
]
TimestepOption = Annotated[float | None, typer.Option("--timestep", help="Seconds per step; the scene's if not given.")]

# ---- what a run writes --------------------------------------------------------------------------------------------

JsonOption = Annotated[Path | None, typer.Option("--json", help="Write the summary to this file.")]
PictureOption = Annotated[Path | None, typer.Option("--picture", help="Write a picture of the last state (.png).")]
RecordOption = Annotated[
    Path | None, typer.Option("--record", metavar="DIR", help="Record the run into this new directory.")
]
RecordEveryOption = Annotated[
    int | None, typer.Option("--record-every", help="Steps from one recorded frame to the next. Default 1.")
]
RecordContactsOption = Annotated[
    bool, typer.Option("--record-contacts", help="Keep the contacts of every recorded frame too.")
]
MeasureOption = Annotated[
    str | None,
    typer.Option(
        "--measure",
        metavar="NAME,...",
        help="Measure more than gaps, penetration and residuals: kinetic_energy, disagreement_velocity_max and so "
        "on, or all. It takes time, but not of the steps. See docs/measures.md.",
    ),
]
OneStepEveryOption = Annotated[
    int | None,
    typer.Option(
        "--one-step-every",
        help="Measure the one-step error in every so many-th step: one engine takes the same step. Default 1.",
    ),
]
CheckpointEveryOption = Annotated[
    int | None, typer.Option("--checkpoint-every", help="Steps from one checkpoint to the next. Default 1000.")
]
CheckpointKeepOption = Annotated[
    int | None, typer.Option("--checkpoint-keep", help="How many of the newest checkpoints stay. Default 3.")
]


def open_scene(name_or_file: str, size: int | None, seed: int) -> Scene:
    if seed < 0:
        raise LapjointError(f"--seed is {seed}, expected zero or more")
    path = Path(name_or_file)
    if name_or_file not in scene_library.names() and (path.suffix or path.exists()):
        if size is not None:
            raise LapjointError(f"--size is given, but {path} is a file: its size is fixed")
        return Scene.load(path)
    return scene_library.build(name_or_file, size, seed)


def worker_range(text: str) -> tuple[int, int | None]:
    """`--workers`: a number, or the least and the most with two dots between."""
    least, dots, most = text.partition("..")
    if not least.isdecimal() or (dots and not most.isdecimal()):
        raise LapjointError(f"--workers is {text!r}, expected a number, or two with dots between, as in 2..16")
    return int(least), int(most) if dots else None


def check_writable(option: str, path: Path | None) -> None:
    """Refuse a file that cannot be written before anything starts."""
    if path is None:
        return
    if not path.parent.is_dir():
        raise LapjointError(f"{option} {path}: the directory {path.parent} does not exist")
    if path.is_dir():
        raise LapjointError(f"{option} {path}: is a directory, expected a file")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise LapjointError(f"{option} {path}: no permission to write there")
