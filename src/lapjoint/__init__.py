"""lapjoint: one rigid-body scene, simulated by many workers.

What is here is imported when it is first named, so that a worker loads what a worker needs; `__init__.pyi` says the
same to type checkers.
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

_PLACES = {
    ".checkpoint": ["Checkpoint", "CheckpointWriter"],
    ".engines": ["Contacts", "Engine", "engine_names", "make_engine"],
    ".errors": ["AccuracyWarning", "EngineWarning", "LapjointError", "PenetrationWarning", "SimulationStopped"],
    ".measures.step": ["Measures"],
    ".params": ["Blend", "Failures", "Params", "Sequential", "Sleep", "Substeps", "Units"],
    ".queries": ["NO_BODY", "ClosestPoints", "Inside", "Overlaps", "RayHits"],
    ".recording": ["Recording", "RecordingWriter"],
    ".scene": [
        "FREE",
        "LOCKED",
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
    ],
    ".server.events": ["Events"],
    ".server.incidents": ["Incident"],
    ".step_tables.sensor_events": ["SensorEvents"],
    ".simulation": ["Simulation"],
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}

__all__ = ["__version__", "fracture", "scenes", *_PLACE_OF]


def __getattr__(name: str) -> object:
    if name in ("fracture", "scenes"):
        return importlib.import_module(f".{name}", __name__)
    if name not in _PLACE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_PLACE_OF[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
