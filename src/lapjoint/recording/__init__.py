"""Recordings: a run in a directory of Zarr arrays, written beside the steps and read lazily. See docs/recording.md."""

from __future__ import annotations

from .reader import Recording
from .writer import RecordingWriter

__all__ = ["Recording", "RecordingWriter"]
