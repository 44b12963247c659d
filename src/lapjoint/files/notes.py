"""What a reader made of a file: what it read, what it approximated, and what it left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import LapjointError


@dataclass(frozen=True)
class Note:
    """Something in a file that is not in the scene as the file has it."""

    where: str
    """The element, with its name, and its line or path."""
    text: str


@dataclass
class Notes:
    """Of one file. What is harmless is noted; what would make the result wrong is refused."""

    path: Path
    read: Counter[str] = field(default_factory=Counter)
    """How many of what was read."""
    approximated: list[Note] = field(default_factory=list)
    """What is in the scene, but not exactly."""
    left_out: list[Note] = field(default_factory=list)
    """What is not in the scene, and changes nothing of its motion that anybody would miss."""

    def count(self, what: str, number: int = 1) -> None:
        if number:
            self.read[what] += number

    def approximate(self, where: str, text: str) -> None:
        self.approximated.append(Note(where, text))

    def leave_out(self, where: str, text: str) -> None:
        self.left_out.append(Note(where, text))

    def refuse(self, where: str, text: str) -> LapjointError:
        """The error of something that would make the result wrong: to be raised."""
        return LapjointError(f"{self.path}: {where}: {text}" if where else f"{self.path}: {text}")

    def lines(self) -> list[str]:
        """One line for each kind of note, with the first element that has it and how many more there are."""
        found: list[str] = []
        for notes in (self.approximated, self.left_out):
            by_text: dict[str, list[str]] = {}
            for note in notes:
                by_text.setdefault(note.text, []).append(note.where)
            for text, places in by_text.items():
                more = f" (and {len(places) - 1} more)" if len(places) > 1 else ""
                found.append(f"{places[0]}{more}: {text}")
        return found
