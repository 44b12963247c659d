"""The sections of the page: Table 2 and the paper's figures, from the results of all parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...recording import Recording
from ..report import figures
from ..report.accuracy import ERRORS, GrowthLine, recorded_series
from ..report.contents import LeftOut, Plot, Section
from ..report.figures import Line, Panel
from ..report.numbers import WINDOW, Array, projected_ms, rolling_mean
from ..report.runs import Run
from ..report.speedup import SpeedupLine, has_cores
from ..report.tables import Table, speedups
from ..titles import count_of
from .paper import BODY_SCENES, CONTACT_SCENES, JOINTED_SCENES, RESIDUAL_SCENES, SCENES
from .parts import Done
from .plan import Plan, RunPart
from .table2 import Table2Row, legend, points_of, shown_table

BEST = "the paper's best count of workers"


def sections(plan: Plan, done: Mapping[str, Done], rows: Sequence[Table2Row], cores: int) -> list[Section]:
    found = [Section("Table 2", [], shown_table(rows), notes=legend(rows, cores))] if rows else []
    return [
        *found,
        Section("Speed", [_speedup(plan, done), _step_times(plan, done, cores)]),
        Section("Errors", [_errors(plan, done), _one_step(plan, done)], _error_table(plan, done)),
        Section(
            "Shares of the workers",
            [
                _shares(plan, done, CONTACT_SCENES, "contacts", 13),
                _shares(plan, done, BODY_SCENES, "bodies", 14),
            ],
        ),
        Section("Errors over growth depth and over workers", [_depths(plan, done), _counts(plan, done)]),
    ]


# ---- speed -------------------------------------------------------------------------------------------------------


def _speedup(plan: Plan, done: Mapping[str, Done]) -> Plot | LeftOut:
    title = "Figure 10: speed-up over workers"
    lines = [
        SpeedupLine(part.scene, {}, points_of(done[part.name].result["rows"]), part.scene) for part in plan.speedups
    ]
    if not lines:
        return LeftOut(title, "No speed-up is in the plan.")
    caption = (
        "Step time of one worker over that of more, measured side by side. Filled marks: measured, with a core for "
        "every worker. Hollow marks and dashed lines: projected from CPU times, as if every worker had a core of its "
        "own. Stars: the paper's best, measured on two machines with eight cores each."
    )
    stars = {part.scene: (SCENES[part.scene].workers, SCENES[part.scene].speedup) for part in plan.speedups}
    draw = partial(figures.speedup, lines, stars, "the paper's best")
    return Plot("figure-10-speedup", title, caption, draw, speedups(lines))


def _step_times(plan: Plan, done: Mapping[str, Done], cores: int) -> Plot | LeftOut:
    title = "Figure 11: step times"
    counts = sorted({part.workers for part in plan.runs("run") if part.workers != SCENES[part.scene].workers})
    # Where one count needs more cores than there are, all are projected: measured and projected are not to be compared.
    projected = not all(has_cores(part.workers, cores, plan.params.runtime) for part in plan.runs("run"))
    panels = []
    for scene in plan.scenes:
        lines = []
        for part in plan.runs("run", scene):
            run = _open(done[part.name])
            values = projected_ms(run.values) if projected else run.values["step_ms"]
            if values is None or not run.timed.any():
                continue
            best = part.workers == SCENES[scene].workers
            label = BEST if best else count_of(part.workers, "worker")
            shown = values[run.timed]
            shown = rolling_mean(shown) if scene in CONTACT_SCENES else shown
            number = len(counts) if best else counts.index(part.workers)
            lines.append(Line(number, label, run.time[run.timed], shown))
        if lines:
            workers = count_of(SCENES[scene].workers, "worker")
            iterations = count_of(plan.runs("run", scene)[0].iterations, "iteration")
            title_of = f"{scene}, {workers}, {iterations}"
            panels.append(Panel(f"step{', projected' * projected} [ms]", lines, cut_peaks=True, title=title_of))
    if not panels:
        return LeftOut(title, "No recorded run is in the plan.")
    caption = (
        f"Time of a step, which the paper calls frame time; rolling mean over {WINDOW} steps but for the bridges, as "
        "in the paper. The first step sets the workers up and is left out."
    )
    if projected:
        caption += (
            f" This machine has {count_of(cores, 'core')}, fewer than workers: times are projected, the server's CPU "
            "time plus the slowest worker's, of one worker too."
        )
    return Plot("figure-11-step-times", title, caption, partial(figures.over_time, panels))


# ---- errors ------------------------------------------------------------------------------------------------------


def _errors(plan: Plan, done: Mapping[str, Done]) -> Plot | LeftOut:
    title = "Figure 12: errors over time"
    panels = []
    for scene in plan.scenes:
        runs = _compared(plan, scene)
        if scene in RESIDUAL_SCENES and runs:
            lines = [_line(part, done, "worker_residual", 1.0) for part in runs]
            panels.append(Panel("sum of residuals [m/s]", lines, cut_peaks=True, title=scene))
        elif scene in JOINTED_SCENES and runs:
            length = float(done[runs[0].name].result["scene_length"])
            lines = [_line(part, done, "joint_gap_sum", 100 / max(length, 1e-9)) for part in runs]
            panels.append(Panel("sum of joint gaps [% of length]", lines, title=f"{scene}, {length:.3g} m long"))
    if not panels:
        return LeftOut(title, "It needs recorded runs of the building, the net or a bridge.")
    caption = (
        "Building and net: the solver's residual, summed over the workers. Ours is the largest velocity change of a "
        "constraint in the last sweep; the paper does not define its own. Bridges: the sum of all joint gaps over the "
        "largest extent of the scene."
    )
    return Plot("figure-12-errors", title, caption, partial(figures.over_time, panels))


def _one_step(plan: Plan, done: Mapping[str, Done]) -> Plot | LeftOut:
    title = "One-step error over time"
    panels = []
    for name in ("one_step_error", "one_step_difference"):
        lines = []
        for number, scene in enumerate(plan.scenes):
            for part in plan.runs("run", scene):
                series = recorded_series(_open(done[part.name]), name)
                if part.one_step_every is not None and series is not None and len(series.time):
                    label = f"{scene}, {count_of(part.workers, 'worker')}"
                    lines.append(Line(number, label, series.time, series.values))
        if lines:
            panels.append(Panel(ERRORS[name].axis, lines))
    if not panels:
        return LeftOut(title, "It needs recorded runs with the paper's best count of workers.")
    caption = (
        "Not in the paper: how far the velocities after a step are from those that one engine makes of the same start. "
        "Left: relative to the change that the engine makes. Right: per body, root of the mean square."
    )
    return Plot("one-step-error", title, caption, partial(figures.over_time, panels))


def _compared(plan: Plan, scene: str) -> list[RunPart]:
    """One worker, and the paper's best count."""
    return [part for part in plan.runs("run", scene) if part.workers in (1, SCENES[scene].workers)]


