"""What one thing of a glTF file refers to by its number in a list of others."""

from __future__ import annotations

from typing import Any

from .notes import Notes


def entry_of(holder: dict[str, Any], listed: str, number: Any, where: str, notes: Notes) -> dict[str, Any]:
    """The entry with a number in a list; one that is not there is refused."""
    entries: list[dict[str, Any]] = holder.get(listed, [])
    if type(number) is not int or not 0 <= number < len(entries):
        raise notes.refuse(where, f"names {number!r} of the {listed}, and there are {len(entries)}")
    return entries[number]
