"""Checkpoints: a simulation in a file, to go on from there. See docs/checkpoints.md."""

from __future__ import annotations

from .reader import Checkpoint
from .writer import CheckpointWriter

__all__ = ["Checkpoint", "CheckpointWriter"]
