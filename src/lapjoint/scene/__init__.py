"""The scene: bodies, shapes, joints, materials and their files. Knows no engine."""

from __future__ import annotations

from .fields import Attractor, BoxRegion, Buoyancy, Drag, Field, Gravity, SphereRegion, Wind
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
    "Attractor",
    "Ball",
    "Box",
    "BoxRegion",
    "Breaks",
    "Buoyancy",
    "Capsule",
    "Compound",
    "Cone",
    "ConstantVelocity",
    "ConvexHull",
    "Cylinder",
    "Distance",
    "Drag",
    "Drive",
    "Ellipsoid",
    "Field",
    "Fixed",
    "Gear",
    "Gravity",
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
    "SphereRegion",
    "Spring",
    "TriangleMesh",
    "Wind",
]
