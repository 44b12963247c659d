"""Controls: one browser at a time holds them; the others watch, in the order in which they came."""

from __future__ import annotations

import threading


class Controls:
    """Who holds the controls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[int] = []

    def join(self, client_id: int) -> bool:
        """Add a browser; returns whether it gets the controls."""
        with self._lock:
            if client_id not in self._waiting:
                self._waiting.append(client_id)
            return self._waiting[0] == client_id

    def leave(self, client_id: int) -> int | None:
        """Remove a browser; returns who gets the controls from it, if anybody."""
        with self._lock:
            had = bool(self._waiting) and self._waiting[0] == client_id
            if client_id in self._waiting:
                self._waiting.remove(client_id)
            return self._waiting[0] if had and self._waiting else None

    def has(self, client_id: int | None) -> bool:
        """Whether this browser holds them."""
        with self._lock:
            return bool(self._waiting) and self._waiting[0] == client_id

    @property
    def watcher_count(self) -> int:
        """Browsers without the controls."""
        with self._lock:
            return max(len(self._waiting) - 1, 0)
