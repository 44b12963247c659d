"""Which figures a report has, with which numbers, and why others are left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..titles import count_of
from . import figures
from .accuracy import ERRORS, error_series, growth_lines, kind_of, other_series, single_mean
from .figures import Line, Panel
from .numbers import WINDOW, Array, Series, rolling_mean
from .runs import Material, Run, scene_title
from .speedup import speedup_lines
from .tables import Table, results, speedups

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW_STEPS = "No recording has more than one step."
ONE_WORKER = "No recording has more than one worker."
NO_BLEND = "Tight coupling has no overlap."


@dataclass(frozen=True)
class Plot:
    """A figure that can be drawn."""

    name: str
    """Of its files, within its section."""
    title: str
    caption: str
    draw: Callable[[], Figure]
    numbers: Table | None = None
    """What it shows, for those who want to read it off."""


@dataclass(frozen=True)
class LeftOut:
    """A figure that has no data."""

    title: str
    reason: str


@dataclass(frozen=True)
class Section:
    heading: str
    items: list[Plot | LeftOut]
    table: Table | None = None
    name: str = ""
    """Begins the names of its files."""
    notes: Sequence[str] = ()
    """Sentences below the table."""


def sections(material: Material) -> list[Section]:
    """Speed-up of everything, then a section for each scene that was recorded."""
    found = [_speedup_section(material)]
    for runs in material.groups:
        title = scene_title(runs[0], material.runs)
        errors = [error_series(run) for run in runs]
        items = [
            _times(runs),
            _errors(runs, errors),
            _growth(runs, errors),
            _distribution(runs, "worker_contact_count", "contacts"),
            _distribution(runs, "worker_body_count", "bodies"),
            _phases(runs),
            _overlap(runs),
            *_interface(runs),
            _activations(runs),
        ]
        others = _others(runs)
        found.append(Section(title, items if others is None else [*items, others], results(runs, errors), title))
    return found


# ---- speed-up ----------------------------------------------------------------------------------------------------


def _speedup_section(material: Material) -> Section:
    lines = speedup_lines(material)
    items: list[Plot | LeftOut] = []
    if lines:
        caption = (
            "Step time of one worker over that of more. Measured: filled marks, only with a core for every worker. "
            "Projected: hollow marks and dashed lines, from CPU times (the server's part plus the slowest worker), as "
            "if every worker had a core of its own. Recordings are made one after the other, so whatever else the "
            "machine did is in their times; lapjoint bench measures side by side."
        )
        draw = partial(figures.speedup, lines)
        items.append(Plot("speedup", "Speed-up over workers", caption, draw, speedups(lines)))
    else:
        reason = (
            "It needs recordings of one scene with one worker and with more, parameters and machine being the same, "
            "or a file of lapjoint bench --json."
        )
        items.append(LeftOut("Speed-up over workers", reason))
    if material.rows:
        bars = {_bench_label(material, number): row.phases_ms for number, row in enumerate(material.rows)}
        caption = "Mean wall time of each phase of a step, as the benchmark measured it."
        items.append(Plot("bench-phases", "Phases, benchmark", caption, partial(figures.phases, bars)))
    return Section("Speed", items)


def _bench_label(material: Material, number: int) -> str:
    row = material.rows[number]
    amounts = [count_of(count, name[:-1]) for name, count in row.amount.items()]
    words = [row.scene, count_of(row.workers, "worker"), *amounts]
    label = ", ".join(words)
    same = [other for other in material.rows if _place(other) == _place(row)]
    return label if len(same) == 1 else f"{label} ({row.file.name}, row {number})"


def _place(row: object) -> tuple[object, ...]:
    return tuple(getattr(row, name) for name in ("scene", "workers", "iterations", "substeps"))


# ---- figures of a scene ------------------------------------------------------------------------------------------


def _times(runs: Sequence[Run]) -> Plot | LeftOut:
    title = "Step times"
    lines = [
        Line(number, run.label, run.time[run.timed], rolling_mean(run.values["step_ms"][run.timed]))
        for number, run in enumerate(runs)
        if run.timed.any()
    ]
    if not lines:
        return LeftOut(title, FEW_STEPS)
    caption = (
        f"Wall time of a step, which the paper calls frame time: rolling mean over {WINDOW} steps. The first step "
        "sets the workers up and is left out."
    )
    panels = [Panel("time of a step [ms]", lines, cut_peaks=True)]
    return Plot("step-times", title, caption, partial(figures.over_time, panels))


def _series_panels(runs: Sequence[Run], found: Sequence[dict[str, Series]], from_zero: bool = True) -> list[Panel]:
    panels = []
    for name in dict.fromkeys(name for series in found for name in series):
        lines = [
            Line(number, run.label, series[name].time, series[name].values)
            for number, (run, series) in enumerate(zip(runs, found, strict=True))
            if name in series
        ]
        panels.append(Panel(kind_of(name).axis, lines, from_zero, cut_peaks=name == "residual"))
    return panels


def _errors(runs: Sequence[Run], errors: Sequence[dict[str, Series]]) -> Plot | LeftOut:
    title = "Errors over time"
    panels = _series_panels(runs, errors)
    if not panels:
        return LeftOut(title, "No recording has an error measure, and none can be worked out from its frames.")
    caption = "After each step. Joint gaps and penetration that were not recorded are worked out from the frames."
    return Plot("errors", title, caption, partial(figures.over_time, panels))


def _growth(runs: Sequence[Run], errors: Sequence[dict[str, Series]]) -> Plot | LeftOut:
    title = "Errors over growth depth"
    panels = {
        ERRORS[name].axis: (lines, single_mean(runs, errors, name))
        for name in ERRORS
        if name != "residual" and (lines := growth_lines(runs, errors, name))
    }
    if not panels:
        return LeftOut(title, "It needs recordings with several growth depths, workers and all else being the same.")
    caption = "What the overlap buys: each mark is a run."
    return Plot("growth-depth", title, caption, partial(figures.over_growth_depth, panels))


def _distribution(runs: Sequence[Run], name: str, things: str) -> Plot | LeftOut:
    title = f"{things.capitalize()} per worker"
    shared = [run for run in runs if run.workers > 1]
    panels = {run.label: run.values[name] for run in shared if name in run.values and len(run.steps)}
    if not shared:
        return LeftOut(title, ONE_WORKER)
    if not panels or (things == "contacts" and not any(counts.any() for counts in panels.values())):
        return LeftOut(title, f"No worker ever had {things}." if panels else FEW_STEPS)
    caption = f"How many {things} each worker had, over all steps. White: the median; bar: quartiles."
    draw = partial(figures.violins, panels, f"{things} per worker")
    return Plot(f"{things}-per-worker", title, caption, draw)


def _phases(runs: Sequence[Run]) -> Plot | LeftOut:
    title = "Phases"
    timed = [run for run in runs if run.timed.any()]
    if not timed:
        return LeftOut(title, FEW_STEPS)
    bars = {run.label: _mean_phases(run) for run in timed}
    caption = "Mean wall time of each phase of a step. With one worker there is only the step."
    return Plot("phases", title, caption, partial(figures.phases, bars))


def _mean_phases(run: Run) -> dict[str, float]:
    return {name: float(values[run.timed].mean()) for name, values in run.phases_ms.items()}


def _overlap(runs: Sequence[Run]) -> Plot | LeftOut:
    title = "Overlap"
    shared = [(number, run) for number, run in _shared(runs) if not run.is_tight]
    if not shared:
        return LeftOut(title, NO_BLEND if _shared(runs) else ONE_WORKER)

    def lines(values: Callable[[Run], Array]) -> list[Line]:
        return [Line(number, run.label, run.time, values(run)) for number, run in shared]

    panels = [
        Panel("overlap bodies", lines(lambda run: run.values["overlap_count"].astype(float))),
        Panel(
            "duplicated bodies [%]",
            lines(lambda run: 100 * run.duplicated_share),
        ),
    ]
    caption = (
        "Bodies with more than one worker; and active bodies of all workers beyond the bodies of the scene, as a share "
        "of these: what is simulated more than once."
    )
    return Plot("overlap", title, caption, partial(figures.over_time, panels))


def _interface(runs: Sequence[Run]) -> list[Plot]:
    """What tight coupling has in place of overlap; nothing where no run has it."""
    tight = [(number, run) for number, run in enumerate(runs) if run.is_tight and np.size(run.steps)]
    if not tight:
        return []

    def panel(axis: str, name: str, factor: float = 1.0, log: bool = False) -> Panel:
        return Panel(
            axis, [Line(number, run.label, run.time, factor * run.values[name]) for number, run in tight], log=log
        )

    caption = (
        "Tight coupling: exchanges of each step, and its residual, the largest velocity change of any constraint in "
        "the last sweep; interface bodies, which are near bodies of other workers or jointed to them; "
        "and the share of joints and contacts that are between workers."
    )
    panels = [
        panel("exchanges", "exchanges"),
        panel("residual [m/s]", "residual", log=any((run.values["residual"] > 0).any() for _, run in tight)),
        panel("interface bodies", "interface_count"),
        panel("constraints between workers [%]", "cut_share", 100),
    ]
    return [Plot("interface", "Exchanges and interface", caption, partial(figures.over_time, panels))]


def _activations(runs: Sequence[Run]) -> Plot | LeftOut:
    title = "Activations"
    shared = _shared(runs)
    if not shared:
        return LeftOut(title, ONE_WORKER)
    if not any(run.values["activation_count"].any() for _, run in shared):
        return LeftOut(title, "After the first step no body was put into a worker.")
    lines = [
        Line(number, run.label, run.time, rolling_mean(run.values["activation_count"].astype(float)))
        for number, run in shared
    ]
    caption = f"Bodies put into a worker in a step, rolling mean over {WINDOW} steps; without those of the start."
    panels = [Panel("activations per step", lines, cut_peaks=True)]
    return Plot("activations", title, caption, partial(figures.over_time, panels))


def _others(runs: Sequence[Run]) -> Plot | None:
    panels = _series_panels(runs, [other_series(run) for run in runs], from_zero=False)
    if not panels:
        return None
    draw = partial(figures.over_time, panels)
    return Plot("measures", "Other measures over time", "What else was recorded in every step.", draw)


def _shared(runs: Sequence[Run]) -> list[tuple[int, Run]]:
    """Runs with more than one worker, with their numbers, which are their colours."""
    return [(number, run) for number, run in enumerate(runs) if run.workers > 1 and np.size(run.steps)]
