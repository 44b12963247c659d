"""Stresses of a bond's face under a load, as a beam's cross-section has them; native twin: native/bullet/bonds.cpp.

Pull and bending along the normal, p = N/A +- M reach / I, and shear and torsion in the face, t = V/A + T r/J. The
face's largest tension is the principal stress of both. Pressure breaks what it crushes, and nothing else: stone bears
ten times as much of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class BondStress(NamedTuple):
    """In N/m^2, at the worst place of the face."""

    tension: float
    shear: float
    pressure: float

    def breaks(self, strength: Array) -> bool:
        """Whether it is more than tensile, shear or compressive strength."""
        return bool((np.array(self) > strength).any())


def bond_stress(section: Array, reach: Array, wrench: Array) -> BondStress:
    """Stresses of a face with this section (area, modulus of torsion, second moments about y and z) that reaches so far
    in directions from y by z. `wrench`: force [N] and torque [N m] in its frame, x along the normal, on what is there.
    """
    area, torsion, about_y, about_z = section
    force, torque = wrench[:3], wrench[3:]
    pulled = -force[0] / area
    # The stress of bending rises along one direction of the face. What is pulled on one side is pressed on the other.
    rise = np.array([-torque[2] / about_z, torque[1] / about_y])
    turn = np.arctan2(rise[1], rise[0]) / (2 * np.pi) * len(reach)
    reached = max(_between(reach, turn), _between(reach, turn + len(reach) / 2))
    bent = float(np.hypot(*rise)) * reached
    shear = float(np.hypot(*force[1:]) / area + abs(torque[0]) / torsion)
    tension = pulled + bent
    return BondStress(tension / 2 + float(np.hypot(tension / 2, shear)), shear, bent - pulled)


def _between(values: Array, at: float) -> float:
    """A value between two neighbours of a ring."""
    low = int(np.floor(at))
    first, second = values[low % len(values)], values[(low + 1) % len(values)]
    return float(first + (at - low) * (second - first))
