"""Measures of a scene's states, whatever computed them: joint gaps, energies, momenta, disagreement of workers, hash.

docs/measures.md defines them.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _measures
from ..arrays import rotation
from ..errors import LapjointError
from .joints import WORLD, JointKind
from .scene import Scene
from .states import STATE_SIZE

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


def joint_gaps(scene: Scene, states: ArrayLike, joint_ids: ArrayLike | None = None) -> Array:
    """Return how far each joint's two anchors are apart [m], along the directions the joint holds.

    `states` has a row for every body of the scene. A free or limited direction counts only beyond its limits, one with
    a spring not at all.
    """
    joints, count = scene.joints, scene.joint_count
    ids = np.arange(count, dtype=np.int32) if joint_ids is None else np.asarray(joint_ids)
    for unknown in ids[(ids < 0) | (ids >= count)]:
        raise LapjointError(f"joint {unknown} does not exist, the scene has {count} joints")
    gaps = np.empty(len(ids))
    _measures.joint_gaps(
        _rows(scene, states),
        np.ascontiguousarray(ids, np.int32),
        joints.body_a,
        joints.body_b,
        joints.frame_a,
        joints.frame_b,
        joints.lower,
        joints.upper,
        joints.spring_stiffness,
        gaps,
    )
    if (apart := joints.kind[ids] == JointKind.DISTANCE).any():
        gaps[apart] = _distance_gaps(scene, _rows(scene, states), np.asarray(ids)[apart])
    return gaps


def _distance_gaps(scene: Scene, states: Array, ids: Ids) -> Array:
    """By how much the anchors of these joints are too near or too far [m]."""
    joints, anchors = scene.joints, []
    for frame, bodies in ((joints.frame_a, joints.body_a), (joints.frame_b, joints.body_b)):
        local, rows = frame[ids, :3], states[np.maximum(bodies[ids], 0)]
        placed = rows[:, :3] + rotation.rotate(rows[:, 3:7], local)
        anchors.append(np.where((bodies[ids] == WORLD)[:, None], local, placed))
    length = np.linalg.norm(anchors[0] - anchors[1], axis=1)
    return np.asarray(np.abs(length - np.clip(length, joints.lower[ids, 0], joints.upper[ids, 0])))


def kinetic_energy(scene: Scene, states: ArrayLike) -> float:
    """Kinetic energy of all bodies, rotation included [J]."""
    return float(motion(scene, states)[0])


def potential_energy(scene: Scene, states: ArrayLike) -> float:
    """Potential energy of all bodies in gravity [J]; zero for a body at the world's origin. Springs are not counted."""
    return float(-(scene.bodies.mass @ _rows(scene, states)[:, :3]) @ scene.gravity)


def linear_momentum(scene: Scene, states: ArrayLike) -> Array:
    """Linear momentum of all bodies together [kg m/s], (3,)."""
    return motion(scene, states)[1:4]


def angular_momentum(scene: Scene, states: ArrayLike) -> Array:
    """Angular momentum of all bodies together about the world's origin [kg m^2/s], (3,)."""
    return motion(scene, states)[4:]


def motion(scene: Scene, states: ArrayLike) -> Array:
    """Kinetic energy, linear momentum and angular momentum at once, (7,): one of them takes nearly as long as all."""
    sums = np.empty(7)
    _measures.motion(_rows(scene, states), scene.bodies.mass, scene.bodies.inertia, sums)
    return sums


def disagreements(offset: Ids, worker_states: Array) -> tuple[Array, Array]:
    """Return how far the workers of each overlap body disagree: in position [m] and in linear velocity [m/s].

    Rows `offset[k]` to `offset[k + 1]` of `worker_states` are those of overlap body k, one for each of its workers.
    The two farthest apart count, whatever their weights.
    """
    worker_count = np.diff(offset)
    rows = worker_states[offset[0] : offset[-1]]
    body = np.repeat(np.arange(len(worker_count)), worker_count)
    farthest = np.zeros((2, len(worker_count)))
    # Every worker of a body with the next one, with the one after that, and so on.
    for shift in range(1, int(worker_count.max(initial=0))):
        same = np.flatnonzero(body[shift:] == body[:-shift])
        apart = rows[same + shift] - rows[same]
        for one, columns in zip(farthest, (slice(0, 3), slice(7, 10)), strict=True):
            np.maximum.at(one, body[same], np.linalg.norm(apart[:, columns], axis=1))
    return farthest[0], farthest[1]


def state_hash(states: ArrayLike) -> str:
    """Sixteen hexadecimal digits that change with any bit of any state."""
    data = np.ascontiguousarray(states, np.float64)
    return hashlib.blake2b(data.tobytes(), digest_size=8).hexdigest()


def _rows(scene: Scene, states: ArrayLike) -> Array:
    """States as the native code reads them: one row for every body."""
    rows = np.ascontiguousarray(states, np.float64)
    if rows.shape != (scene.body_count, STATE_SIZE):
        raise LapjointError(f"states have shape {rows.shape}, expected ({scene.body_count}, {STATE_SIZE})")
    return rows
