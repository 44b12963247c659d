"""lapjoint: one rigid-body scene, simulated by many workers."""

from __future__ import annotations

from . import scenes
from .checkpoint import Checkpoint, CheckpointWriter
from .engines import Contacts, Engine, engine_names, make_engine
from .errors import LapjointError, PenetrationWarning, SimulationStopped
from .events import Event
from .joints import FREE, LOCKED, WORLD, Ball, Fixed, Hinge, Motor, SixAxis, Slider, Spring
from .materials import Material
from .params import Params
from .recording import Recording, RecordingWriter
from .scene import Scene
from .shapes import Box, Capsule, Compound, ConvexHull, Cylinder, Part, Plane, Sphere, TriangleMesh
from .simulation import Simulation
from .step_measures import Measures

__all__ = [
    "FREE",
    "LOCKED",
    "WORLD",
    "Ball",
    "Box",
    "Capsule",
    "Checkpoint",
    "CheckpointWriter",
    "Compound",
    "Contacts",
    "ConvexHull",
    "Cylinder",
    "Engine",
    "Event",
    "Fixed",
    "Hinge",
    "LapjointError",
    "Material",
    "Measures",
    "Motor",
    "Params",
    "Part",
    "PenetrationWarning",
    "Plane",
    "Recording",
    "RecordingWriter",
    "Scene",
    "Simulation",
    "SimulationStopped",
    "SixAxis",
    "Slider",
    "Sphere",
    "Spring",
    "TriangleMesh",
    "engine_names",
    "make_engine",
    "scenes",
]
