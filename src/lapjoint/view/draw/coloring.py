"""Colour modes: what the colours of bodies mean. Pictures, films, exported pages and viewers share them.

Pure functions of arrays; NumPy is all they need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import LapjointError
from ...params.coupling_choice import traits
from ...scene.states import there
from .colors import blend_colors, label_colors, ramp, worker_colors

Array = NDArray[np.float64]

MODES: dict[str, str] = {
    "worker": "one colour per worker; overlap bodies mix the colours of their workers by weight",
    "overlap": "grey with one worker, then yellow, orange, red and purple for two, three, four and more",
    "interface": "one colour per worker, full for bodies with constraints between workers and pale for those inside",
    "label": "one colour per label of the scene",
    "speed": "from dark blue at rest over red to yellow at the highest speed",
    "contacts": "from grey without a contact over green to dark blue with eight or more",
}
"""The modes, with a line about each."""

SHADES = 64
"""Steps of weight that get colours of their own; more than an eye can distinguish."""
MOST_MIXTURES = 20_000
"""Mixtures that are kept."""
MOST_CONTACTS = 8
"""Bodies with more contacts look like those with so many."""
_SINGLE = (0.80, 0.81, 0.83)
_COUNTS: Array = np.array([_SINGLE, (0.98, 0.80, 0.22), (0.95, 0.55, 0.17), (0.84, 0.22, 0.20), (0.48, 0.20, 0.55)])
"""Colours of one, two, three, four, and five or more workers."""
PALE = 0.65
"""How far bodies inside are drawn from their worker's colour towards grey."""
_INSIDE = (0.70, 0.71, 0.73)
_SPEED = ((0.13, 0.17, 0.42), (0.47, 0.22, 0.58), (0.85, 0.30, 0.37), (0.98, 0.62, 0.22), (0.98, 0.92, 0.50))
_CONTACTS = (_SINGLE, (0.62, 0.80, 0.52), (0.22, 0.62, 0.55), (0.15, 0.36, 0.55), (0.17, 0.16, 0.40))


def checked_mode(mode: str) -> str:
    """The name of a mode, if it is one."""
    if mode not in MODES:
        raise LapjointError(f"no colour mode {mode!r}, expected {', '.join(MODES)}")
    return mode


def modes_of(coupling: str, has_contacts: bool = True) -> list[str]:
    """The modes that a coupling has: overlap is of blend, an interface of tight coupling."""
    without = {"interface" if traits(coupling).overlaps else "overlap"} | (set() if has_contacts else {"contacts"})
    return [mode for mode in MODES if mode not in without]


def body_colors(
    mode: str,
    *,
    labels: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    states: ArrayLike | None = None,
    contacts: ArrayLike | None = None,
    interface: ArrayLike | None = None,
    fastest: float | None = None,
) -> Array:
    """Colours of all bodies, (n, 3) from 0 to 1. A mode takes what is listed for it and ignores the rest:

    worker: `weights`, (n, workers), rows that sum to one. overlap: `weights`, or a membership: what is not zero is
    active. interface: `weights`, and the numbers of the bodies at the interface. label: `labels`, (n,). speed:
    `states`, (n, 13), and the speed that is yellow, `fastest` [m/s], that of these states if not given. contacts: pairs
    of bodies, (m, 2), negative for a static body, and `states` or anything else with a row per body.
    """
    if checked_mode(mode) == "label":
        return label_colors(_given(mode, "labels", labels))
    if mode == "worker":
        return _blended(np.asarray(_given(mode, "weights", weights), float))
    if mode == "interface":
        full = _blended(np.asarray(_given(mode, "weights", weights), float))
        colors = full + PALE * (np.array(_INSIDE) - full)
        at_interface = np.asarray(_given(mode, "interface", interface), np.int64)
        colors[at_interface] = full[at_interface]
        return colors
    if mode == "overlap":
        counts = np.count_nonzero(np.asarray(_given(mode, "weights", weights)), axis=1)
        return np.asarray(_COUNTS[np.clip(counts, 1, len(_COUNTS)) - 1])
    if mode == "speed":
        table = np.asarray(_given(mode, "states", states), float)
        speeds = np.linalg.norm(table[:, 7:10], axis=1)
        top = fastest_of(speeds[there(table)]) if fastest is None else fastest
        # The root distinguishes slow bodies from those at rest: most bodies of most scenes are slow.
        return ramp(_SPEED, np.sqrt(np.clip(speeds / max(top, 1e-9), 0.0, 1.0)))
    rows = next((given for given in (states, weights, labels) if given is not None), None)
    counts = contact_counts(_given(mode, "contacts", contacts), len(np.asarray(_given(mode, "states", rows))))
    return ramp(_CONTACTS, np.minimum(counts / MOST_CONTACTS, 1.0))


