"""Pieces in a scene: bodies, and bonds between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import rotation
from ..arrays.checks import as_rows, is_finite
from ..errors import LapjointError
from ..scene import WORLD, Fixed, Material, Scene
from ..scene.bonds import LOAD_TIME, Bonds
from .pieces import Array, Pieces
from .sections import Sections

LEAST_HOLD, MOST_HOLD = 1e5, 1e6
"""How much stiffer than its two bodies are heavy a rigid bond is, in the median of a structure. Softer, loads take many
steps to build up in what is slender: with 1e5 a cantilever of 40 cells has half of its load after 8 steps, with 1e6 all
of it. Stiffer, rounding makes noise in what spins: 22 kPa with 1e5, 197 with 1e6."""
COMPRESSIVE = 10.0
"""Compressive over tensile strength, of stone, brick, concrete and glass."""


@dataclass(frozen=True)
class Strength:
    """What bonds bear and how they give way: see `add_pieces`."""

    tensile: float
    shear: float | None = None
    compressive: float | None = None
    young: float | None = None
    damping_time: float = 0.0
    load_time: float = LOAD_TIME

    def check(self, what: str) -> None:
        """Refuse what is no strength, with a LapjointError that begins with `what`."""
        positive = {"strength": self.tensile, "shear": self.shear, "compressive": self.compressive, "young": self.young}
        for name, value in positive.items():
            if value is not None and not (is_finite(value) and value > 0):
                raise LapjointError(f"{what}: {name} is {value}, expected a positive number [N/m^2]")
        for name, value in (("damping_time", self.damping_time), ("load_time", self.load_time)):
            if not (is_finite(value) and value >= 0):
                raise LapjointError(f"{what}: {name} is {value}, expected a number of seconds, 0 or more")

    def bonds(self, faces: Sections, masses: Array, places: Array) -> Bonds:
        """Bonds over faces between bodies with masses, (m, 2), infinite for the world; `places` are all bodies'."""
        about_y, about_z = faces.moments.T
        along = faces.areas / faces.spans
        stiffness = np.stack([faces.areas, about_y + about_z, about_y, about_z], axis=1) / faces.spans[:, None]
        if self.young is None:
            stiffness *= _hold(places, faces) * np.median(1 / (1 / masses).sum(axis=1) / along)
        else:
            stiffness *= self.young
        compressive = COMPRESSIVE * self.tensile if self.compressive is None else self.compressive
        strength = [self.tensile, self.tensile if self.shear is None else self.shear, compressive]
        torsion = (about_y + about_z) / faces.reach.max(axis=1)
        return Bonds(
            stiffness,
            np.stack([faces.areas, torsion, about_y, about_z], axis=1),
            faces.reach,
            np.tile(strength, (len(along), 1)),
            self.young is not None,
            self.damping_time,
            self.load_time,
        )


def _hold(places: Array, faces: Sections) -> float:
    """How stiff rigid bonds are: the more, the softer a beam of them would bend, as long and as thick as they are
    together. Its lowest mode has (span thickness / length^2)^2 of the stiffness of one bond."""
    span = float(np.median(faces.spans))
    apart = places - places.mean(axis=0)
    extents = np.ptp(apart @ np.linalg.svd(apart, full_matrices=False)[2].T, axis=0) + span
    slender = extents.max() ** 2 / (span * extents.min())
    return float(np.clip(slender**2, LEAST_HOLD, MOST_HOLD))


def frames_of(faces: Sections, turn: ArrayLike) -> Array:
    """Quaternions of bonds' frames in the world, for faces in a frame that is turned by `turn`."""
    own = np.concatenate([faces.normals[:, None], faces.across], axis=1).transpose(0, 2, 1)
    return rotation.multiply(np.broadcast_to(np.asarray(turn, float), (len(own), 4)), rotation.from_matrix(own))


def add_bonds(
    scene: Scene,
    bodies_a: ArrayLike,
    bodies_b: ArrayLike,
    faces: Sections,
    *,
    strength: float,
    shear: float | None = None,
    compressive: float | None = None,
    young: float | None = None,
    damping_time: float = 0.0,
    load_time: float = LOAD_TIME,
) -> range:
    """Bond bodies a to bodies b, or to the WORLD, over faces in the world, with normals from b to a. The options are
    those of `add_pieces`. Returns the numbers of the joints."""
    bears = Strength(strength, shear, compressive, young, damping_time, load_time)
    bears.check("add_bonds")
    return _add(scene, np.asarray(bodies_a), np.asarray(bodies_b), faces, bears)


def _add(scene: Scene, a: Any, b: Any, faces: Sections, bears: Strength) -> range:
    if not len(faces.areas):
        return range(scene.joint_count, scene.joint_count)
    mass = scene.bodies.mass
    masses = np.stack([mass[a], np.where(b == WORLD, np.inf, mass[b])], axis=1)
    bodies = np.unique(np.concatenate([a, b[b != WORLD]]))
    bonds = bears.bonds(faces, masses, scene.bodies.position[bodies])
    return scene.add_joints(Fixed(), a, b, faces.anchors, quaternions=frames_of(faces, rotation.IDENTITY), bonds=bonds)


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
    shear: float | None = None,
    compressive: float | None = None,
    young: float | None = None,
    damping_time: float = 0.0,
    load_time: float = LOAD_TIME,
) -> tuple[range, range]:
    """Add pieces to a scene, the shape's frame at `position` and `quaternion`, with a bond over each face that two of
    them share. Returns the numbers of the bodies and of the joints.

    A bond breaks where its largest tension is above `strength`, its shear above `shear` (`strength` unless given), or
    its largest pressure above `compressive` (ten times `strength`), all in N/m^2, smoothed over `load_time` seconds.
    Bonds are rigid; with Young's modulus `young` [N/m^2] they are springs, damped by `damping_time` seconds.
    """
    bears = Strength(strength, shear, compressive, young, damping_time, load_time)
    bears.check("add_pieces")
    if not (is_finite(density) and density > 0):
        raise LapjointError(f"add_pieces: density is {density}, expected a positive number [kg/m^3]")
    place = as_rows("position", position, 1, (3,), "add_pieces")[0]
    turn = as_rows("quaternion", quaternion, 1, (4,), "add_pieces")[0]
    masses = density * pieces.volumes
    bodies = scene.add_bodies(
        list(pieces.shapes),
        place + turned(turn, pieces.positions),
        turn,
        mass=masses,
        material=material,
        label=label,
    )
    a, b = bodies.start + pieces.bonds.astype(np.int64).T
    return bodies, _add(scene, b, a, placed(pieces.faces, place, turn), bears)


def turned(turn: Array, vectors: Array) -> Array:
    """Vectors turned by one quaternion."""
    return np.asarray(rotation.rotate(np.broadcast_to(turn, (len(vectors), 4)), vectors))


def placed(faces: Sections, place: ArrayLike, turn: Array) -> Sections:
    """Faces of a frame that stands so, in the world."""
    return Sections(
        np.asarray(place) + turned(turn, faces.anchors),
        turned(turn, faces.normals),
        faces.areas,
        turned(turn, faces.across.reshape(-1, 3)).reshape(-1, 2, 3),
        faces.moments,
        faces.reach,
        faces.spans,
    )
