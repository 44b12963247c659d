"""Scenes and recordings as USD files. Needs usd-core, of the extra `lapjoint[usd]`."""

from __future__ import annotations

from .write import write_usd

__all__ = ["write_usd"]
