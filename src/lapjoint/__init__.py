"""lapjoint: one rigid-body scene, simulated by many workers."""

from __future__ import annotations

from .errors import LapjointError, PenetrationWarning
from .joints import FREE, LOCKED, WORLD, Ball, Fixed, Hinge, Motor, SixAxis, Slider, Spring
from .scene import Material, Scene
from .shapes import Box, Capsule, Compound, ConvexHull, Cylinder, Part, Plane, Sphere, TriangleMesh

__all__ = [
    "FREE",
    "LOCKED",
    "WORLD",
    "Ball",
    "Box",
    "Capsule",
    "Compound",
    "ConvexHull",
    "Cylinder",
    "Fixed",
    "Hinge",
    "LapjointError",
    "Material",
    "Motor",
    "Part",
    "PenetrationWarning",
    "Plane",
    "Scene",
    "SixAxis",
    "Slider",
    "Sphere",
    "Spring",
    "TriangleMesh",
]
