"""Measures of states and of steps: errors, energy, momentum, disagreement. docs/measures.md defines them."""

from __future__ import annotations

from ..scene.measures import (
    angular_momentum,
    disagreements,
    joint_gaps,
    kinetic_energy,
    linear_momentum,
    motion,
    potential_energy,
    state_hash,
)
from .step import UNITS, Measures

__all__ = [
    "UNITS",
    "Measures",
    "angular_momentum",
    "disagreements",
    "joint_gaps",
    "kinetic_energy",
    "linear_momentum",
    "motion",
    "potential_energy",
    "state_hash",
]
