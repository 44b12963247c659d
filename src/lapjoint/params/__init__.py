"""Params: every number a user can set for a run."""

from __future__ import annotations

from .blend import Blend
from .failures import Failures
from .params import Params
from .sequential import Sequential
from .sleep import Sleep
from .substeps import Substeps
from .units import Units

__all__ = ["Blend", "Failures", "Params", "Sequential", "Sleep", "Substeps", "Units"]
