"""Reproduce: the paper's evaluation, run with its parameters at a chosen fidelity. See docs/paper.md.

Needs the extra `lapjoint[report]`.

>>> from lapjoint.studies.reproduce import quick, reproduce
>>> reproduce(quick().only(["bowl"]), "out/paper")
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...errors import LapjointError
from ...system.folder_lock import FolderLock
from ...system.shortage import reason
from ..bench import OnProgress
from ..report import check_out, page, write_page
from ..report.style import check_matplotlib
from .contents import sections
from .parts import Done, OnPart, run_parts
from .plan import Plan, RunPart, SpeedupPart, full, quick
from .reductions import differences, reductions
from .store import PartStore, write_whole
from .table2 import Table2Row, as_csv, as_markdown, table2

__all__ = ["Done", "OnPart", "Plan", "RunPart", "SpeedupPart", "full", "quick", "reproduce"]

TITLE = "The paper's evaluation, repeated"
CITED = "M. Kale and P. G. Kry, Distributed Simulation of Large Multi-body Systems"


def reproduce(
    plan: Plan, out: str | Path, on_progress: OnProgress | None = None, on_part: OnPart | None = None
) -> Path:
    """Run what is not complete yet, then write tables, figures and the page into a directory; returns the page.

    Every part is kept as soon as it is complete, under `parts`. Whatever ends this, call it again to go on.
    """
    out = Path(out)
    check_matplotlib()
    if not plan.parts:
        raise LapjointError("the plan has no parts, expected at least one scene")
    folder = out / "parts" / plan.fidelity
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        check_out(out)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LapjointError(f"--out {out}: cannot be made: {reason(error)}") from None
    with FolderLock(folder, "another `lapjoint reproduce` writes there"):
        return _reproduce(plan, out, PartStore(folder, plan.params), on_progress, on_part)


def _reproduce(plan: Plan, out: Path, store: PartStore, on_progress: OnProgress | None, on_part: OnPart | None) -> Path:
    """Run and write, as the only one in the directory of the parts."""
    done = run_parts(plan, store, on_progress, on_part)
    if on_progress is not None:
        on_progress("drawing", 1.0)
    rows = table2(plan, done)
    cores = store.origin.cores
    if rows:
        write_whole(out / "table2.csv", as_csv(rows))
        write_whole(out / "table2.md", as_markdown(rows, cores))
    write_whole(out / "results.json", json.dumps(_results(plan, store, done, rows), indent=1) + "\n")
    lead = f"{CITED}; fidelity: {plan.fidelity}"
    return write_page(out, TITLE, lead, _header(plan, store, cores), sections(plan, done, rows, cores))


def _header(plan: Plan, store: PartStore, cores: int) -> list[str]:
    """Where the numbers come from, and what is less than in the paper."""
    machine, versions = store.origin.machine, store.origin.versions
    facts = [
        ("machine", f"{machine['cpu']}, {cores} cores, {machine['platform']}"),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("scenes", ", ".join(plan.scenes)),
        ("timestep", f"{1e3 * (plan.params.timestep or 0):g} ms"),
        ("precision", plan.params.precision),
    ]
    less = reductions(plan)
    return [
        page.definitions(facts),
        *([page.subheading("Less than in the paper"), page.bullets(less)] if less else []),
        page.subheading("Other than in the paper"),
        page.bullets(differences(cores)),
    ]


def _results(plan: Plan, store: PartStore, done: Mapping[str, Done], rows: Sequence[Table2Row]) -> dict[str, Any]:
    """Everything that was measured; series of single steps are in the recordings."""
    return {
        "fidelity": plan.fidelity,
        **asdict(store.origin),
        "params": {name: value for name, value in plan.params.options().items() if value is not None},
        "reductions": reductions(plan),
        "table2": [asdict(row) for row in rows],
        "parts": {
            name: {
                "part": {"kind": one.part.kind, **asdict(one.part)},
                "recording": str(Path("parts") / plan.fidelity / one.recording.name)
                if isinstance(one.part, RunPart)
                else None,
                "result": one.result,
            }
            for name, one in done.items()
        },
    }
