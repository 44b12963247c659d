"""Locks: why a scene cannot be changed now."""

from __future__ import annotations

from ..errors import LapjointError


class Locks:
    """Changes are refused until as many locks are taken back as were added."""

    def __init__(self) -> None:
        self._reasons: list[str] = []

    def add(self, why: str) -> None:
        """Refuse changes; the refusal gives the reason, such as "a simulation of it is running"."""
        self._reasons.append(why)

    def take_back(self) -> None:
        """Take one lock back; without any, changes are possible again."""
        if not self._reasons:
            raise LapjointError("the scene is not locked")
        self._reasons.pop()

    def check(self, scene_name: str) -> None:
        """Raise if there is any."""
        if self._reasons:
            raise LapjointError(f"scene {scene_name!r} cannot be changed now: {self._reasons[-1]}")
