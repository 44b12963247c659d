"""lapjoint: one rigid-body scene, simulated by many workers."""

from . import fracture, scenes
from .checkpoint import Checkpoint, CheckpointWriter
from .engines import Contacts, Engine, engine_names, make_engine
from .errors import EngineWarning, LapjointError, PenetrationWarning, SimulationStopped
from .measures.step import Measures
from .params import Params
from .recording import Recording, RecordingWriter
from .scene import (
    FREE,
    LOCKED,
    WORLD,
    Ball,
    Box,
    Breaks,
    Capsule,
    Compound,
    ConvexHull,
    Cylinder,
    Fixed,
    Hinge,
    Material,
    Motor,
    Part,
    Plane,
    Scene,
    SixAxis,
    Slider,
    Sphere,
    Spring,
    TriangleMesh,
)
from .server.events import Events
from .server.incidents import Incident
from .simulation import Simulation

__version__: str

__all__ = [
    "FREE",
    "LOCKED",
    "WORLD",
    "Ball",
    "Box",
    "Breaks",
    "Capsule",
    "Checkpoint",
    "CheckpointWriter",
    "Compound",
    "Contacts",
    "ConvexHull",
    "Cylinder",
    "Engine",
    "EngineWarning",
    "Events",
    "Fixed",
    "Hinge",
    "Incident",
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
    "__version__",
    "engine_names",
    "fracture",
    "make_engine",
    "scenes",
]
