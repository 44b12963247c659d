"""The one exception for every mistake a user can make."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class LapjointError(ValueError):
    """A mistake in a scene, a file or an option. The message names the thing and what was expected."""


class PenetrationWarning(UserWarning):
    """Bodies of a scene start deep inside each other."""


class AccuracyWarning(UserWarning):
    """A scene asks for more than its options can solve well. The message says what to expect, and what helps."""


class EngineWarning(UserWarning):
    """An engine leaves out something that the scene has."""


class FileWarning(UserWarning):
    """A file has something that its scene has not exactly, or not at all."""


class PlugInWarning(UserWarning):
    """A package registers something that is not used."""


class WorkerError(LapjointError):
    """A worker failed or died. The message names it."""


class NotFiniteError(LapjointError):
    """Bodies have states that are not finite after a step. The message names them."""

    def __init__(self, text: str, body_ids: Iterable[int]) -> None:
        super().__init__(text)
        self.body_ids = tuple(int(body) for body in body_ids)


class SimulationStopped(LapjointError):
    """A run that cannot go on was stopped. The message names worker and bodies; states are those before the step."""

    def __init__(self, text: str, body_ids: Iterable[int] = ()) -> None:
        super().__init__(text)
        self.body_ids = tuple(int(body) for body in body_ids)


def shortened(text: object, most: int = 300) -> str:
    """A text within a message, cut where it goes on for long: what a foreign file holds may be quoted in it."""
    whole = str(text)
    return whole if len(whole) <= most else f"{whole[:most]}..."


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """` (did you mean 'bridge'?)`, for a message about an unknown name; empty where no known name is near it."""
    near = get_close_matches(str(name), list(known), n=1, cutoff=0.7)
    return f" (did you mean {near[0]!r}?)" if near else ""
