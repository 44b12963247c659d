"""The state of a whole simulation between two steps: its parts, and how another one goes on from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..arrays.state import PartState, Stateful
from ..params import Params
from .core import Core
from .elastic import Elastic
from .parts import CouplingPart, LastStepPart, LifePart, TablePart, WorkerEnginesPart
from .redistribute import redistribute
from .worker_changes import set_growth_depth, set_load

OF_RUNTIME = ("address",)
"""Parameters that another runtime has no use for."""
ELSEWHERE = ("workers", "runtime", *OF_RUNTIME, "keep_forces")
"""Parameters of where bodies are simulated and what is kept of it, not how."""


def parts_of(core: Core) -> dict[str, Stateful]:
    """In the order in which they are restored."""
    now = core.now
    return {
        "last_step": LastStepPart(now),
        "table": TablePart(core.runtime, core.coupling),
        "membership": now.membership,
        "detection": now.detection,
        "commands": now.commands,
        "loads": now.loads,
        "repartition": now.repartition,
        "elastic": core.elastic,
        "frozen": core.frozen,
        "recovery": core.recovery,
        **core.reports.parts(),
        "life": LifePart(now.scene),
        "kinematic": core.kinematic,
        **({"sensing": core.sensing} if core.sensing.is_used else {}),
        **({"glued": core.glued} if core.glued.is_used else {}),
        "drives": now.commands.drives,
        "coupling": CouplingPart(core.coupling, now, core.profile),
        "workers": WorkerEnginesPart(now, core.runtime),
    }


def restore(core: Core, parts: Mapping[str, PartState], before: Params) -> None:
    """Go on from the state of a simulation of the same scene that had the parameters `before`. With as many workers,
    bit for bit as that one; with another number the scene is repartitioned."""
    after = replace(core.params, partition=before.partition)
    core.given = replace(core.given, partition=before.partition)
    # With their old values first, for these are changed by more than a number.
    core.now.params = after.with_options(growth_depth=before.blend.growth_depth, load=before.load)
    if after.workers == before.workers:
        for name, part in parts_of(core).items():
            part.restore(parts[name])
    else:
        _restore_redistributed(core, parts, before.workers)
    if core.kinematic.changed:
        core.now.commands.set_motions(core.kinematic.message())
    depth = after.blend.growth_depth
    if depth is not None and depth != before.blend.growth_depth:
        set_growth_depth(core, "restore", depth)
    if after.load != before.load:
        set_load(core, "restore", after.load)
    if after.max_workers != before.max_workers:
        core.elastic = Elastic(after, core.scene.body_count)
    if any(getattr(after, name) != value for name, value in vars(before).items() if name not in ELSEWHERE):
        core.coupling.invalidate()


def _restore_redistributed(core: Core, parts: Mapping[str, PartState], worker_count: int) -> None:
    """From the state of so many workers, which are not as many as these."""
    redistribute(parts, worker_count, core.now, core.coupling, core.runtime)
    core.frozen.restore(parts["frozen"])
    for name, part in core.reports.parts().items():
        part.restore(parts[name])
    core.kinematic.restore(parts["kinematic"])
    if core.sensing.is_used:
        core.sensing.restore(parts["sensing"])
    if core.glued.is_used:
        core.glued.restore(parts["glued"])
    core.now.commands.drives.restore(parts["drives"])
    core.recovery.restore_without_workers(parts["recovery"])
