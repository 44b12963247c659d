"""Linking numbers: how often one closed curve winds around another. They show whether two links still hold together.

Gauss's integral over two closed polygons is a sum over pairs of their edges, and each pair's share is a signed solid
angle with a closed form (Arai 2013; Qu and James 2021, "Fast linking numbers for topology verification of loopy
structures"). So the sum is exact, and differs from a whole number by rounding only, unless the curves touch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import LapjointError

Array = NDArray[np.float64]
CHUNK = 200_000  # edge pairs worked on at once: about 100 MB of temporaries


def linking_numbers(curves_a: ArrayLike, curves_b: ArrayLike) -> NDArray[np.int64]:
    """The linking number of each pair of closed polygons: curve k of `curves_a` with curve k of `curves_b`.

    Curves are (pairs, points, 3), each one's last point joined to its first; a and b may differ in how many points
    they have. The sign follows the directions of the two curves. Where curves cross each other there is no linking
    number, and what is returned means nothing.
    """
    a, b = _curves("curves_a", curves_a), _curves("curves_b", curves_b)
    if len(a) != len(b):
        raise LapjointError(f"linking_numbers: {len(a)} curves a and {len(b)} curves b, expected pairs")
    rows = max(1, CHUNK // max(1, a.shape[1] * b.shape[1]))
    turns = np.concatenate([np.zeros(0), *(_turns(a[k : k + rows], b[k : k + rows]) for k in range(0, len(a), rows))])
    whole: NDArray[np.int64] = np.rint(np.nan_to_num(turns)).astype(np.int64)
    bad = np.flatnonzero(~(np.abs(turns - whole) < 1e-3))
    if len(bad):
        raise LapjointError(
            f"linking_numbers: pair {bad[0]} has no linking number, its points are not finite or its curves cross"
        )
    return whole


def _curves(name: str, value: ArrayLike) -> Array:
    curves = np.asarray(value, float)
    if curves.ndim != 3 or curves.shape[1] < 3 or curves.shape[2] != 3:
        raise LapjointError(f"linking_numbers: {name} has shape {curves.shape}, expected (pairs, points, 3)")
    return curves


def _turns(a: Array, b: Array) -> Array:
    """Gauss's integral of each pair, before rounding."""
    # d[:, i, j] leads from point i of a to point j of b; an edge pair is a skew quadrilateral of four of them.
    d = b[:, None, :, :] - a[:, :, None, :]
    next_a, next_b = np.roll(d, -1, axis=1), np.roll(d, -1, axis=2)
    both = np.roll(next_a, -1, axis=2)
    return np.asarray((_half_angles(d, next_a, both) + _half_angles(d, both, next_b)).sum(axis=(1, 2)) / (2 * np.pi))


def _half_angles(u: Array, v: Array, w: Array) -> Array:
    """Half of the signed solid angle of each triangle u, v, w seen from the origin (Van Oosterom and Strackee)."""
    lu, lv, lw = (np.sqrt(np.einsum("...k,...k", p, p)) for p in (u, v, w))
    volume = np.einsum("...k,...k", u, np.cross(v, w))
    uv, vw, wu = (np.einsum("...k,...k", p, q) for p, q in ((u, v), (v, w), (w, u)))
    return np.asarray(np.arctan2(volume, lu * lv * lw + uv * lw + vw * lu + wu * lv))