def _line(part: RunPart, done: Mapping[str, Done], name: str, factor: float) -> Line:
    run = _open(done[part.name])
    values = np.asarray(run.values[name], float)
    if values.ndim > 1:
        values = values.sum(axis=1)
    best = part.workers == SCENES[part.scene].workers
    label = BEST if best else count_of(part.workers, "worker")
    return Line(int(best), label, run.time, factor * values)


def _error_table(plan: Plan, done: Mapping[str, Done]) -> Table | None:
    records = []
    for part in (part for scene in plan.scenes for part in plan.runs("run", scene)):
        result = done[part.name].result
        record = {
            "scene": part.scene,
            "workers": f"{part.workers}",
            "iterations": f"{part.iterations:,}",
            "steps": f"{part.steps:,}",
            "duplicated bodies": f"{result['summary']['duplicated_share']:.1%}",
        }
        for name in ("joint_gap_max", "penetration_max", "one_step_error"):
            if name in result["measured"] and (name != "joint_gap_max" or SCENES[part.scene].joint_count):
                kind = ERRORS[name]
                numbers = [kind.factor * result["measured"][name][what] for what in ("mean", "largest")]
                record[f"{kind.axis}: mean / largest"] = " / ".join(f"{number:.3g}" for number in numbers)
        records.append(record)
    return Table.of(records) if records else None


# ---- shares ------------------------------------------------------------------------------------------------------


