"""Engines: physics behind a small protocol, found by name."""

from __future__ import annotations

from .base import (
    CONTACT_MARGIN,
    STEP_MEASURES,
    BreakingEngine,
    Contacts,
    DirectEngine,
    DrivingEngine,
    Engine,
    FieldEngine,
    GrowingEngine,
    HitEngine,
    KinematicEngine,
    Mail,
    NeighbourEngine,
    SensorEngine,
    SleepingEngine,
    SubstepEngine,
    SurgeEngine,
)
from .inertias import check_inertias
from .readings import ContactPoints, ReadingEngine, TouchEngine
from .registry import check_engines, engine_names, engine_version, make_engine, make_worker_engine, supports
from .state import EngineState, join_states
from .step_tables import SENSOR_KINDS, Hits, JointBreaks, SensorEvents, StepTable, Surges, TouchReports
from .support import Support

__all__ = [
    "CONTACT_MARGIN",
    "SENSOR_KINDS",
    "STEP_MEASURES",
    "BreakingEngine",
    "ContactPoints",
    "Contacts",
    "DirectEngine",
    "DrivingEngine",
    "Engine",
    "EngineState",
    "FieldEngine",
    "GrowingEngine",
    "HitEngine",
    "Hits",
    "JointBreaks",
    "KinematicEngine",
    "Mail",
    "NeighbourEngine",
    "ReadingEngine",
    "SensorEngine",
    "SensorEvents",
    "SleepingEngine",
    "StepTable",
    "SubstepEngine",
    "Support",
    "SurgeEngine",
    "Surges",
    "TouchEngine",
    "TouchReports",
    "check_engines",
    "check_inertias",
    "engine_names",
    "engine_version",
    "join_states",
    "make_engine",
    "make_worker_engine",
    "supports",
]
