"""Counts in words, as labels and messages show them."""

from __future__ import annotations


def count_of(count: int, thing: str, things: str | None = None) -> str:
    """As in `1 worker`, `2,408 bodies`."""
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"
