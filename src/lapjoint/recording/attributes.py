"""Attributes of a recording as its file has them, checked: what is missing or wrong is named with its file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..arrays.checks import is_finite
from ..errors import LapjointError, shortened
from ..server.incidents import Incident
from ..system.foreign import MOST_DESCRIPTION, read_foreign
from ..system.shortage import reason
from .description import is_whole
from .layout import FORMAT, ROOT, VERSION

MOST = 2**53
"""Counts beyond this are no counts."""
MOST_BODIES = 2**31 - 1
MOST_WORKERS = 1024
"""As in `Params`."""


class Attributes:
    """The attributes of the recording at `path`, read from its file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._values = _read(path)

    def count(self, name: str, low: int = 0, high: int = MOST) -> int:
        """An integer in this range."""

        def is_count(value: Any) -> bool:
            return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high

        expected = f"an integer from {low}" + (f" to {high}" if high < MOST else "")
        return int(self._checked(name, is_count, expected))

    def duration(self, name: str) -> float:
        """A positive number [s]."""
        return float(self._checked(name, lambda value: is_finite(value) and value > 0, "a positive number"))

    def flag(self, name: str) -> bool:
        """True or false."""
        return bool(self._checked(name, lambda value: isinstance(value, bool), "true or false"))

    def text(self, name: str) -> str:
        return str(self._checked(name, lambda value: isinstance(value, str), "a text"))

    def table(self, name: str) -> dict[str, Any]:
        """Values by name."""
        return dict(self._checked(name, lambda value: isinstance(value, dict), "values by name"))

    def machine(self, name: str) -> dict[str, str | int]:
        """What is known of a machine, by name."""

        def is_machine(value: Any) -> bool:
            return isinstance(value, dict) and isinstance(value.get("core_count", 1), int)

        return dict(self._checked(name, is_machine, "values by name, core_count an integer"))

    def optional_table(self, name: str) -> dict[str, Any] | None:
        """Values by name, or None where there are none."""
        return None if self._values.get(name) is None else self.table(name)

    def names(self, name: str) -> list[str]:
        """Names, none of which leads out of a folder."""

        def are_names(value: Any) -> bool:
            return isinstance(value, list) and all(map(_is_name, value))

        return list(self._checked(name, are_names, "a list of names"))

    def events(self, name: str) -> list[Incident]:
        """Events."""

        def are_events(value: Any) -> bool:
            return isinstance(value, list) and all(map(_is_event, value))

        return [Incident.from_dict(event) for event in self._checked(name, are_events, "a list of events")]

    def _checked(self, name: str, is_fine: Callable[[Any], bool], expected: str) -> Any:
        value = self._values.get(name)
        if is_fine(value):
            return value
        found = f"is {_short(value)}" if name in self._values else "is missing"
        raise LapjointError(f"{self._path}: damaged recording ({ROOT}: {name} {found}, expected {expected})")


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value not in ("", ".", "..") and not set(value) & set("/\\\0")


def _is_event(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    body_ids, worker = value.get("body_ids", []), value.get("worker")
    return (
        isinstance(value.get("step_count"), int)
        and isinstance(value.get("kind"), str)
        and isinstance(value.get("text"), str)
        and (worker is None or isinstance(worker, int))
        and isinstance(body_ids, list)
        and all(isinstance(body, int) for body in body_ids)
        and is_finite(value.get("recovery_s", 0.0))
    )


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _read(path: Path) -> Mapping[str, Any]:
    try:
        attributes = json.loads(read_foreign(path / ROOT, MOST_DESCRIPTION, path))["attributes"]
        if attributes["format"] != FORMAT:
            raise KeyError("format")
    except OSError as error:
        why = "it does not exist" if not path.exists() else f"{ROOT}: {reason(error)}"
        raise LapjointError(f"{path}: not a lapjoint recording ({why}), expected a directory of --record") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise LapjointError(
            f"{path}: not a lapjoint recording ({ROOT} is another's), expected a directory of --record"
        ) from None
    if attributes.get("version") != VERSION:
        version = shortened(attributes.get("version"))
        raise LapjointError(f"{path}: recording version {version}, this lapjoint reads {VERSION}")
    if not is_whole(attributes):
        raise LapjointError(f"{path}: damaged recording ({ROOT} is not what was written: its checksum is another)")
    return dict(attributes)
