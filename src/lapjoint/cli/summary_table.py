"""What `lapjoint run` says at the end of a run."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from ..run import RunSummary


def summary_table(summary: RunSummary) -> Table:
    table = Table(box=None, show_header=False)
    table.add_column(style="bold")
    table.add_column()
    rows = {
        "scene": f"{summary.scene}: {summary.body_count:,} bodies, {summary.joint_count:,} joints",
        "engine": f"{summary.engine} {summary.precision}, {summary.iterations} iterations",
        "solver": f"{summary.solver}, {summary.fallback_count_mean:.2g} groups a step left to sweeps",
        "workers": f"{summary.workers}, {summary.runtime}",
        **(_tight_rows(summary) if summary.coupling == "tight" else _blend_rows(summary)),
        "simulated": f"{summary.steps:,} steps of {summary.timestep * 1e3:g} ms",
        "speed": f"{summary.steps_per_second:,.1f} steps/s, {summary.step_ms_mean:.2f} ms/step, "
        f"{summary.real_time_factor:.3g} x real time",
        "contacts": f"{summary.contact_count_mean:,.0f} a step, {summary.contact_point_count_mean:,.0f} points",
        "phases": ", ".join(f"{name} {ms:.2f}" for name, ms in summary.phases_ms.items()) + " ms",
        "joint gap": f"{summary.joint_gap_max * 1e3:.3g} mm at most",
        "penetration": f"{summary.penetration_max * 1e3:.3g} mm at most",
        **_measured_rows(summary),
        "failures": f"{summary.failure_count}, all replaced" if summary.stopped is None else f"{summary.failure_count}",
        "frozen": f"{len(summary.frozen_ids)} bodies",
        "state hash": summary.state_hash,
    }
    if summary.solver == "sequential":
        del rows["solver"]
    if summary.failure_count == 0:
        del rows["failures"]
    if not summary.frozen_ids:
        del rows["frozen"]
    if summary.joint_count == 0:
        del rows["joint gap"]
    if summary.workers == 1:
        for name in ("workers", "overlap", "interface", "phases"):
            rows.pop(name, None)
        if summary.coupling == "blend":
            del rows["coupling"]
    for name, value in rows.items():
        table.add_row(name, escape(value))
    return table


def _blend_rows(summary: RunSummary) -> dict[str, str]:
    return {
        "coupling": f"blend, growth depth {summary.growth_depth}, search depth {summary.search_depth}",
        "overlap": f"{summary.overlap_count_mean:,.0f} bodies, {summary.duplicated_share:.1%} duplicated, "
        f"{summary.activation_count_mean:.1f} activations a step",
    }


def _tight_rows(summary: RunSummary) -> dict[str, str]:
    """The residual is how far the step's velocities are from agreed: what one more round would have changed."""
    most = f"tight, at most {summary.rounds} rounds"
    rows = {"coupling": f"{most}, tolerance {summary.tolerance:g} m/s" if summary.tolerance else most}
    if summary.rounds_max is not None:  # there was a step
        rows["rounds"] = f"{summary.rounds_mean:.1f} a step, {summary.rounds_max} at most"
    if summary.residual_max is not None:
        rows["residual"] = (
            f"{summary.residual_mean:.2g} m/s, {summary.residual_max:.2g} m/s at most: largest velocity change of any "
            "constraint in the last round"
        )
    rows["interface"] = (
        f"{summary.interface_count_mean:,.0f} bodies, {summary.cut_share_mean:.1%} of the constraints between workers, "
        f"{summary.activation_count_mean:.1f} activations a step"
    )
    return rows


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
