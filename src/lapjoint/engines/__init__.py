"""Engines: physics behind a small protocol, found by name."""

from __future__ import annotations

from .base import (
    CONTACT_MARGIN,
    Contacts,
    Engine,
    Mail,
    NeighbourEngine,
    PreparingEngine,
)
from .changes import STEP_MEASURES, Changes, DriveTargets, HalfTurnsSet, StepReport
from .inertias import check_inertias
from .readings import ContactPoints, ReadingEngine
from .registry import check_engines, engine_names, engine_version, make_engine, make_worker_engine, supports
from .state import EngineState, join_states
from .support import Support

__all__ = [
    "CONTACT_MARGIN",
    "STEP_MEASURES",
    "Changes",
    "ContactPoints",
    "Contacts",
    "DriveTargets",
    "Engine",
    "EngineState",
    "HalfTurnsSet",
    "Mail",
    "NeighbourEngine",
    "PreparingEngine",
    "ReadingEngine",
    "StepReport",
    "Support",
    "check_engines",
    "check_inertias",
    "engine_names",
    "engine_version",
    "join_states",
    "make_engine",
    "make_worker_engine",
    "supports",
]
