"""Params: every number a user can set for a run."""

from __future__ import annotations

from .params import Params

__all__ = ["Params"]
