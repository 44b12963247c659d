"""The one exception for every mistake a user can make."""

from __future__ import annotations

from collections.abc import Iterable


class LapjointError(ValueError):
    """A mistake in a scene, a file or an option. The message names the thing and says what was expected."""


class PenetrationWarning(UserWarning):
    """Bodies of a scene start deep inside each other."""


class EngineWarning(UserWarning):
    """An engine leaves out something that the scene has."""


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
