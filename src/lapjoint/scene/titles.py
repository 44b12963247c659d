"""How messages call several bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .scene import Scene

MOST = 5
"""So many are named, the rest are counted."""


def body_titles(scene: Scene, body_ids: Sequence[Any] | Any) -> str:
    """The first bodies by number and name, and how many more there are."""
    named = ", ".join(scene.body_title(int(body)) for body in body_ids[:MOST])
    return named + (f" and {len(body_ids) - MOST} more" if len(body_ids) > MOST else "")
