"""Model: what a file describes, whichever format it has. Readers fill it in, `build_scene` makes a scene of it.

Links are rigid; each has a frame of its own, in which its colliders and its mass are given. All lengths are metres,
masses kilograms, angles radians, and z is up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from ..scene.joints import WORLD, Joint
from ..scene.materials import Material
from ..scene.motions import GivenMotion
from ..scene.shapes import StaticShape

Array = NDArray[np.float64]


def no_turn() -> Array:
    return np.array([1.0, 0.0, 0.0, 0.0])


@dataclass
class Collider:
    """A shape of a link."""

    shape: StaticShape
    position: Array = field(default_factory=lambda: np.zeros(3))
    """Of the shape's own centre, in the link's frame."""
    quaternion: Array = field(default_factory=no_turn)
    material: Material = field(default_factory=Material)
    label: int = 0
    """Its row in the model's `may_touch`."""
    density: float | None = None
    """kg/m^3, where the link's mass follows from its colliders."""
    relative_density: float = 1.0
    """In multiples of the link's, as a part of a compound has it."""
    where: str = ""


class Motion(Enum):
    MOVING = "moving"
    STATIC = "static"
    KINEMATIC = "kinematic"


@dataclass
class Mass:
    """Of a link, in its frame. What is not a number is that of its colliders."""

    mass: float
    centre: Array
    inertia: Array
    """(3, 3) about the centre [kg m^2]; that of its colliders is for this mass."""


@dataclass
class Link:
    """A rigid body, or something static or kinematic."""

    name: str
    position: Array = field(default_factory=lambda: np.zeros(3))
    """Of its frame in the world, as joints are given."""
    quaternion: Array = field(default_factory=no_turn)
    motion: Motion = Motion.MOVING
    mass: Mass | None = None
    """None: that of its colliders, by their densities."""
    colliders: list[Collider] = field(default_factory=list)
    start: tuple[Array, Array] | None = None
    """Where it starts, if that is elsewhere: position and quaternion of its frame."""
    linear_velocity: Array = field(default_factory=lambda: np.zeros(3))
    """Of its centre of mass, in the world."""
    angular_velocity: Array = field(default_factory=lambda: np.zeros(3))
    is_whole: bool = False
    """Whether its colliders are one compound, though it is static or they are one."""
    label: int = 0
    hit_impulse: float = np.inf
    hit_speed: float = np.inf
    touch_events: bool = False
    damping: tuple[float, float] = (0.0, 0.0)
    """Linear and angular, as a material has it."""
    surface_velocity: Array = field(default_factory=lambda: np.zeros(6))
    given_motion: GivenMotion | None = None
    """Of a kinematic one."""
    where: str = ""


@dataclass
class LinkJoint:
    """A joint between two links as they stand: `a` moves relative to `b`."""

    joint: Joint
    a: int
    b: int
    """A link, or WORLD."""
    anchor: Array
    quaternion: Array = field(default_factory=no_turn)
    """Of the joint's frame in the world; its x axis is the joint's axis."""
    anchor_b: Array | None = None
    """Where the joint holds b, and its frame there, if that is elsewhere: it does not stand at zero then."""
    quaternion_b: Array | None = None
    collide: bool = False
    name: str = ""
    where: str = ""


@dataclass
class LinkSensor:
    """A volume that reports who is inside."""

    shape: StaticShape
    link: int
    """That it is on, or WORLD."""
    position: Array
    """Of the shape's own centre, in the link's frame, or in the world."""
    quaternion: Array
    mask: int | None = None
    """Groups that it senses; None: those of the labels that it senses."""
    senses: NDArray[np.bool_] | None = None
    """Which labels; None: all."""
    name: str = ""
    where: str = ""


@dataclass
class Model:
    """All that a file describes."""

    name: str
    gravity: Array = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    timestep: float | None = None
    links: list[Link] = field(default_factory=list)
    joints: list[LinkJoint] = field(default_factory=list)
    sensors: list[LinkSensor] = field(default_factory=list)
    may_touch: NDArray[np.bool_] = field(default_factory=lambda: np.ones((1, 1), bool))
    """Which labels of colliders may touch: symmetric."""
    ignored: list[tuple[int, int]] = field(default_factory=list)
    """Pairs of links that may not, whatever their labels."""
    bits: list[tuple[int, int]] | None = None
    """Group and mask of each label, where the file has those of a scene."""
    settings: dict[str, int] = field(default_factory=dict)
    """Other settings of a scene, where the file has them."""
    camera: tuple[tuple[float, float, float], tuple[float, float, float]] | None = None


__all__ = ["WORLD", "Collider", "Link", "LinkJoint", "LinkSensor", "Mass", "Model", "Motion"]