def contact_counts(contacts: ArrayLike, body_count: int) -> NDArray[np.int64]:
    """How many contacts each body has, with bodies and with static bodies."""
    ends = np.asarray(contacts, np.int64).reshape(-1)
    return np.bincount(ends[ends >= 0], minlength=body_count)


def fastest_of(speeds: ArrayLike) -> float:
    """The speed that is yellow [m/s]: a few bodies that fly away do not make all others dark."""
    values = np.asarray(speeds, float)
    return float(np.percentile(values, 99)) if values.size else 1.0


@dataclass(frozen=True)
class Entry:
    """A colour and its meaning."""

    text: str
    color: tuple[float, float, float]


def legend(mode: str, *, workers: int = 1, fastest: float = 1.0, labels: Sequence[int] = ()) -> list[Entry]:
    """The meaning of a mode's colours, for captions and panels."""
    if checked_mode(mode) == "worker":
        return _entries([f"worker {i}" for i in range(workers)], worker_colors(workers))
    if mode == "interface":
        texts, pale = [f"worker {i}, interface" for i in range(workers)], np.array([_INSIDE])
        return _entries([*texts, "paler: inside"], np.concatenate([worker_colors(workers), pale]))
    if mode == "overlap":
        texts = ["1 worker", "2 workers", "3 workers", "4 workers", "5 or more"][: max(workers, 1)]
        return _entries(texts, _COUNTS[: len(texts)])
    if mode == "label":
        distinct = sorted(set(labels))
        return _entries([f"label {label}" for label in distinct], worker_colors(len(distinct)))
    shares = np.linspace(0.0, 1.0, 5)
    if mode == "speed":
        return _entries([f"{fastest * share**2:.2g} m/s" for share in shares], ramp(_SPEED, shares))
    counts = [round(share * MOST_CONTACTS) for share in shares]
    texts = [*(f"{count} contacts" for count in counts[:-1]), f"{MOST_CONTACTS} or more"]
    return _entries(texts, ramp(_CONTACTS, shares))


def _entries(texts: Sequence[str], colors: Array) -> list[Entry]:
    return [Entry(text, (r, g, b)) for text, (r, g, b) in zip(texts, colors.tolist(), strict=True)]


def _blended(weights: Array) -> Array:
    """As `blend_colors`, which is slow: only overlap bodies go through it, and weights that repeat do so once."""
    palette = worker_colors(weights.shape[1])
    colors = np.asarray(palette[weights.argmax(axis=1)])
    largest = weights.max(axis=1)
    mixed = (largest < 1 - 1e-6) & (largest > 0)  # a body that is not there has no worker
    if mixed.any():
        steps, index = np.unique(np.round(weights[mixed] * SHADES).astype(np.uint8), axis=0, return_inverse=True)
        colors[mixed] = _mixtures(steps, palette)[index.reshape(-1)]
    return colors


_mixed: dict[bytes, Array] = {}
"""Mixtures that were made: a film and a page need the same ones in every frame."""


def _mixtures(steps: NDArray[np.uint8], palette: Array) -> Array:
    """Colours of rows of weights, which are given in steps; all steps together are a weight of one."""
    keys = [row.tobytes() for row in steps]
    new = [i for i, key in enumerate(keys) if key not in _mixed]
    if new:
        if len(_mixed) > MOST_MIXTURES:
            _mixed.clear()
            new = list(range(len(keys)))
        rows = steps[new].astype(float)
        made = blend_colors(rows / rows.sum(axis=1, keepdims=True), palette)
        _mixed.update((keys[i], color) for i, color in zip(new, made, strict=True))
    return np.array([_mixed[key] for key in keys])


def _given(mode: str, name: str, value: ArrayLike | None) -> ArrayLike:
    if value is None:
        raise LapjointError(f"colour mode {mode} needs {name}")
    return value
