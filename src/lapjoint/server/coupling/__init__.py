"""Couplings: how workers' results become one. `base.py` is the protocol; `blend.py` (the paper) and `tight.py` are
beside each other."""

from __future__ import annotations

from .base import Coupling, Decision, Migration, ServerWork, StepContext
from .registry import COUPLINGS, coupling_type, make_coupling

__all__ = [
    "COUPLINGS",
    "Coupling",
    "Decision",
    "Migration",
    "ServerWork",
    "StepContext",
    "coupling_type",
    "make_coupling",
]
