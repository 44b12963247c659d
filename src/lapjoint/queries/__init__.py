"""What is asked about a scene: rays, overlaps, nearest points. It knows shapes and where they are, and no engine."""

from __future__ import annotations

from .answers import NO_BODY, ClosestPoints, Overlaps, RayHits
from .body_tree import BodyTree, rays_meet
from .sensors import Inside, SensorSet

__all__ = ["NO_BODY", "BodyTree", "ClosestPoints", "Inside", "Overlaps", "RayHits", "SensorSet", "rays_meet"]
