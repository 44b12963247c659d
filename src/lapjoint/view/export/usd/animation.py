"""Frames as time samples: poses, colours where the owner changes, and visibility of bodies that come and go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pxr import Gf, Sdf, Vt

from ..frames import Frames, changes, steps
from .layer import Types

XYZW = (1, 2, 3, 0)
"""Quaternions as USD has them in memory."""


def add_animation(
    layer: Sdf.Layer,
    frames: Frames,
    bodies: Sequence[Any],
    kinematic: Sequence[Any],
    on_body: Callable[[int, int], None] | None = None,
) -> None:
    """Time samples of bodies and kinematic bodies at these paths. A sample that the line between its neighbours has is
    left out. `on_body` is called with the number of bodies written, and of all."""
    codes = frames.time_codes.tolist()
    count = len(bodies)
    tables = (frames.positions, frames.quaternions, frames.colors)
    moved, turned, painted = changes(frames.positions), changes(frames.quaternions), steps(frames.colors)
    came = steps(frames.shown[:, :, None])
    for i, path in enumerate(bodies):
        places, turns, colors = (table[:, i] for table in tables)
        _sample(layer, path, "xformOp:translate", codes, moved[:, i], _vec3d(places))
        _sample(layer, path, "xformOp:orient", codes, turned[:, i], _quatd(turns))
        if painted[1:, i].any():
            # A colour holds until the next: it does not fade.
            values = [Vt.Vec3fArray([Gf.Vec3f(*color)]) for color in colors.astype(float).tolist()]
            _sample(layer, path, "primvars:displayColor", codes, changes_in_steps(painted[:, i]), values)
        if not frames.shown[:, i].all():
            prim = layer.GetPrimAtPath(path)
            spec = Sdf.AttributeSpec(prim, "visibility", Types.Token)
            spec.default = "inherited"
            values = ["inherited" if there else "invisible" for there in frames.shown[:, i]]
            _sample(layer, path, "visibility", codes, came[:, i], values)
        if on_body is not None and (i % 100 == 99 or i + 1 == count):
            on_body(i + 1, count)
    poses = frames.static_poses
    moved, turned = changes(poses[:, :, :3]), changes(poses[:, :, 3:])
    for k, path in enumerate(kinematic):
        _sample(layer, path, "xformOp:translate", codes, moved[:, k], _vec3d(poses[:, k, :3]))
        _sample(layer, path, "xformOp:orient", codes, turned[:, k], _quatd(poses[:, k, 3:]))


def changes_in_steps(changed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The frames in which something changed, and those before: lines between samples are as steep as frames allow."""
    before = changed.copy()
    before[:-1] |= changed[1:]
    return before


def _sample(
    layer: Sdf.Layer, prim: Any, name: str, codes: Sequence[float], needed: NDArray[np.bool_], values: Sequence[Any]
) -> None:
    path = prim.AppendProperty(name)
    for k in np.flatnonzero(needed).tolist():
        layer.SetTimeSample(path, codes[k], values[k])


def _vec3d(table: NDArray[np.float32]) -> Any:
    return Vt.Vec3dArray.FromNumpy(np.ascontiguousarray(table, np.float64))


def _quatd(table: NDArray[np.float32]) -> Any:
    # Of unit length in double precision: USD takes the angle from w alone.
    turns = table[:, XYZW].astype(np.float64)
    return Vt.QuatdArray.FromNumpy(turns / np.linalg.norm(turns, axis=1, keepdims=True))
