"""Runtimes: where workers live. `inline`: in this process; `process`: in processes of their own; `ray`: on many
machines."""

from __future__ import annotations

from .base import Runtime, make_runtime, runtime_names

__all__ = ["Runtime", "make_runtime", "runtime_names"]
