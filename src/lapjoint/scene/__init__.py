"""The scene: bodies, shapes, joints, materials and their files. Knows no engine."""

from __future__ import annotations

from .fields import Attractor, BoxRegion, Buoyancy, Drag, Field, Gravity, SphereRegion, Wind
from .joints import FREE, LOCKED, WORLD, Ball, Breaks, Fixed, Hinge, Motor, SixAxis, Slider, Spring
from .materials import Material
from .motions import ConstantVelocity, Keyframes, Oscillation, Rotation
from .scene import Scene
from .shapes import Box, Capsule, Compound, ConvexHull, Cylinder, Part, Plane, Sphere, TriangleMesh
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
    "ConstantVelocity",
    "ConvexHull",
    "Cylinder",
    "Drag",
    "Field",
    "Fixed",
    "Gravity",
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
