"""Measures of every step of a simulation, by name. docs/measures.md has the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..errors import LapjointError, did_you_mean
from ..scene.measures import disagreements, motion, potential_energy
from ..server.series import StepSeries
from ..simulation import Simulation
from .one_step import OneStep

Array = NDArray[np.float64]
Values = dict[str, "float | Array"]
States = Callable[[], Array]

UNITS = {
    "joint_gap_sum": "m",
    "joint_gap_max": "m",
    "penetration_sum": "m",
    "penetration_max": "m",
    "worker_residual": "m/s",
    "kinetic_energy": "J",
    "potential_energy": "J",
    "linear_momentum": "kg m/s",
    "angular_momentum": "kg m^2/s",
    "disagreement_position_max": "m",
    "disagreement_position_mean": "m",
    "disagreement_velocity_max": "m/s",
    "disagreement_velocity_mean": "m/s",
    "one_step_error": "1",
    "one_step_difference": "m/s",
}
"""Every measure there is."""
ALWAYS = ("joint_gap_sum", "joint_gap_max", "penetration_sum", "penetration_max", "worker_residual")
"""Measures of every run: its summary needs them."""

BY_WORKERS = frozenset(ALWAYS)
"""Measures that workers take of every step, where they take several by themselves. All others look at the states
between two steps."""
_ONE_STEP = {"one_step_error", "one_step_difference"}


class Measures:
    """Measures a simulation step by step.

    >>> measures = Measures(simulation, ["kinetic_energy", "one_step_error"], one_step_every=5)
    >>> measures.before_step(simulation)
    >>> simulation.step()
    >>> measures.after_step(simulation)["kinetic_energy"]

    `names` are a list, a text with commas, or "all". Every `one_step_every`-th step has a one-step error; in the others
    it is not a number.
    """

    def __init__(self, simulation: Simulation, names: str | Sequence[str] = "all", one_step_every: int = 1) -> None:
        self.names = checked_names(names)
        counts = {
            "worker_residual": simulation.workers.membership.worker_count,
            "linear_momentum": 3,
            "angular_momentum": 3,
        }
        self.counts = {name: counts.get(name, 1) for name in self.names}
        """How many numbers each measure has: the argument `measures` of RecordingWriter."""
        self._take = [take for names, take in _TAKERS.items() if not set(names).isdisjoint(self.names)]
        self._one_step = None if _ONE_STEP.isdisjoint(self.names) else OneStep(simulation, one_step_every)

    @property
    def need_every_state(self) -> bool:
        """Whether each step has to be looked at, so that workers cannot take several by themselves."""
        return not BY_WORKERS.issuperset(self.names)

    def before_step(self, simulation: Simulation) -> None:
        """Keep what the step starts from. Call it right before the step."""
        if self._one_step is not None:
            self._one_step.before_step(simulation)

    def after_step(self, simulation: Simulation) -> Values:
        """Return the measures by name, of the step just taken and of the states after it."""
        states = cache(lambda: simulation.states)  # of all bodies: a copy, for who needs it
        found: Values = {}
        for take in self._take:
            found |= take(simulation, states)
        if self._one_step is not None:
            error, difference = self._one_step.after_step(simulation, states())
            found |= {"one_step_error": error, "one_step_difference": difference}
        return {name: found[name] for name in self.names}

    def after_steps(self, simulation: Simulation) -> list[Values]:
        """The same of every step that was just taken at once (Simulation.step_at_once)."""
        last, series = self.after_step(simulation), simulation.profile.series
        if len_before := simulation.profile.steps - 1:
            assert series is not None
            assert not self.need_every_state
            earlier = [_earlier(series, step) for step in range(len_before)]
            return [*({name: found[name] for name in self.names} for found in earlier), last]
        return [last]


def _earlier(series: StepSeries, step: int) -> Values:
    """Of a step with another one after it: joints are where the next begins."""
    return {
        "joint_gap_sum": float(series.joint_gap_sum[step + 1]),
        "joint_gap_max": float(series.joint_gap_max[step + 1]),
        "penetration_sum": float(series.penetration_sum[step]),
        "penetration_max": float(series.penetration_max[step]),
        "worker_residual": series.worker_residual[step],
    }


def checked_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Names of measures, each once; "all" for all of them."""
    if names == "all":
        return tuple(UNITS)
    given = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    for name in given:
        if name not in UNITS:
            hint = did_you_mean(name, ("all", *UNITS))
            raise LapjointError(f"no measure named {name!r}{hint}; known measures: all, {', '.join(UNITS)}")
    return tuple(dict.fromkeys(given))


# ---- what belongs together is taken at once --------------------------------------------------------------------------


def _joint_gaps(simulation: Simulation, states: States) -> Values:
    gaps = simulation.joints.gaps()
    return {"joint_gap_sum": float(gaps.sum()), "joint_gap_max": float(gaps.max(initial=0.0))}


def _penetration(simulation: Simulation, states: States) -> Values:
    series = simulation.profile.series
    if series is not None:
        return {"penetration_sum": float(series.penetration_sum[-1]), "penetration_max": simulation.profile.penetration}
    depth = simulation.profile.contacts.depth
    return {"penetration_sum": float(depth[depth > 0].sum()), "penetration_max": float(depth.max(initial=0.0))}


def _residual(simulation: Simulation, states: States) -> Values:
    return {"worker_residual": np.array([reply.residual for reply in simulation.replies])}


def _motion(simulation: Simulation, states: States) -> Values:
    sums = motion(simulation.scene, states())
    return {"kinetic_energy": float(sums[0]), "linear_momentum": sums[1:4], "angular_momentum": sums[4:]}


def _potential(simulation: Simulation, states: States) -> Values:
    return {"potential_energy": potential_energy(simulation.scene, states())}


def _disagreement(simulation: Simulation, states: States) -> Values:
    found = disagreements(simulation.workers.weight_offset, simulation.workers.overlap_states)
    values: Values = {}
    for what, apart in zip(("position", "velocity"), found, strict=True):
        values[f"disagreement_{what}_max"] = float(apart.max(initial=0.0))
        values[f"disagreement_{what}_mean"] = float(apart.mean()) if len(apart) else 0.0
    return values


_TAKERS: dict[tuple[str, ...], Callable[[Simulation, States], Values]] = {
    ("joint_gap_sum", "joint_gap_max"): _joint_gaps,
    ("penetration_sum", "penetration_max"): _penetration,
    ("worker_residual",): _residual,
    ("kinetic_energy", "linear_momentum", "angular_momentum"): _motion,
    ("potential_energy",): _potential,
    tuple(name for name in UNITS if name.startswith("disagreement")): _disagreement,
}
