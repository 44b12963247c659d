"""What mappings of scenes to other engines have in common."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays import rotation
from ..scene import Compound, Part, Scene
from ..scene.shapes import STATIC_ONLY, StaticShape, bounding_radius

Array = NDArray[np.float64]


def pieces(shape: StaticShape) -> list[tuple[StaticShape, Array, Array]]:
    """What a shape is made of, with place and quaternion: the parts of a compound, or the shape itself."""
    if not isinstance(shape, Compound):
        return [(shape, np.zeros(3), rotation.IDENTITY)]
    return [(part.shape, np.asarray(part.position), np.asarray(part.quaternion)) for part in shape.parts]


def parts_of(shape: StaticShape) -> list[Part | None]:
    """The part of a compound that each of its pieces is; None of a shape that has no parts."""
    return [*shape.parts] if isinstance(shape, Compound) else [None]


def damping_rate(share: Array) -> Array:
    """Damping as a rate [1/s]: of a share of the velocity lost per second."""
    return np.asarray(-np.log1p(-np.minimum(share, 1 - 1e-9)))


def principal_axes(inertia: Array) -> tuple[Array, Array]:
    """Principal moments and, as the columns of a rotation, their axes. Axes that fit already are kept."""
    if np.abs(inertia - np.diag(np.diag(inertia))).max() <= 1e-9 * np.abs(inertia).max():
        return np.diag(inertia).copy(), np.eye(3)
    moments, axes = np.linalg.eigh(inertia)
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return moments, axes


def hinge_arm(scene: Scene, joint: int) -> float:
    """How far from a hinge's anchor its two ball joints are [m], for engines that hold a hinge by two of them."""
    shape = scene.shapes[scene.bodies.shape_id[scene.joints.body_a[joint]]]
    assert not isinstance(shape, STATIC_ONLY)
    return bounding_radius(shape)
