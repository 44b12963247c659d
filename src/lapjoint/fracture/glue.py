"""Glue: pieces that are one rigid body until something hits it hard enough, and bodies of their own from then on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import rotation
from ..arrays.checks import is_finite
from ..errors import LapjointError
from ..scene import Compound, Part, Scene
from ..scene.bonds import LOAD_TIME, no_bonds
from ..scene.glue import Glued
from ..scene.shapes import mass_properties
from .bonds import Strength, frames_of
from .pieces import Pieces

Array = NDArray[np.float64]


def add_glued(
    scene: Scene,
    pieces: Pieces,
    *,
    impulse: float,
    strength: float | None = None,
    shear: float | None = None,
    compressive: float | None = None,
    young: float | None = None,
    damping_time: float = 0.0,
    load_time: float = LOAD_TIME,
    position: ArrayLike = (0.0, 0.0, 0.0),
    quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0),
    density: float = 1000.0,
    linear_velocity: ArrayLike = (0.0, 0.0, 0.0),
    angular_velocity: ArrayLike = (0.0, 0.0, 0.0),
    **options: Any,
) -> Glued:
    """Add pieces to a scene as one rigid body, the shape's frame at `position` and `quaternion`. Every simulation of
    the scene, of the saved file too, has it come apart after a step in which one contact did `impulse` [N s] or more.
    With a `strength` [N/m^2] the pieces are then held by bonds as `add_pieces` makes them, with its options; else by
    nothing. Other options are those of add_bodies, for the body and the pieces.
    """
    for name, value in (("impulse", impulse), ("density", density)):
        if not (is_finite(value) and value > 0):
            raise LapjointError(f"add_glued: {name} is {value}, expected a positive number")
    bears = Strength(1.0 if strength is None else strength, shear, compressive, young, damping_time, load_time)
    bears.check("add_glued")
    parts = [
        Part(inner.shape, tuple(place + inner.position), inner.quaternion)
        for shape, place in zip(pieces.shapes, pieces.positions, strict=True)
        for inner in (shape.parts if isinstance(shape, Compound) else (Part(shape),))
    ]
    masses = density * np.array([mass_properties(shape)[0] for shape in pieces.shapes])
    middle = masses @ pieces.positions / masses.sum()
    places = pieces.positions - middle
    inertia = np.zeros((3, 3))
    for shape, mass, place in zip(pieces.shapes, masses, places, strict=True):
        volume, tensor = mass_properties(shape)
        inertia += tensor * (mass / volume) + mass * (place @ place * np.eye(3) - np.outer(place, place))
    turn = np.asarray(quaternion, float)
    body = scene.add_body(
        Compound(tuple(parts)),
        np.asarray(position, float) + rotation.rotate(turn, middle),
        turn,
        mass=float(masses.sum()),
        inertia=inertia,
        linear_velocity=linear_velocity,
        angular_velocity=angular_velocity,
        hit_impulse=impulse,
        **options,
    )
    held = pieces.bonds if strength is not None else pieces.bonds[:0]
    faces = pieces.faces
    bonds = bears.bonds(faces, masses[held], places) if len(held) else no_bonds()
    anchors, turns = faces.anchors[: len(held)] - middle, frames_of(faces, rotation.IDENTITY)[: len(held)]
    return scene._add_glue(Glued(body, float(impulse), pieces.shapes, places, masses, held, anchors, turns, bonds))
