"""Tints: the colour of every body, by what the user wants to see. What each colour means is said beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .colors import blend_colors, label_colors, worker_colors
from .snapshot import Snapshot

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

SHADES = 32
"""Steps of weight that are told apart when colours are mixed; more than an eye can tell."""
_COLD_TO_HOT = np.array(
    [
        [0.18, 0.24, 0.55],
        [0.16, 0.51, 0.70],
        [0.24, 0.73, 0.58],
        [0.84, 0.80, 0.25],
        [0.94, 0.46, 0.14],
        [0.78, 0.10, 0.16],
    ]
)
_OVERLAP = np.array([[0.62, 0.65, 0.70], [0.95, 0.62, 0.16], [0.86, 0.24, 0.20], [0.55, 0.13, 0.52]])
"""Bodies with one worker, two, three, more."""


@dataclass(frozen=True)
class Legend:
    """What the colours mean: entries of colour and text, or a scale from `low` to `high`."""

    entries: tuple[tuple[Array, str], ...] = ()
    scale: Array | None = None
    low: str = ""
    high: str = ""


def by_worker(snapshot: Snapshot, draft: Ids, scale: float) -> Array:
    """The worker's colour; bodies of several workers have a mixture by weight."""
    weights = np.maximum(snapshot.weights, 0.0)
    colors = worker_colors(weights.shape[1])[np.argmax(weights, axis=1)]
    mixed = np.flatnonzero((snapshot.is_member).sum(axis=1) > 1)
    if len(mixed):
        # Mixing is slow and weights repeat: mix each set of weights once.
        steps = np.round(weights[mixed] * SHADES).astype(np.int16)
        rows, index = np.unique(steps, axis=0, return_inverse=True)
        total = rows.sum(axis=1, keepdims=True).astype(float)
        colors[mixed] = blend_colors(rows / np.maximum(total, 1.0))[index.reshape(-1)]
    return np.asarray(colors)


def by_overlap(snapshot: Snapshot, draft: Ids, scale: float) -> Array:
    """How many workers simulate the body."""
    return np.asarray(_OVERLAP[np.clip(snapshot.is_member.sum(axis=1), 1, len(_OVERLAP)) - 1])


def by_speed(snapshot: Snapshot, draft: Ids, scale: float) -> Array:
    """How fast the body moves."""
    return ramp(np.linalg.norm(snapshot.states[:, 7:10], axis=1) / scale)


def by_contacts(snapshot: Snapshot, draft: Ids, scale: float) -> Array:
    """How many bodies, static ones included, the body touches."""
    return ramp(snapshot.contact_counts() / scale)


def by_draft(snapshot: Snapshot, draft: Ids, scale: float) -> Array:
    """The worker that the partition made by hand gives the body."""
    colors = np.tile(_OVERLAP[0], (len(snapshot.states), 1))
    colors[: len(draft)] = worker_colors(int(draft.max(initial=0)) + 1)[draft]
    return colors


def ramp(values: Array) -> Array:
    """Colours from cold to hot for numbers from 0 to 1."""
    places = np.clip(values, 0.0, 1.0) * (len(_COLD_TO_HOT) - 1)
    knots = np.arange(len(_COLD_TO_HOT))
    return np.stack([np.interp(places, knots, _COLD_TO_HOT[:, k]) for k in range(3)], axis=1)


MODES: dict[str, Callable[[Snapshot, Ids, float], Array]] = {
    "worker": by_worker,
    "overlap": by_overlap,
    "speed": by_speed,
    "contacts": by_contacts,
    "partition by hand": by_draft,
}
LABEL = "label"
MODE_NAMES = ("worker", "overlap", LABEL, "speed", "contacts", "partition by hand")


class Tints:
    """Colours of a scene's bodies over time. Scales of speed and contacts follow what there is to see, slowly."""

    def __init__(self, labels: NDArray[np.int32], worker_count: int) -> None:
        self._labels = label_colors(labels)
        self._label_values = np.unique(labels)
        self._worker_count = worker_count
        self._scales = {"speed": 0.0, "contacts": 0.0}

    def colors(self, mode: str, snapshot: Snapshot, draft: Ids) -> Array:
        """One row for every body of the snapshot."""
        count = len(snapshot.states)
        if mode == LABEL:
            extra = np.tile(_OVERLAP[0], (count - len(self._labels), 1))
            return np.concatenate([self._labels, extra])
        if mode == "speed":
            self._follow(mode, np.linalg.norm(snapshot.states[:, 7:10], axis=1), 1e-3)
        elif mode == "contacts":
            self._follow(mode, snapshot.contact_counts(), 1.0)
        return MODES[mode](snapshot, draft, self._scales.get(mode, 1.0))

    def _follow(self, mode: str, values: NDArray[np.float64] | NDArray[np.int64], least: float) -> None:
        wanted = max(float(np.percentile(values, 98)) if len(values) else 0.0, least)
        before = self._scales[mode]
        self._scales[mode] = wanted if before == 0 else max(before + 0.05 * (wanted - before), least)

    def legend(self, mode: str, has_contacts: bool = True) -> Legend:
        if mode in ("worker", "partition by hand"):
            colors = worker_colors(self._worker_count)
            return Legend(tuple((color, f"worker {w}") for w, color in enumerate(colors)))
        if mode == "overlap":
            return Legend(tuple(zip(_OVERLAP, ("one worker", "two", "three", "more"), strict=True)))
        if mode == LABEL:
            names = [f"label {value}" for value in self._label_values]
            return Legend(tuple(zip(label_colors(self._label_values), names, strict=True)))
        if mode == "contacts" and not has_contacts:
            return Legend(((ramp(np.zeros(1))[0], "contacts are not recorded"),))
        units = {"speed": "m/s", "contacts": "contacts"}[mode]
        return Legend((), ramp(np.linspace(0, 1, 9)), "0", f"{self._scales[mode]:.3g} {units}")


def emphasised(colors: Array, bodies: NDArray[np.intp] | Ids, color: tuple[float, float, float], share: float) -> Array:
    """Some bodies' colours drawn towards another one."""
    if len(bodies):
        colors = colors.copy()
        colors[bodies] += share * (np.asarray(color) - colors[bodies])
    return colors
