"""Light: where the key light stands, and which part of the scene its shadow map covers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .camera import Camera, look_axes

Array = NDArray[np.float64]
SHADOW_SIZE = 2048
"""Texels along a side of the shadow map."""


def lights(camera: Camera) -> tuple[Array, Array]:
    """Directions to the key light, above the camera's left shoulder, and to the weak fill light from the right."""
    right, _, back = camera.axes()
    up = np.array([0.0, 0.0, 1.0])
    flat = back - back[2] * up
    length = np.linalg.norm(flat)
    flat = flat / length if length > 1e-3 else np.cross(right, up)
    key = -0.50 * right + 0.52 * flat + 1.05 * up
    fill = 0.90 * right + 0.30 * flat + 0.30 * up
    return key / np.linalg.norm(key), fill / np.linalg.norm(fill)


@dataclass(frozen=True)
class ShadowView:
    """The light's own camera."""

    projection: Array
    """4x4 matrix from the world to the light's screen, from -1 to 1."""
    texel: float
    """Size of one texel in the world [m]."""

    @property
    def lookup(self) -> Array:
        """4x4 matrix from the world to the shadow map's coordinates, from 0 to 1."""
        half = np.diag([0.5, 0.5, 0.5, 1.0])
        half[:3, 3] = 0.5
        return half @ self.projection


def shadow_view(light: Array, centres: Array, radii: Array, wanted: NDArray[np.bool_]) -> ShadowView:
    """Cover the wanted spheres; the others cast shadows too where they can. Sizes go in steps and places in whole
    texels, so that shadows do not swim from one frame to the next."""
    axes = look_axes(-light)
    if not len(centres):
        centres, radii, wanted = np.zeros((1, 3)), np.ones(1), np.ones(1, bool)
    elif not wanted.any():
        wanted = np.ones(len(centres), bool)
    seen = centres @ axes.T
    low = (seen[wanted] - radii[wanted, None]).min(axis=0)
    high = (seen[wanted] + radii[wanted, None]).max(axis=0)
    half = 1.02 * float((high - low)[:2].max()) / 2
    half = 1.1 ** np.ceil(np.log(half) / np.log(1.1))
    texel = 2 * half / SHADOW_SIZE
    middle = np.round((low + high)[:2] / 2 / texel) * texel
    front, back = float((seen[:, 2] + radii).max()), float(low[2])
    depth = 1.02 * (front - back) + 4 * texel
    matrix = np.eye(4)
    matrix[:2, :3] = axes[:2] / half
    matrix[:2, 3] = -middle / half
    matrix[2, :3] = -2 * axes[2] / depth
    matrix[2, 3] = (front + back) / depth
    return ShadowView(matrix, texel)
