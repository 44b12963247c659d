"""Names in glTF files: extensions, and under which of them exports keep what the extensions have no word for."""

from __future__ import annotations

RIGID, SHAPES = "KHR_physics_rigid_bodies", "KHR_implicit_shapes"
OWN = "lapjoint"
"""In `extras` of scenes, nodes, materials, filters and joints."""
