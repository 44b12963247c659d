"""The one exception for every mistake a user can make."""

from __future__ import annotations


class LapjointError(ValueError):
    """A mistake in a scene, a file or an option. The message names the thing and says what was expected."""


class PenetrationWarning(UserWarning):
    """Bodies of a scene start deep inside each other."""


class WorkerError(LapjointError):
    """A worker failed or died. The message names it."""
