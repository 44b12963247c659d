"""The scene: bodies, shapes, joints, materials and their files. Knows no engine."""

from __future__ import annotations

from .height_field import HeightField
from .joints import (
    FREE,
    LOCKED,
    WORLD,
    Ball,
    Breaks,
    Distance,
    Drive,
    Fixed,
    Gear,
    Hinge,
    Motor,
    SixAxis,
    Slider,
    Spring,
)
from .materials import Material
from .motions import ConstantVelocity, Keyframes, Oscillation, Rotation
from .scene import Scene
from .shapes import Box, Capsule, Compound, ConvexHull, Cylinder, Part, Plane, Sphere, TriangleMesh
from .solids import Cone, Ellipsoid
from .states import STATE_SIZE

__all__ = [
    "FREE",
    "LOCKED",
    "STATE_SIZE",
    "WORLD",
    "Ball",
    "Box",
    "Breaks",
    "Capsule",
    "Compound",
    "Cone",
    "ConstantVelocity",
    "ConvexHull",
    "Cylinder",
    "Distance",
    "Drive",
    "Ellipsoid",
    "Fixed",
    "Gear",
    "HeightField",
    "Hinge",
    "Keyframes",
    "Material",
    "Motor",
    "Oscillation",
    "Part",
    "Plane",
    "Rotation",
    "Scene",
    "SixAxis",
    "Slider",
    "Sphere",
    "Spring",
    "TriangleMesh",
]
