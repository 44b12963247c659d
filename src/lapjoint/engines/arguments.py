"""Checks of what an engine is called with: body numbers, rows of numbers, arrays to write to."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import LapjointError
from ..scene import STATE_SIZE, Scene

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


def as_ids(body_ids: ArrayLike) -> Ids:
    """Body numbers, whatever they were given as."""
    ids = np.asarray(body_ids)
    if ids.size and ids.dtype.kind not in "iu":
        raise LapjointError(f"body numbers are of type {ids.dtype}, expected integers")
    for beyond in ids[np.abs(ids) > np.iinfo(np.int32).max]:
        raise LapjointError(f"body {beyond} does not exist")
    return np.ascontiguousarray(ids.reshape(-1), np.int32)


def finite_rows(
    scene: Scene, precision: str, name: str, ids: Ids, value: ArrayLike | None, columns: int
) -> NDArray[np.float64]:
    """`value` as one row for each body: given so, or one row for all. Finite, with room for sums."""
    try:
        given = np.asarray(np.zeros(columns) if value is None else value, np.float64)
    except (TypeError, ValueError):
        raise LapjointError(f"{name} are {value!r}, expected ({len(ids)}, {columns}) numbers") from None
    if given.shape not in ((columns,), (len(ids), columns)):
        raise LapjointError(f"{name} have shape {given.shape}, expected ({len(ids)}, {columns})")
    rows = np.ascontiguousarray(np.broadcast_to(given, (len(ids), columns)))
    good = (np.abs(rows) <= 1e-6 * float(np.finfo(precision).max)).all(axis=1)  # not for NaN either
    if not good.all():
        row = int(np.argmin(good))
        raise LapjointError(f"{scene.body_title(ids[row])}: {name} {rows[row]} are not finite in {precision}")
    return rows


def state_rows(scene: Scene, precision: str, ids: Ids, states: ArrayLike) -> Array:
    """States, one row for each body, with quaternions that are rotations."""
    rows = finite_rows(scene, precision, "states", ids, states, STATE_SIZE)
    lengths = np.einsum("ij,ij->i", rows[:, 3:7], rows[:, 3:7])
    if (lengths < 1e-12).any():
        title = scene.body_title(ids[int(np.argmin(lengths))])
        raise LapjointError(f"{title}: the state's quaternion is zero, expected a rotation")
    return rows


def room_for_states(ids: Ids, out: Array | None, rows: ArrayLike | None) -> tuple[Array, Ids | None]:
    """The array that states are written to, and the rows there (None: one after the other)."""
    if out is None:
        out = np.empty((len(ids), STATE_SIZE))
    places = None if rows is None else as_ids(rows)
    height = len(ids) if places is None else len(out)
    if out.shape != (height, STATE_SIZE) or out.dtype != np.float64 or not out.flags.carray:
        raise LapjointError(
            f"out has shape {out.shape} and type {out.dtype}, expected ({height}, 13) float64, contiguous and writable"
        )
    if places is not None and (
        len(places) != len(ids) or (len(places) and not 0 <= places.min() <= places.max() < height)
    ):
        raise LapjointError(f"rows are {len(places)} for {len(ids)} bodies, expected as many, from 0 to {height - 1}")
    return out, places


def pairs_and_states(scene: Scene, pairs: ArrayLike, states: ArrayLike) -> tuple[Ids, Array]:
    """Pairs of bodies of the scene, (n, 2), and the states of all its bodies."""
    rows = as_ids(pairs).reshape(-1, 2)
    for missing in rows[(rows < 0) | (rows >= scene.body_count)]:
        raise LapjointError(f"body {missing} does not exist, the scene has {scene.body_count} bodies")
    given, wanted = np.ascontiguousarray(states, np.float64), (scene.body_count, STATE_SIZE)
    if given.shape != wanted:
        raise LapjointError(f"states have shape {given.shape}, expected {wanted}")
    return rows, given
