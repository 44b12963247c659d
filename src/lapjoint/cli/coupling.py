"""Options of coupling: how workers' results become one. `run`, `resume` and `bench` share them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ..errors import LapjointError
from ..params import Params
from ..params.params import OF_BLEND, ROUNDS

CouplingOption = Annotated[
    str,
    typer.Option(
        "--coupling",
        help="How workers' results become one. blend, the paper's: one exchange a step, any engine, an error that "
        "falls with --growth-depth; for slow links. tight: constraints between workers are solved with all others, in "
        "--rounds within the step; nothing is simulated twice, and the error falls as rounds grow; for workers that "
        "answer fast, on one machine. auto: tight for several workers of a scene with joints, unless something is "
        "asked for that only blend has; else blend. See docs/coupling.md.",
    ),
]
RoundsOption = Annotated[
    int | None,
    typer.Option(
        "--rounds",
        help="With --coupling tight: exchanges within a step, at most; the iterations are divided among them. More: a "
        f"smaller error, more messages. Default {ROUNDS}.",
    ),
]
ToleranceOption = Annotated[
    float | None,
    typer.Option(
        "--tolerance",
        metavar="M/S",
        help="With --coupling tight: rounds end once none changes the velocity of any constraint by more than this, as "
        "in 1e-4. Default 0: all --rounds are taken, unless one changes nothing at all.",
    ),
]
JointWarmStartOption = Annotated[
    float | None,
    typer.Option(
        "--joint-warm-start",
        metavar="SHARE",
        help="With --coupling tight: share of the last step's joint impulses that sweeps start from, 0 to 1, for "
        "joints that are not solved together; much of it gives long structures energy. Default "
        f"{Params.joint_warm_start:g}.",
    ),
]
AccelerationOption = Annotated[
    bool | None,
    typer.Option(
        "--acceleration/--no-acceleration",
        help="With --coupling tight: extrapolate impulses from round to round. Without it, rounds are plain sweeps and "
        "many more are needed. Default: on.",
    ),
]
JointsTogetherOption = Annotated[
    bool | None,
    typer.Option(
        "--joints-together/--no-joints-together",
        help="With --coupling tight: solve joints without limits at once, or by sweeps like all else. Default: on.",
    ),
]


@dataclass(frozen=True)
class TightOptions:
    """Options of tight coupling; None where one is not given."""

    rounds: int | None = None
    tolerance: float | None = None
    joint_warm_start: float | None = None
    acceleration: bool | None = None
    joints_together: bool | None = None

    @property
    def given(self) -> dict[str, Any]:
        """Parameters by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def check(self, coupling: str, names: Mapping[str, str] | None = None) -> None:
        """Refuse them without tight coupling. `names` are those of options that are not called as their parameter."""
        if coupling != "tight":
            for name in self.given:
                raise LapjointError(f"{_option(name, names)} is given, but the coupling is {coupling}, expected tight")


def check_overlap_options(params: Params) -> None:
    """Refuse what is said of overlap where there is none."""
    for name in OF_BLEND:
        if params.coupling == "tight" and getattr(params, name) != getattr(Params, name):
            raise LapjointError(f"{_option(name)} is given, but the coupling is tight, which has no overlap")


def _option(name: str, names: Mapping[str, str] | None = None) -> str:
    return (names or {}).get(name, "--" + name.replace("_", "-"))
