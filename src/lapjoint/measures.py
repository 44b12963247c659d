"""Error measures of states, for any engine."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import rotation
from .joints import WORLD
from .scene import Scene

Array = NDArray[np.float64]


def joint_gaps(scene: Scene, states: ArrayLike, joint_ids: ArrayLike | None = None) -> Array:
    """How far each joint's two anchors are apart [m], along the directions the joint holds.

    `states` has a row for every body of the scene. A free or limited direction counts only beyond its limits.
    """
    states = np.asarray(states, float)
    joints = scene.joints
    ids = np.arange(scene.joint_count) if joint_ids is None else np.asarray(joint_ids, int)
    a, b = joints.body_a[ids], joints.body_b[ids]
    frame_a, frame_b = joints.frame_a[ids], joints.frame_b[ids]
    world = (b == WORLD)[:, None]
    anchor_a = states[a, :3] + rotation.rotate(states[a, 3:7], frame_a[:, :3])
    b_position = np.where(world, 0.0, states[b, :3])
    b_turn = np.where(world, rotation.IDENTITY, states[b, 3:7])
    anchor_b = b_position + rotation.rotate(b_turn, frame_b[:, :3])
    # Where a stands in b's joint frame; what is within the limits is no gap.
    axes = rotation.multiply(b_turn, frame_b[:, 3:])
    offset = rotation.rotate(rotation.conjugate(axes), anchor_a - anchor_b)
    allowed = np.clip(offset, joints.lower[ids, :3], joints.upper[ids, :3])
    sprung = joints.spring_stiffness[ids, :3] > 0
    return np.asarray(np.linalg.norm(np.where(sprung, 0.0, offset - allowed), axis=1))


def state_hash(states: ArrayLike) -> str:
    """Sixteen hexadecimal digits that change with any bit of any state."""
    data = np.ascontiguousarray(states, np.float64)
    return hashlib.blake2b(data.tobytes(), digest_size=8).hexdigest()
