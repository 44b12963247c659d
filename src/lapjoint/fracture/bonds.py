"""Pieces in a scene: bodies, and bonds between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import rotation
from ..arrays.checks import as_rows, is_finite
from ..errors import LapjointError
from ..scene import Breaks, Fixed, Material, Scene
from .pieces import Array, Pieces


def bond_strength(area: float, strength: float) -> Breaks:
    """What a bond over a face of this area [m^2] bears: `strength` [N/m^2] times it, and as a moment what brings the
    edge of a square face to this stress."""
    return Breaks(strength * area, strength * area**1.5 / 6)


def add_pieces(
    scene: Scene,
    pieces: Pieces,
    *,
    strength: float,
    position: ArrayLike = (0.0, 0.0, 0.0),
    quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0),
    density: float = 1000.0,
    material: Material | None = None,
    label: int = 0,
) -> tuple[range, range]:
    """Add pieces to a scene, the shape's frame at `position` and `quaternion`, with a bond between any two that share a
    face. Returns the numbers of the bodies and of the joints.

    A bond is a fixed joint, and bears what `bond_strength` has for the face's area and `strength` [N/m^2].
    """
    for name, value, unit in (("strength", strength, "N/m^2"), ("density", density, "kg/m^3")):
        if not (is_finite(value) and value > 0):
            raise LapjointError(f"add_pieces: {name} is {value}, expected a positive number [{unit}]")
    place = as_rows("position", position, 1, (3,), "add_pieces")[0]
    turn = as_rows("quaternion", quaternion, 1, (4,), "add_pieces")[0]

    def moved(points: Array) -> Array:
        return np.asarray(place + rotation.rotate(np.broadcast_to(turn, (len(points), 4)), points))

    masses = density * pieces.volumes
    bodies = scene.add_bodies(
        list(pieces.shapes), moved(pieces.positions), turn, mass=masses, material=material, label=label
    )
    if not len(pieces.bonds):
        return bodies, range(scene.joint_count, scene.joint_count)
    first = bodies[0]
    bears = [bond_strength(area, strength) for area in pieces.areas.tolist()]
    a, b = first + pieces.bonds.astype(np.int64).T
    return bodies, scene.add_joints(Fixed(), b, a, moved(pieces.anchors), breaks=bears)
