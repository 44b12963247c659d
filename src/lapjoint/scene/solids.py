"""Ellipsoids and cones: round shapes whose mass, box and outline have formulas of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .lengths import positive_length, positive_lengths

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Ellipsoid:
    """An ellipsoid with half axes `radii` along x, y and z."""

    radii: tuple[float, float, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "radii", positive_lengths("Ellipsoid", "radii", self.radii, 3))

    def mass_properties(self) -> tuple[float, Array]:
        volume = 4 / 3 * np.pi * float(np.prod(self.radii))
        x, y, z = np.square(self.radii)
        return volume, np.diag([y + z, x + z, x + y]) * (volume / 5)

    def bounding_radius(self) -> float:
        return max(self.radii)

    def bounding_box(self) -> tuple[Array, Array]:
        return np.zeros(3), np.array(self.radii)


@dataclass(frozen=True)
class Cone:
    """A cone along z: its base is a quarter of `length` below its centre of mass, its tip three quarters above."""

    radius: float
    length: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive_length("Cone", "radius", self.radius))
        object.__setattr__(self, "length", positive_length("Cone", "length", self.length))

    def mass_properties(self) -> tuple[float, Array]:
        r2, volume = self.radius**2, np.pi * self.radius**2 * self.length / 3
        side = volume * (3 * r2 / 20 + 3 * self.length**2 / 80)
        return volume, np.diag([side, side, volume * 3 * r2 / 10])

    def bounding_radius(self) -> float:
        return max(0.75 * self.length, float(np.hypot(self.radius, self.length / 4)))

    def bounding_box(self) -> tuple[Array, Array]:
        return np.array([0.0, 0.0, self.length / 4]), np.array([self.radius, self.radius, self.length / 2])

    def corners(self, count: int) -> Array:
        """The tip and so many points of the rim: a hull that is inside of the cone."""
        angles = 2 * np.pi * np.arange(count) / count
        rim = np.stack([self.radius * np.cos(angles), self.radius * np.sin(angles), np.full(count, -self.length / 4)])
        return np.concatenate([rim.T, [[0.0, 0.0, 0.75 * self.length]]])
