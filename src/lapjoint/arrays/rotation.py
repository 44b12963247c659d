"""Quaternions (w, x, y, z), in bulk: every function takes and returns arrays whose last axis holds the numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

IDENTITY: Array = np.array([1.0, 0.0, 0.0, 0.0])


def multiply(a: ArrayLike, b: ArrayLike) -> Array:
    """The rotation b followed by the rotation a."""
    aw, ax, ay, az = np.moveaxis(np.asarray(a, float), -1, 0)
    bw, bx, by, bz = np.moveaxis(np.asarray(b, float), -1, 0)
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def conjugate(q: ArrayLike) -> Array:
    """The inverse of a unit quaternion."""
    return np.asarray(np.asarray(q, float) * np.array([1.0, -1.0, -1.0, -1.0]))


def rotate(q: ArrayLike, v: ArrayLike) -> Array:
    """Vectors v turned by q."""
    turn, start = np.asarray(q, float), np.asarray(v, float)
    u = turn[..., 1:]
    t = 2.0 * np.cross(u, start)
    return np.asarray(start + turn[..., :1] * t + np.cross(u, t))


def from_axis_angle(axis: ArrayLike, angle: ArrayLike) -> Array:
    """Turn by `angle` radians about `axis` (of any length but zero)."""
    given = np.asarray(axis, float)
    half = 0.5 * np.asarray(angle, float)[..., None]
    unit = given / np.linalg.norm(given, axis=-1, keepdims=True)
    return np.concatenate([np.cos(half) * np.ones_like(unit[..., :1]), np.sin(half) * unit], axis=-1)


def between(a: ArrayLike, b: ArrayLike) -> Array:
    """The shortest rotation that takes the direction of a to the direction of b."""
    start, end = np.broadcast_arrays(np.asarray(a, float), np.asarray(b, float))
    start = start / np.linalg.norm(start, axis=-1, keepdims=True)
    end = end / np.linalg.norm(end, axis=-1, keepdims=True)
    w = 1.0 + np.sum(start * end, axis=-1, keepdims=True)
    # Opposite directions: half a turn about any axis perpendicular to the first.
    spare = np.where(np.abs(start[..., :1]) < 0.9, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    xyz = np.where(w < 1e-12, np.cross(start, spare), np.cross(start, end))
    q = np.concatenate([np.where(w < 1e-12, 0.0, w), xyz], axis=-1)
    return np.asarray(q / np.linalg.norm(q, axis=-1, keepdims=True))


def to_matrix(q: ArrayLike) -> Array:
    """Rotation matrices, shape (..., 3, 3)."""
    w, x, y, z = np.moveaxis(np.asarray(q, float), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def from_matrix(m: ArrayLike) -> Array:
    """Unit quaternions of rotation matrices, by the largest of the four components."""
    m = np.asarray(m, float)
    xx, yy, zz = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    four_squares = np.stack([1 + xx + yy + zz, 1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz], axis=-1)
    a, b, c = m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]
    d, e, f = m[..., 1, 0] + m[..., 0, 1], m[..., 0, 2] + m[..., 2, 0], m[..., 2, 1] + m[..., 1, 2]
    s = four_squares
    candidates = np.stack(
        [
            np.stack([s[..., 0], a, b, c], axis=-1),
            np.stack([a, s[..., 1], d, e], axis=-1),
            np.stack([b, d, s[..., 2], f], axis=-1),
            np.stack([c, e, f, s[..., 3]], axis=-1),
        ],
        axis=-2,
    )
    best = np.argmax(four_squares, axis=-1)
    q = np.take_along_axis(candidates, best[..., None, None], axis=-2)[..., 0, :]
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    return np.asarray(np.where(q[..., :1] < 0, -q, q))
