"""The table that `lapjoint run` prints at the end of a run."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from ..engines import supports
from ..measures.interfaces import excess
from ..params.coupling_choice import traits
from ..params.engine_choice import EngineChoice
from ..run import RunSummary
from .shared import counted


def summary_table(summary: RunSummary) -> Table:
    table = Table(box=None, show_header=False)
    table.add_column(style="bold")
    table.add_column()
    rows = {
        "scene": f"{summary.scene}: {counted(summary.body_count, 'body', 'bodies')}, "
        f"{counted(summary.joint_count, 'joint')}",
        "engine": f"{summary.engine} {summary.precision}",
        "solver": _solver(summary),
        "workers": f"{summary.workers}, {summary.runtime}",
        **(_exchange_rows(summary) if traits(summary.coupling).exchanges else _overlap_rows(summary)),
        "simulated": f"{counted(summary.steps, 'step')} of {summary.timestep * 1e3:g} ms",
        "speed": f"{summary.steps_per_second:,.1f} steps/s, {summary.step_ms_mean:.2f} ms/step, "
        f"{summary.real_time_factor:.3g} x real time",
        "contacts": f"{summary.contact_count_mean:,.0f} a step, "
        f"{counted(summary.contact_point_count_mean, 'point', form=',.0f')}",
        "phases": ", ".join(f"{name} {ms:.2f}" for name, ms in summary.phases_ms.items()) + " ms",
        "joint gap": f"{summary.joint_gap_max * 1e3:.3g} mm at most",
        "made": counted(summary.made_count, "body", "bodies"),
        "removed": counted(summary.removed_count, "body", "bodies"),
        "broken": counted(summary.broken_joint_count, "joint"),
        **{
            name.replace("_", " "): f"{count:,}"
            for name, count in summary.reported.items()
            if count and name != "breaks"
        },
        "penetration": f"{summary.penetration_max * 1e3:.3g} mm at most",
        **_excess_rows(summary),
        **_measured_rows(summary),
        "failures": f"{summary.failure_count}, all replaced" if summary.stopped is None else f"{summary.failure_count}",
        "frozen": counted(len(summary.frozen_ids), "body", "bodies"),
        "state hash": summary.state_hash,
    }
    if summary.failure_count == 0:
        del rows["failures"]
    if not summary.frozen_ids:
        del rows["frozen"]
    counts = {"made": summary.made_count, "removed": summary.removed_count, "broken": summary.broken_joint_count}
    for name in (name for name, count in counts.items() if not count):
        del rows[name]
    if summary.joint_count == 0 and summary.joint_gap_max == 0:
        del rows["joint gap"]
    if summary.workers == 1:
        for name in ("overlap", "interface", "phases"):
            rows.pop(name, None)
        if summary.workers_reason is None:
            del rows["workers"]
        if traits(summary.coupling).overlaps:
            del rows["coupling"]
    if "coupling" in rows and summary.coupling_reason is not None:
        rows["coupling"] += f" (auto: {summary.coupling_reason})"
    if summary.solver_reason is not None:
        rows["solver"] += f" (auto: {summary.solver_reason})"
    if summary.workers_reason is not None:
        rows["workers"] += f" (auto: {summary.workers_reason})"
    for name, value in rows.items():
        table.add_row(name, escape(value))
    return table


def _solver(summary: RunSummary) -> str:
    """The solver and how much work it does; that of another engine than Bullet has no name here."""
    if summary.solver == "substeps":
        joints = "" if summary.joints == "auto" or not summary.joint_count else f", joints {summary.joints}"
        if summary.substeps_max in (None, summary.substeps):
            return f"substeps, {summary.substeps} a step{joints}"
        return f"substeps, {summary.substeps_mean:.1f} a step, {summary.substeps_max} at most{joints}"
    own = set(EngineChoice.parse(summary.engine).names) != {"bullet"}
    if own or summary.solver == "sequential":
        return f"{'its own' if own else summary.solver}, {counted(summary.iterations, 'iteration', form='')}"
    return f"{summary.solver}, {counted(summary.fallback_count_mean, 'group', form='.2g')} a step left to sweeps"


def _overlap_rows(summary: RunSummary) -> dict[str, str]:
    return {
        "coupling": f"blend, growth depth {summary.growth_depth}, search depth {summary.search_depth}",
        "overlap": f"{counted(summary.overlap_count_mean, 'body', 'bodies', ',.0f')}, "
        f"{summary.duplicated_share:.1%} duplicated, "
        f"{summary.activation_count_mean:.1f} activations a step",
    }


def _exchange_rows(summary: RunSummary) -> dict[str, str]:
    """The residual is how far the step's velocities are from agreed: what one more sweep would have changed."""
    rows = {"coupling": "tight"}
    if summary.exchanges_max and summary.exchanges_mean is not None:  # there was a step of several workers
        rows["coupling"] += f", {counted(summary.exchanges_mean, 'exchange', form=',.0f')} a step between two workers"
    if summary.residual_max is not None:
        rows["residual"] = (
            f"{summary.residual_mean:.2g} m/s, {summary.residual_max:.2g} m/s at most: largest velocity change of any "
            "constraint in the last sweep"
        )
    rows["interface"] = (
        f"{counted(summary.interface_count_mean or 0, 'body', 'bodies', ',.0f')}, "
        f"{summary.cut_share_mean:.1%} of the constraints between workers, "
        f"{summary.activation_count_mean:.1f} activations a step"
    )
    return rows


def _excess_rows(summary: RunSummary) -> dict[str, str]:
    """Where an error at interfaces is many times what one engine has, which option helps."""
    pairs = {
        "penetration": (summary.penetration_interface, summary.penetration_interior),
        "joint gap": (summary.joint_gap_interface, summary.joint_gap_interior),
    }
    found = [excess(what, *pair, summary.length_unit) for what, pair in pairs.items()]
    texts = [
        f"{one.what} {one.interface * 1e3:.3g} mm rms, {one.times:.1f} times that inside workers"
        for one in found
        if one is not None
    ]
    return {"at interfaces": f"{'; '.join(texts)}: {_what_helps(summary)}"} if texts else {}


def _what_helps(summary: RunSummary) -> str:
    if summary.coupling == "tight":
        return "more --substeps help"
    engines = EngineChoice.parse(summary.engine).names
    if all("tight" in supports(name).couplings for name in engines):
        return "--coupling tight helps, or a larger --growth-depth"
    return "a larger --growth-depth helps"


def _measured_rows(summary: RunSummary) -> dict[str, str]:
    """What --measure has asked for."""
    rows: dict[str, str] = {}
    energies = {"kinetic": summary.kinetic_energy, "potential": summary.potential_energy}
    found = [f"{kind} {energy:.6g} J" for kind, energy in energies.items() if energy is not None]
    if found:
        rows["energy"] = ", ".join(found) + " at the end"
    apart = {"mm": summary.disagreement_position_max, "mm/s": summary.disagreement_velocity_max}
    found = [f"{1e3 * value:.3g} {unit}" for unit, value in apart.items() if value is not None]
    if found:
        rows["disagreement"] = ", ".join(found) + " at most"
    if summary.one_step_error_mean is not None:
        rows["one-step error"] = (
            f"{summary.one_step_error_mean:.3g} in the mean, {summary.one_step_error_max:.3g} at most"
        )
    return rows
