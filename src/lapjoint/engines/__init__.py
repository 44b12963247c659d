"""Engines: physics behind a small protocol, found by name."""

from __future__ import annotations

from .base import Contacts, Engine, EngineMemory
from .registry import engine_names, make_engine

__all__ = ["Contacts", "Engine", "EngineMemory", "engine_names", "make_engine"]
