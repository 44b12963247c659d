"""lapjoint's own ladder: its solvers on one worker, from cheap to accurate, beside those of the peers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...params import Params
from ...params.options import fields_of
from ..bench.plan import SUBSTEP_WORK

LADDER = {"substeps": (1, 2, 4, 8), "sequential": (10, 50, 200)}
"""Rungs of each solver: its substeps, or its iterations."""
FIELDS = {"substeps": "substeps", "sequential": "iterations"}
"""What option they are."""


@dataclass(frozen=True)
class OwnRung:
    """One solver with so much work."""

    title: str
    work: int
    """About how many sweeps a step takes; only the time left depends on it."""
    params: Params


def own_ladder(params: Params) -> list[OwnRung]:
    """Rungs on one worker, which has nothing to couple, with all else as in `params`, of the solvers that the engine
    has. Another one than Bullet has its own solver, and iterations mean what they mean there."""
    rungs = []
    for solver, amounts in LADDER.items():
        if solver == "substeps" and params.engine != "bullet":
            continue
        other = "sequential" if solver == "substeps" else "substeps"
        unset = {field.name: field.default for field in fields_of(Params) if field.part == other}
        for amount in amounts:
            changed: dict[str, Any] = {**unset, "workers": 1, "solver": solver, FIELDS[solver]: amount}
            changed |= {"coupling": "blend"} if params.coupling == "tight" else {}
            work = SUBSTEP_WORK * amount if solver == "substeps" else amount
            title = f"{amount} substeps" if solver == "substeps" else f"{amount} iterations"
            rungs.append(OwnRung(title, work, params.with_options(**changed)))
    return rungs
