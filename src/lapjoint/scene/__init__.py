"""The scene: bodies, shapes, joints, materials and their files. Knows no engine."""

from __future__ import annotations

from .joints import FREE, LOCKED, WORLD, Ball, Breaks, Fixed, Hinge, Motor, SixAxis, Slider, Spring
from .materials import Material
from .scene import Scene
from .shapes import Box, Capsule, Compound, ConvexHull, Cylinder, Part, Plane, Sphere, TriangleMesh
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
    "ConvexHull",
    "Cylinder",
    "Fixed",
    "Hinge",
    "Material",
    "Motor",
    "Part",
    "Plane",
    "Scene",
    "SixAxis",
    "Slider",
    "Sphere",
    "Spring",
    "TriangleMesh",
]