def _shares(plan: Plan, done: Mapping[str, Done], scenes: Sequence[str], things: str, number: int) -> Plot | LeftOut:
    title = f"Figure {number}: {things} per worker"
    name = "worker_contact_count" if things == "contacts" else "worker_body_count"
    panels = {
        f"{part.scene}, {count_of(part.workers, 'worker')}": _open(done[part.name]).values[name]
        for scene in scenes
        for part in plan.runs("run", scene)
        if part.workers == SCENES[scene].workers
    }
    if not panels:
        return LeftOut(title, f"It needs runs of {', '.join(scenes)} with the paper's best count of workers.")
    caption = f"How many {things} each worker had, over all steps. White: the median; bar: quartiles."
    if things == "contacts":
        caption += " Contacts are touching pairs."
    draw = partial(figures.violins, panels, f"{things} per worker")
    return Plot(f"figure-{number}-{things}-per-worker", title, caption, draw)


# ---- growth depth and workers ------------------------------------------------------------------------------------


def _depths(plan: Plan, done: Mapping[str, Done]) -> Plot | LeftOut:
    title = "Errors over growth depth"
    panels = {}
    runs = plan.runs("depth")
    for scene in plan.scenes:
        many = sorted((part for part in plan.runs("depth", scene) if part.workers > 1), key=lambda p: p.growth_depth)
        single = [part for part in plan.runs("depth", scene) if part.workers == 1]
        for name in ("one_step_error", "joint_gap_sum"):
            if many:
                label = count_of(many[0].workers, "worker")
                line = _sweep(label, [part.growth_depth for part in many], many, done, name)
                best = None
                if single and name in done[single[0].name].result["measured"]:
                    best = ERRORS[name].factor * done[single[0].name].result["measured"][name]["mean"]
                panels[f"{scene}\n{ERRORS[name].axis}"] = ([line], best)
    if not panels:
        return LeftOut(title, "It needs a bridge.")
    caption = f"Not in the paper. {_over(runs)} The paper chose 6."
    draw = partial(figures.over_growth_depth, panels)
    return Plot("errors-over-growth-depth", title, caption, draw, _sweep_table(runs, done))


def _counts(plan: Plan, done: Mapping[str, Done]) -> Plot | LeftOut:
    title = "Errors over workers: the bowl"
    runs = sorted(plan.runs("count"), key=lambda part: part.workers)
    if not runs:
        return LeftOut(title, "It needs the bowl.")
    panels: dict[str, Any] = {}
    for name in ("one_step_error", "one_step_difference", "penetration_sum", "penetration_max"):
        panels[ERRORS[name].axis] = ([_sweep("bowl", [part.workers for part in runs], runs, done, name)], None)
    caption = f"Not in the paper. {_over(runs)} The bowl has no joints; penetration is its position error."
    draw = partial(figures.over_growth_depth, panels, "workers")
    return Plot("errors-over-workers", title, caption, draw, _sweep_table(runs, done))


def _over(runs: Sequence[RunPart]) -> str:
    """Over which steps errors are means."""
    part = runs[0]
    first = part.warmup + part.skip + 1
    last, iterations = part.warmup + part.steps, count_of(part.iterations, "iteration")
    text = f"Mean and largest of steps {first} to {last}, at {iterations}."
    return text if part.warmup == 0 else f"{text} The first {part.warmup} steps have fewer iterations."


def _sweep(label: str, x: Sequence[int], runs: Sequence[RunPart], done: Mapping[str, Done], name: str) -> GrowthLine:
    def of(what: str) -> Array:
        found = [done[part.name].result["measured"].get(name, {}).get(what, np.nan) for part in runs]
        return ERRORS[name].factor * np.array(found, float)

    return GrowthLine(label, np.array(x, float), of("mean"), of("largest"))


def _sweep_table(runs: Sequence[RunPart], done: Mapping[str, Done]) -> Table:
    records = []
    for part in runs:
        measured = done[part.name].result["measured"]
        record = {"scene": part.scene, "workers": f"{part.workers}", "growth depth": f"{part.growth_depth}"}
        for name in ERRORS:
            if name in measured and (not name.startswith("joint_gap") or SCENES[part.scene].joint_count):
                record[f"{ERRORS[name].axis}, mean"] = f"{ERRORS[name].factor * measured[name]['mean']:.3g}"
        records.append(record)
    return Table.of(records)


def _open(done: Done) -> Run:
    return Run(Recording(done.recording))
