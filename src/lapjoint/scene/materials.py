"""Material: how a body's surface and motion lose energy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays.checks import is_finite
from ..errors import LapjointError


@dataclass(frozen=True)
class Material:
    """How a body's surface and motion lose energy. A contact takes the geometric mean of its two bodies' friction and
    of their restitution."""

    friction: float = 0.5
    """Coulomb coefficient."""
    restitution: float = 0.0
    """Share of the approach velocity that comes back, 0 to 1."""
    rolling_friction: float = 0.0
    """Lever arm of the rolling resistance [m]; a contact adds up its two bodies'."""
    linear_damping: float = 0.0
    """Share of the linear velocity lost per second, 0 to 1."""
    angular_damping: float = 0.0
    """Share of the angular velocity lost per second, 0 to 1."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            top = np.inf if "friction" in name else 1.0
            if not (is_finite(value) and 0 <= value <= top):
                raise LapjointError(f"Material: {name} is {value}, expected a number from 0 to {top}")


def surface_of(material: Material | None, title: str) -> Material:
    """The material, or the default one where none is given."""
    if material is not None and not isinstance(material, Material):
        raise LapjointError(f"{title}: material is {material!r}, expected a Material")
    return material or Material()
