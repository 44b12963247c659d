"""Numbers of a recording, a row for every step, under the names that tables, figures and files share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..measures.step import UNITS
from ..recording import Recording

PROFILE_UNITS = {"residual": "m/s", "byte_count": "B"}
OF_TIGHT = ("exchanges", "interface_count", "cut_share")
"""Numbers that only tight coupling has."""


def step_values(recording: Recording) -> dict[str, NDArray[Any]]:
    """Return every number recorded in every step, by name: (steps,) or (steps, workers); of vectors their length.

    All bodies are activated before the first step; that is no change, so it counts as none.
    """
    found: dict[str, NDArray[Any]] = {}
    left_out = ("step_count", *(() if recording.has_interface else OF_TIGHT))
    for name in recording.profile:
        values = recording.profile[name]
        if name == "phases_ms":
            found["step_ms"] = values.sum(axis=1)
            for number, phase in enumerate(recording.phases):
                found[phase_key(phase)] = values[:, number]
        elif name == "activation_count":
            found[name] = np.where(recording.profile["step_count"] == 1, 0, values)
        elif name not in left_out:
            found[name] = values
    for name in recording.measures:
        values = recording.measures[name]
        is_vector = values.ndim > 1 and not name.startswith("worker_")
        found[name] = np.linalg.norm(values, axis=1) if is_vector else values
    return found


def phase_key(phase: str) -> str:
    """The name of a phase's time; step_ms is the whole step."""
    return "step_phase_ms" if phase == "step" else f"{phase}_ms"


def unit_of(name: str) -> str:
    """The unit of a number by its name; empty for a count or a ratio."""
    if name.endswith("_ms"):
        return "ms"
    return PROFILE_UNITS.get(name) or UNITS.get(name, "").removeprefix("1")
