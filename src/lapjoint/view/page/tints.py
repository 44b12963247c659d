"""Tints: the colours of a page's bodies over time: the colour modes, and partitions made by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...scene import Scene
from ..draw import coloring
from ..draw.colors import label_colors, worker_colors
from .snapshot import Snapshot

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

BY_HAND = "partition by hand"
MODE_NAMES = (*coloring.MODES, BY_HAND)


@dataclass(frozen=True)
class Legend:
    """What the colours mean: entries of colour and text, or a scale from `low` to `high`."""

    entries: tuple[tuple[Array, str], ...] = ()
    scale: Array | None = None
    low: str = ""
    high: str = ""


class Tints:
    """Colours of a scene's bodies over time. The scale of speeds follows what there is to see, slowly."""

    def __init__(self, worker_count: int) -> None:
        self._scene: Scene | None = None
        self._label_colors: Array = np.empty((0, 3))
        self._labels: list[int] = []
        self._worker_count = worker_count
        self._fastest = 0.0

    def colors(self, mode: str, snapshot: Snapshot, draft: Ids) -> Array:
        """One row for every body of the snapshot. Those of removed bodies mean nothing."""
        if self._scene is not snapshot.scene:
            self._scene, labels = snapshot.scene, snapshot.scene.bodies.label
            self._label_colors, self._labels = label_colors(labels), np.unique(labels).tolist()
        if mode == "label":
            return self._label_colors
        if mode == BY_HAND:
            return worker_colors(int(draft.max(initial=0)) + 1)[draft]
        if mode == "speed":
            self._follow(np.linalg.norm(snapshot.states[snapshot.alive, 7:10], axis=1))
        contacts = () if snapshot.contacts is None else snapshot.contacts.bodies
        weights = snapshot.is_member.astype(float) if mode == "overlap" else np.maximum(snapshot.weights, 0.0)
        weights[~snapshot.alive, 0] = 1.0  # weights sum to one
        return coloring.body_colors(
            mode,
            weights=weights,
            states=snapshot.states,
            contacts=contacts,
            interface=snapshot.interface,
            fastest=self._fastest,
        )

    def _follow(self, speeds: Array) -> None:
        wanted = max(coloring.fastest_of(speeds), 1e-3)
        self._fastest = wanted if self._fastest == 0 else self._fastest + 0.05 * (wanted - self._fastest)

    def legend(self, mode: str, has_contacts: bool = True) -> Legend:
        entries = coloring.legend(
            "worker" if mode == BY_HAND else mode,
            workers=self._worker_count,
            fastest=self._fastest,
            labels=self._labels,
        )
        if mode == "contacts" and not has_contacts:
            return Legend(((np.array(entries[0].color), "contacts are not recorded"),))
        if mode in ("speed", "contacts"):
            return Legend((), np.array([entry.color for entry in entries]), entries[0].text, entries[-1].text)
        return Legend(tuple((np.array(entry.color), entry.text) for entry in entries))


def emphasised(colors: Array, bodies: NDArray[np.intp] | Ids, color: tuple[float, float, float], share: float) -> Array:
    """Return the colours with those of some bodies mixed with another one."""
    if len(bodies):
        colors = colors.copy()
        colors[bodies] += share * (np.asarray(color) - colors[bodies])
    return colors
