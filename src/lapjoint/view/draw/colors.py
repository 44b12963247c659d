"""Colours: one per label or worker, and mixtures for bodies that several workers simulate.

Colours are rows of red, green and blue from 0 to 1, as in a picture (sRGB). Mixing and ramps happen in OKLab, where
equal steps look equal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import LapjointError

Array = NDArray[np.float64]

_PALETTE = (
    "#3f7fc4",  # blue
    "#e5534f",  # red
    "#f2b632",  # yellow
    "#3da35d",  # green
    "#8e5bb5",  # purple
    "#f28a3c",  # orange
    "#47b8c4",  # cyan
    "#e889b5",  # pink
    "#9b6a45",  # brown
    "#9cc44a",  # lime
)
PALETTE: Array = np.array([[int(text[k : k + 2], 16) / 255 for k in (1, 3, 5)] for text in _PALETTE])
"""The categorical colours, for up to ten labels or workers."""

_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def worker_colors(count: int) -> Array:
    """One colour per worker, (count, 3): the palette, or a ramp through all hues when there are more than ten."""
    if count <= len(PALETTE):
        return np.array(PALETTE[:count])
    # Neighbours in number are close in hue, and differ in lightness: light, dark, middle.
    steps = np.arange(count)
    hue = np.radians(25 + 335 * steps / count)
    lightness = np.array([0.78, 0.61, 0.70])[steps % 3]
    chroma = np.array([0.125, 0.15, 0.14])[steps % 3]
    return _in_gamut(np.stack([lightness, chroma * np.cos(hue), chroma * np.sin(hue)], axis=1))


def label_colors(labels: ArrayLike) -> Array:
    """One colour per body by its label, (n, 3). Labels are numbered in ascending order, whatever their values."""
    distinct, index = np.unique(np.asarray(labels), return_inverse=True)
    return worker_colors(len(distinct))[index.reshape(-1)]


def blend_colors(weights: ArrayLike, palette: ArrayLike | None = None) -> Array:
    """Mix colours by weights, (n, workers) with rows that sum to one: the colours of overlap bodies, (n, 3).

    The mean in OKLab of far-off hues is greyer than either, so half of what the mixture loses is given back.
    """
    weights = np.asarray(weights, float)
    if weights.ndim != 2:
        raise LapjointError(f"weights have shape {weights.shape}, expected (bodies, workers)")
    colors = worker_colors(weights.shape[1]) if palette is None else np.asarray(palette, float)
    if colors.shape != (weights.shape[1], 3):
        raise LapjointError(f"the palette has shape {colors.shape}, expected ({weights.shape[1]}, 3)")
    if not (np.isfinite(weights).all() and (weights >= -1e-6).all()):
        raise LapjointError("weights contain a value that is not a number from 0 to 1")
    wrong = np.flatnonzero(np.abs(weights.sum(axis=1) - 1) > 1e-3)
    if len(wrong):
        raise LapjointError(f"body {wrong[0]}: weights sum to {weights[wrong[0]].sum():g}, expected 1")
    lab = _to_lab(colors)
    mixed = weights @ lab
    chroma = np.hypot(mixed[:, 1], mixed[:, 2])
    wanted = weights @ np.hypot(lab[:, 1], lab[:, 2])
    mixed[:, 1:] *= np.minimum(np.sqrt(wanted / np.maximum(chroma, 1e-9)), 1.6)[:, None]
    return _in_gamut(mixed)


def ramp(stops: ArrayLike, shares: ArrayLike) -> Array:
    """Colours along a ramp through `stops`, (k, 3), at shares from 0 to 1."""
    lab = _to_lab(np.asarray(stops, float))
    at = np.linspace(0.0, 1.0, len(lab))
    given = np.asarray(shares, float)
    mixed = np.stack([np.interp(given, at, lab[:, axis]) for axis in range(3)], axis=1)
    return np.clip(_from_lab(mixed), 0.0, 1.0)


def to_linear(srgb: ArrayLike) -> Array:
    """Light intensities of picture colours."""
    srgb = np.asarray(srgb, float)
    return np.asarray(np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4))


def _to_lab(srgb: Array) -> Array:
    return np.asarray(np.cbrt(to_linear(srgb) @ _TO_LMS.T) @ _TO_LAB.T)


def _from_lab(lab: Array) -> Array:
    """Picture colours, which may lie outside of what a picture can show."""
    linear = (lab @ np.linalg.inv(_TO_LAB).T) ** 3 @ np.linalg.inv(_TO_LMS).T
    curve = 1.055 * np.maximum(linear, 1e-9) ** (1 / 2.4) - 0.055
    return np.asarray(np.where(linear <= 0.0031308, 12.92 * linear, curve))


def _in_gamut(lab: Array) -> Array:
    """Picture colours, with as much of the chroma as a picture can show."""
    keep = np.linspace(1.0, 0.0, 41)
    tries = np.stack([_from_lab(lab * np.array([1.0, k, k])) for k in keep])
    fits = ((tries >= -1e-4) & (tries <= 1 + 1e-4)).all(axis=2)
    best = np.where(fits.any(axis=0), fits.argmax(axis=0), len(keep) - 1)
    return np.clip(tries[best, np.arange(len(lab))], 0.0, 1.0)
