"""Incidents: what went wrong in a run, or was done about it, for the screen and the recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

FAILURES = ("gone", "hung", "failed", "not finite")


@dataclass(frozen=True)
class Incident:
    """Something that happened, once."""

    step_count: int
    """Steps taken before the one in which it happened."""
    kind: str
    """gone, hung, failed, not finite: a worker failed; quarantine: bodies were frozen; removed: and taken out;
    surge: energy came from nowhere; workers: there are more or fewer of them; stop: the run was stopped."""
    text: str
    """In words, on one line."""
    worker: int | None = None
    """Which failed."""
    body_ids: tuple[int, ...] = ()
    """Bodies with states that are not finite, too fast, or with energy that came from nowhere."""
    recovery_s: float = 0.0
    """What it took until a fresh worker had taken the step [s]."""

    @property
    def is_failure(self) -> bool:
        """Whether a worker failed."""
        return self.kind in FAILURES

    def __str__(self) -> str:
        took = f" ({self.recovery_s:.2f} s)" if self.recovery_s else ""
        return f"step {self.step_count + 1}: {self.text}{took}"

    def to_dict(self) -> dict[str, Any]:
        """For a JSON file."""
        return asdict(self) | {"body_ids": list(self.body_ids)}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Incident:
        """An incident out of a JSON file; what this lapjoint does not know is left out."""
        known = {field.name: values[field.name] for field in fields(Incident) if field.name in values}
        return Incident(**known | {"body_ids": tuple(known.get("body_ids", ()))})
