"""Crowds: so many bodies in one place that their pairs are too many. They are counted before any of them is found."""

from __future__ import annotations

import warnings

import numpy as np

from ..errors import LapjointError, PenetrationWarning
from ..scene import Scene
from ..scene.thickness import thickness

MANY, TOO_MANY = 200_000, 10_000_000
"""Pairs of bodies inside each other that are warned of, and that are refused."""
PAIR_BYTES, PAIR_US = 2500, 8
"""What a pair takes: memory, and time of the first step, in which it is swept most."""


def check_crowds(scene: Scene, first: int = 0) -> bool:
    """Warn of many pairs of bodies, from number `first` on, that are inside each other, and refuse too many; both name
    a body. Returns whether there was a warning.

    Bodies are counted that are in one cube, whose side is at most half of their least extent: all of them overlap."""
    bodies = scene.bodies
    alone = (bodies.group[first:] & bodies.mask[first:]) == 0
    there = first + np.flatnonzero(~alone)
    if len(there) * len(there) < 2 * MANY:
        return False
    used, place = np.unique(bodies.shape_id[there], return_inverse=True)
    half = np.array([thickness(scene.shapes[shape_id]) for shape_id in used.tolist()])[place]
    cube = np.exp2(np.floor(np.log2(np.maximum(half, np.finfo(float).tiny))))
    at = np.floor(bodies.position[there] / cube[:, None])
    columns = (*at.T, cube, bodies.group[there], bodies.mask[there])
    order = np.lexsort(columns)
    differs = np.any([column[order][1:] != column[order][:-1] for column in columns], axis=0)
    starts = np.concatenate([[0], np.flatnonzero(differs) + 1])
    counts = np.diff([*starts, len(order)])
    pair_count = int((counts * (counts - 1) // 2).sum())
    if pair_count <= MANY:
        return False
    largest = int(np.argmax(counts))
    body = scene.body_title(int(there[order[starts[largest]]]))
    text = (
        f"scene {scene.name!r}: about {pair_count:,} pairs of bodies are inside each other, {counts[largest]:,} bodies "
        f"where {body} is"
    )
    if pair_count > TOO_MANY:
        raise LapjointError(f"{text}, expected at most {TOO_MANY:,} pairs")
    cost = f"{PAIR_BYTES * pair_count / 1e9:.2g} GB and {PAIR_US * pair_count / 1e6:.2g} s in their first step"
    warnings.warn(f"{text}: expect {cost}", PenetrationWarning, stacklevel=4)
    return True
