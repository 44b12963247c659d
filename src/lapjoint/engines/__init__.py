"""Engines: physics behind a small protocol, found by name."""

from __future__ import annotations

from .base import CONTACT_MARGIN, Contacts, DirectEngine, Engine, RoundEngine
from .memory import EngineMemory, join_memories
from .registry import check_engines, engine_names, engine_version, make_engine, supports
from .support import Support

__all__ = [
    "CONTACT_MARGIN",
    "Contacts",
    "DirectEngine",
    "Engine",
    "EngineMemory",
    "RoundEngine",
    "Support",
    "check_engines",
    "engine_names",
    "engine_version",
    "join_memories",
    "make_engine",
    "supports",
]
