"""Table 2: the paper's beside ours."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from ..report.speedup import SpeedupPoint, has_cores
from ..report.tables import NONE, Table
from ..titles import count_of
from .paper import SCENES, PaperScene
from .parts import Done
from .plan import Plan, SpeedupPart


@dataclass(frozen=True)
class Table2Row:
    """One scene. Speed-ups are measured where every worker had a core, else projected."""

    scene: str
    paper_body_count: int
    body_count: int
    paper_joint_count: int
    joint_count: int
    paper_contact_count: int
    contact_count: float | None
    """Touching pairs, static bodies included, mean over the steps of the run on one worker; None: there was none."""
    contact_point_count: float | None
    """Their contact points."""
    contact_body_count: int | None
    """Bodies of that run; fewer than `body_count` where a smaller scene was recorded."""
    paper_speedup: float
    paper_workers: int
    speedup: float | None
    """With the paper's count of workers; None: it is not among those that were measured."""
    speedup_is: str
    """measured or projected"""
    best_speedup: float
    best_workers: int
    best_is: str
    two_measured: float | None
    """Two workers, both ways: how far projected is from measured. None with fewer than two cores."""
    two_projected: float | None
    step_ms: float
    """Of one worker, measured."""
    iterations: int


def table2(plan: Plan, done: Mapping[str, Done]) -> list[Table2Row]:
    """A row for each scene whose speed-up is in the plan."""
    return [_row(part, done) for part in sorted(plan.speedups, key=lambda part: list(SCENES).index(part.scene))]


def points_of(rows: Sequence[Mapping[str, Any]]) -> list[SpeedupPoint]:
    """Rows of a benchmark as points of Figure 10."""
    return [
        SpeedupPoint(
            int(row["workers"]),
            float(row["step_ms"]),
            float(row["speedup"]) if has_cores(int(row["workers"]), int(row["cores"]), str(row["runtime"])) else None,
            float(row["projected_speedup"]),
        )
        for row in rows
    ]


def _row(part: SpeedupPart, done: Mapping[str, Done]) -> Table2Row:
    paper: PaperScene = SCENES[part.scene]
    rows = done[part.name].result["rows"]
    points = {point.workers: point for point in points_of(rows)}
    single = done.get(f"{part.scene}-1-run")
    summary = single.result["summary"] if single else {}
    many = [point for point in points.values() if point.workers > 1] or list(points.values())
    best = max(many, key=lambda point: _shown(point)[0])
    at_paper = points.get(paper.workers)
    two = points.get(2)
    return Table2Row(
        scene=part.scene,
        paper_body_count=paper.body_count,
        body_count=int(rows[0]["body_count"]),
        paper_joint_count=paper.joint_count,
        joint_count=int(rows[0]["joint_count"]),
        paper_contact_count=paper.contact_count,
        contact_count=summary.get("contact_count_mean"),
        contact_point_count=summary.get("contact_point_count_mean"),
        contact_body_count=summary.get("body_count"),
        paper_speedup=paper.speedup,
        paper_workers=paper.workers,
        speedup=_shown(at_paper)[0] if at_paper else None,
        speedup_is=_shown(at_paper)[1] if at_paper else "",
        best_speedup=_shown(best)[0],
        best_workers=best.workers,
        best_is=_shown(best)[1],
        two_measured=two.measured if two else None,
        two_projected=two.projected if two else None,
        step_ms=points[1].step_ms,
        iterations=part.iterations,
    )


def _shown(point: SpeedupPoint) -> tuple[float, str]:
    """Return the speed-up that is the method's, and whether it is measured or projected."""
    if point.measured is not None:
        return point.measured, "measured"
    assert point.projected is not None
    return point.projected, "projected"


MARKS = {"measured": "", "projected": "~", "": ""}


# ---- formats -----------------------------------------------------------------------------------------------------


def shown_table(rows: Sequence[Table2Row]) -> Table:
    """For people: the paper's number and ours, side by side."""
    return Table.of(
        [
            {
                "scene": SCENES[row.scene].title,
                "bodies: paper, ours": f"{row.paper_body_count:,}, {row.body_count:,}",
                "joints: paper, ours": f"{row.paper_joint_count:,}, {row.joint_count:,}",
                "contacts, mean: paper": f"{row.paper_contact_count:,}",
                "ours: pairs, points": _contacts(row),
                "speed-up: paper": f"{row.paper_speedup:.2f} ({row.paper_workers})",
                "ours, same workers": NONE
                if row.speedup is None
                else f"{MARKS[row.speedup_is]}{row.speedup:.2f} ({row.paper_workers})",
                "ours, best": f"{MARKS[row.best_is]}{row.best_speedup:.2f} ({row.best_workers})",
                "2 workers: measured, projected": f"{_two(row.two_measured)}, {_two(row.two_projected)}",
            }
            for row in rows
        ]
    )


def legend(rows: Sequence[Table2Row], cores: int) -> list[str]:
    """What the columns mean."""
    iterations = ", ".join(f"{count:,}" for count in sorted({row.iterations for row in rows}))
    return [
        f"Speed-up: step time of one worker over that of as many as the brackets say, at {iterations} iterations. "
        f"Measured: wall times, where every worker had one of the {count_of(cores, 'core')} of this machine. "
        "Projected, with a ~: from CPU times (the server's part plus the slowest worker), as if every worker had a "
        "core of its own.",
        "Contacts: ours are means over the recorded steps of the run on one worker. Pairs are touching pairs of "
        "bodies, static bodies included; points are their contact points, up to four for a pair of simple shapes. "
        "The paper does not say which it counts.",
    ]


def as_markdown(rows: Sequence[Table2Row], cores: int) -> str:
    table = shown_table(rows)
    lines = [table.headings, ["---"] * len(table.headings), *table.rows]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return text + "\n\n" + "\n\n".join(legend(rows, cores)) + "\n"


def as_csv(rows: Sequence[Table2Row]) -> str:
    """For programs: a column for every field; empty where there is no number."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [field.name for field in fields(Table2Row)], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _digits(value) for name, value in asdict(row).items()} for row in rows)
    return out.getvalue()


def _digits(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def _contacts(row: Table2Row) -> str:
    if row.contact_count is None or row.contact_point_count is None:
        return NONE
    smaller = row.contact_body_count != row.body_count
    text = f"{row.contact_count:,.0f}, {row.contact_point_count:,.0f}"
    return text + f" of {row.contact_body_count:,} bodies" * smaller


def _two(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"
