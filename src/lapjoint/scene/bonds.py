"""Bonds: fixed joints over faces, as stiff and as strong as these are.

A bond is an elastic layer over a face, as thick as what it joins is apart. The joint's frame is the face's: its x axis
is the normal, y and z are the principal axes of the face. How stiff a bond is decides how structures share loads out.
What it bears are stresses: of pull and bending along the normal, of shear and torsion in the face.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.columns import Columns
from ..errors import LapjointError

Array = NDArray[np.float64]

DIRECTIONS = 16
"""In which it is known how far a face reaches: in its plane, from y by z."""
LOAD_TIME = 1 / 60
"""Seconds. A blow between rigid bodies takes one step: the shorter the timestep, the larger its force. Smoothed, it is
much the same with any timestep that is shorter than this."""

BOND_LAYOUT: dict[str, tuple[tuple[int, ...], Any]] = {
    # N/m along the face's axes, N m/rad about its x, y, z; of a rigid bond, kg and kg m^2: so much heavier than any
    # piece that no load moves it.
    "bond_stiffness": ((4,), float),
    "bond_is_elastic": ((), bool),  # a spring; else rigid
    "bond_damping_time": ((), float),  # s; of a spring: damping over stiffness
    "bond_section": ((4,), float),  # area [m^2], modulus of torsion [m^3], second moments about y and z [m^4]
    "bond_reach": ((DIRECTIONS,), float),  # m, of the face from its middle
    "bond_strength": ((3,), float),  # N/m^2: tensile, shear, compressive; zeros: no bond
    "bond_load_time": ((), float),  # s, by which loads are smoothed; 0: not
}
NO_BOND = {f"joints/{name}": 0.0 for name in BOND_LAYOUT}
"""For files of scenes without a bond."""


@dataclass(frozen=True, eq=False)
class Bonds:
    """The columns of bonds, one row each; see BOND_LAYOUT for what they mean."""

    stiffness: Array
    section: Array
    reach: Array
    strength: Array
    is_elastic: bool = False
    damping_time: float = 0.0
    load_time: float = LOAD_TIME

    def __len__(self) -> int:
        return len(self.section)

    def columns(self) -> dict[str, Any]:
        """By the names that they have in a scene's table of joints."""
        return {f"bond_{name}": value for name, value in vars(self).items()}


def no_bonds() -> Bonds:
    """Of pieces that nothing holds together."""
    return Bonds(np.empty((0, 4)), np.empty((0, 4)), np.empty((0, DIRECTIONS)), np.empty((0, 3)))


def is_bond(joints: Columns) -> NDArray[np.bool_]:
    """Which joints are bonds."""
    return np.asarray(joints.bond_section[:, 0] > 0)


def can_break(joints: Columns, first: int = 0) -> NDArray[np.bool_]:
    """Which joints can break, from a number on."""
    forces = np.isfinite(joints.break_force[first:]) | np.isfinite(joints.break_torque[first:])
    return np.asarray(forces | (joints.bond_section[first:, 0] > 0))


def with_breaks(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the table of joints for files that know no bonds: one bears the force or the torque that would break it
    alone, across its weaker axis."""
    area, torsion, *moments = row["bond_section"].tolist()
    if not area > 0:
        return row
    tensile, shear, _ = row["bond_strength"].tolist()
    bent = tensile * min(moments) / float(row["bond_reach"].max())
    return {**row, "break_force": min(tensile, shear) * area, "break_torque": min(bent, shear * torsion)}


def check_bonds(joints: Columns, title: str) -> None:
    """Refuse what is no bond, with a LapjointError that begins with `title`."""
    values = np.concatenate(
        [joints.bond_stiffness, joints.bond_section, joints.bond_reach, joints.bond_strength]
        + [np.stack([joints.bond_damping_time, joints.bond_load_time], axis=1)],
        axis=1,
    )
    named = is_bond(joints)
    wrong = ~np.isfinite(values).all(axis=1) | (values < 0).any(axis=1)
    wrong |= named & (values[:, :8] <= 0).any(axis=1) | named & (joints.bond_strength <= 0).any(axis=1)
    wrong |= named & ~((joints.lower == 0) & (joints.upper == 0)).all(axis=1)
    for joint in np.flatnonzero(wrong):
        raise LapjointError(f"{title}joint {joint}: a bond's section, stiffness and strength must be positive numbers")
